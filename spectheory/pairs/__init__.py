"""Enumerated pairs of models: the pair, its file, rows and contexts, named instances, and draft processes.

``__init__.pyi`` lists the public names.  Each is imported from its file on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

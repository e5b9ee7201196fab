"""Monte Carlo: the block efficiency of verifiers on drafted paths, with intervals.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

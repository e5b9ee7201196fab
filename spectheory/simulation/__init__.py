"""Monte Carlo estimates of the block efficiency of verifiers on drafted paths, with intervals.

``__init__.pyi`` lists the public names.  Each is imported from its file on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

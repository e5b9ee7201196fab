"""Bounds on the optimum that need no solver: tree passes, level sets, skewed drafts, dual scores.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

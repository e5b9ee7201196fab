"""Bounds on the optimum without a solver: tree passes, level sets, skewed drafts, dual scores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

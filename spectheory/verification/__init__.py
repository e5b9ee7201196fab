"""Verifiers: their interface and outcomes, users' verifiers, published algorithms and known-wrong ones."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Verifiers: the interface, what one returns, users' own, the published algorithms and the wrong ones."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

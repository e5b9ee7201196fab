"""Draft processes: how K paths are drawn from the draft model.

A process enumerates the law of the K-tuple of drafted paths.  It also computes the probability that some
draft passes through an antichain.  A verifier refuses processes that it does not name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

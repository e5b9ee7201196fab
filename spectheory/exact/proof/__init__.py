"""Proofs about every pair of a shape: a verifier is run on numbers that remember where they come from.

``prove`` searches.  ``check_proof`` checks a stored proof without points, programs and solvers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Helpers for tests of verifiers: ``assert_lossless`` and hypothesis strategies.

>>> from spectheory.testing import assert_lossless
>>> assert_lossless("kseq", quick=True).verdict
'lossless'
"""

from spectheory.foundation.extras import attach_room

__getattr__, __dir__, __all__ = attach_room(__name__, __file__)

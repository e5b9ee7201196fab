"""For the tests of people who write verifiers: ``assert_lossless``, hypothesis strategies, a pytest plugin.

>>> from spectheory.testing import assert_lossless
>>> assert_lossless("kseq", quick=True).is_lossless
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

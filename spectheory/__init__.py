"""spectheory: a referee for the verification algorithms of speculative decoding.

The public names are those of ``__init__.pyi``; each is imported from its file on first use, so that
``import spectheory`` and ``spectheory --help`` are instant.  ``from spectheory import *`` leaves out the
names that need the extra ``[models]`` where it is not installed.

>>> import spectheory
>>> certificate = spectheory.certify("block", spectheory.instances.two_token(2))
>>> print(certificate.block_efficiency, certificate.optimum, certificate.target_matching)
20/9 20/9 True
"""

import lazy_loader

from spectheory.foundation.extras import has_extra

__version__ = "0.1.0"
NEED_MODELS = ("audit", "decode")
"""Names that are left out of ``__all__`` where the extra ``[models]`` is not installed."""

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
if not has_extra("models"):
    __all__ = [name for name in __all__ if name not in NEED_MODELS]

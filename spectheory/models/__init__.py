"""Language models as target and draft: load a pair, draft and score paths, enumerate a restriction.

``__init__.pyi`` lists the public names.  Each is imported from its file on first use.  This folder and
``decoding`` need torch and transformers (``pip install ".[models]"`` in a clone); the rest of the package can
be imported without them.
"""

from spectheory.foundation.extras import attach_room

# The hook for transformers lives in decoding, which imports models.  It is imported on first use, not here.
ABOVE = {"custom_generate": "spectheory.decoding.huggingface"}

__getattr__, __dir__, __all__ = attach_room(__name__, __file__, elsewhere=ABOVE)

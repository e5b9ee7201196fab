"""Language models as target and draft: load a pair, draft and score paths, enumerate a restriction.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.  No other part of
the package needs torch or transformers to be installed (``pip install ".[models]"`` in a clone).
"""

from spectheory.foundation.extras import attach_room

# The hook for transformers runs the decoding loop, and decoding imports models: it is found on first use.
ABOVE = {"custom_generate": "spectheory.decoding.huggingface"}

__getattr__, __dir__, __all__ = attach_room(__name__, __file__, elsewhere=ABOVE)

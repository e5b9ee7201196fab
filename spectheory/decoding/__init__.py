"""Whole texts: the decoding loop on language models, and its place in people's own pipelines.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.
"""

from spectheory.foundation.extras import attach_room

__getattr__, __dir__, __all__ = attach_room(__name__, __file__)

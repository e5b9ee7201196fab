"""Decode whole texts from language models, here or inside ``generate`` of transformers.

``__init__.pyi`` lists the public names.  Each is imported from its file on first use.
"""

from spectheory.foundation.extras import attach_room

__getattr__, __dir__, __all__ = attach_room(__name__, __file__)

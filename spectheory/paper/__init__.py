"""Figures and tables of the papers, one function per file; ``reproduce`` runs them all.

The public names are those of ``__init__.pyi``; each is imported from its file on first use
(``pip install ".[paper]"`` in a clone).
"""

from spectheory.foundation.extras import attach_room

__getattr__, __dir__, __all__ = attach_room(__name__, __file__)

"""Figures and tables of the papers, one function per file; ``reproduce`` runs them all.

The public names are those of ``__init__.pyi``; each is imported from its file on first use
(``pip install "spectheory[paper]"``).
"""

from typing import Any

import lazy_loader

from spectheory.foundation.extras import installed

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with installed():
        return _import(name)

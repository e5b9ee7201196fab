"""Whole texts: the decoding loop on language models, and its place in people's own pipelines.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.
"""

from typing import Any

import lazy_loader

from spectheory.foundation.extras import installed

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with installed():
        return _import(name)

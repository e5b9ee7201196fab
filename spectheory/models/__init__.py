"""Language models as target and draft: load a pair, draft and score paths, enumerate a restriction.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.  No other part of
the package needs torch or transformers to be installed (``pip install "spectheory[models]"``).
"""

from typing import Any

import lazy_loader

from spectheory.foundation.extras import installed

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with installed():
        return _import(name)

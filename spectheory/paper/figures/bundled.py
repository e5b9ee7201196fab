"""The bundled language models, as the figures use them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair


@cache
def bundled_pair() -> LanguageModelPair:
    """The bundled target and draft on the CPU, loaded once."""
    from spectheory.models import LanguageModelPair

    return LanguageModelPair.load("bundled", "bundled", device="cpu")

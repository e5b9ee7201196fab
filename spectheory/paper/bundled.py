"""The bundled language models, as the figures use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair


@cache
def bundled_pair() -> LanguageModelPair:
    """The bundled target and draft on the CPU, loaded once."""
    from spectheory.models import LanguageModelPair

    return LanguageModelPair.load("bundled", "bundled", device="cpu")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: sums then have one order, whatever the number of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

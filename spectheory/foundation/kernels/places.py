"""Where rows begin in memory, and the refusal of arguments that do not belong together."""

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=256)
def row_places(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Where each row begins, from the shape and the strides without those of entries.  -> [n]"""
    places = np.zeros((), dtype=np.int64)
    for size, stride in zip(shape, strides, strict=True):
        places = places[..., None] + stride * np.arange(size)
    return places.ravel()


def refuse_unless(fits: bool, expected: str, *shapes: Any) -> None:
    """Raise a ``ValueError`` that says which shapes were expected and which came."""
    if not fits:
        raise ValueError(f"expected {expected}, got shapes {', '.join(map(str, map(tuple, shapes)))}")

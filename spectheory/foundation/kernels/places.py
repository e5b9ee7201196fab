"""Row offsets in memory, and a check of argument shapes."""

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=256)
def row_places(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Compute the offset of each row, in entries, from shape and strides without the last axis.  -> [n]"""
    places = np.zeros((), dtype=np.int64)
    for size, stride in zip(shape, strides, strict=True):
        places = places[..., None] + stride * np.arange(size)
    return places.ravel()


def refuse_unless(fits: bool, expected: str, *shapes: Any) -> None:
    """Raise a ``ValueError`` with the expected and the received shapes, unless ``fits``."""
    if not fits:
        raise ValueError(f"expected {expected}, got shapes {', '.join(map(str, map(tuple, shapes)))}")

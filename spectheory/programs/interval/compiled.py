"""How the loops of the interior-point method are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

FAST = {"reassoc", "nsz", "contract"}
"""Sums in any order, fused multiply-add, and signs of zeros.  NaN and infinities stay as IEEE has them."""


def compiled(loop: Callable[..., Any]) -> Any:
    """The loop in machine code: made at the first call, then kept on disk; ``py_func`` is the loop itself."""
    return njit(loop, cache=True, nogil=True, error_model="numpy", fastmath=FAST)

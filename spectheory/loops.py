"""Loops over numbers that are compiled when they are first called, by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled_loop(function: Callable[..., Any] | None = None, *, sums_in_any_order: bool = False) -> Any:
    """Compile a function of arrays and numbers, for each kind of arguments when it is first called with them.

    What was compiled is kept on disk for the next process, where there is a place for it.  Other threads run
    meanwhile.  A division by zero gives ±∞ or no number, as numpy's does, and what is no number stays none.

    Args:
        function: of numpy arrays and numbers, in what numba understands.
        sums_in_any_order: a sum may be taken in several at once, which rounds differently.

    Example:
        >>> import numpy as np
        >>> @compiled_loop
        ... def total(entries):
        ...     found = 0.0
        ...     for entry in entries:
        ...         found += entry
        ...     return found
        >>> total(np.array([0.25, 0.5]))
        0.75
    """
    if function is None:
        return lambda decorated: compiled_loop(decorated, sums_in_any_order=sums_in_any_order)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if sums_in_any_order:
        options["fastmath"] = {"reassoc"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder of the package or of the user can be written to
        return numba.njit(**options)(function)

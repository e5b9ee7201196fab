"""Loops over numbers, compiled by numba."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numba


def compiled_loop(
    *signatures: str,
    sums_in_any_order: bool = False,
    fused_products: bool = False,
    part_of_others: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function of arrays and numbers, to compile it.

    If possible, the compiled code is cached on disk for later processes; ``NUMBA_CACHE_DIR`` sets the folder.
    The code releases the interpreter's lock.  A division by zero gives ±∞ or NaN, as in numpy.

    Args:
        signatures: numba signatures.  If given, compile at once.  Otherwise compile at the first call with
            each combination of argument types.
        sums_in_any_order: True if a sum may be taken in parallel parts, which rounds differently.
        fused_products: True if a product and a sum may be rounded once instead of twice.
        part_of_others: True if only other loops call the function; then it is cached as a part of them.

    Returns:
        A decorator.  ``py_func`` of the compiled function is the original function.

    Example:
        >>> import numpy as np
        >>> @compiled_loop("float64(float64[::1])")
        ... def total(entries):
        ...     found = 0.0
        ...     for entry in entries:
        ...         found += entry
        ...     return found
        >>> total(np.array([0.25, 0.5]))
        0.75
    """
    liberties = {"reassoc": sums_in_any_order, "contract": fused_products}
    flags = [flag for flag, taken in liberties.items() if taken]
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    # numba caches compiled code by the function's name, so other options need another name.
    chosen = sha256(repr((options, flags)).encode()).hexdigest()[:8]
    options["fastmath"] = set(flags)
    if signatures:
        options["signature_or_function"] = list(signatures)
    njit: Any = numba.njit

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__qualname__ = f"{function.__qualname__}_{chosen}"
        if part_of_others:
            return njit(**options)(function)
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError as error:  # no folder is writable, or the function is not in a file
            if "cannot cache" not in str(error):
                raise
        return njit(**options)(function)

    return decorate

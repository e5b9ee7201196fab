"""Loops over numbers that are compiled when they are first called, by numba."""

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
    """Compile a function of arrays and numbers.

    The compiled code is cached on disk for the next process where possible (``NUMBA_CACHE_DIR`` names another
    folder), and releases the interpreter's lock.  A division by zero gives ±∞ or NaN, as in numpy.

    Args:
        signatures: of the arguments, in numba's words; then it is compiled at once, and else for each kind of
            arguments when it is first called with them.
        sums_in_any_order: a sum may be taken in several at once, which rounds differently.
        fused_products: a product and the sum that it is part of may be rounded once instead of twice.
        part_of_others: it is called by other loops only, and is kept as part of them.

    Returns:
        A decorator; ``py_func`` of what it returns is the function itself.

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
    # numba keeps what it compiled by the name of a function: with other options it is another one.
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
        except RuntimeError as error:  # no folder can be written to, or the function is not in a file
            if "cannot cache" not in str(error):
                raise
        return njit(**options)(function)

    return decorate

"""Loops over numbers that are compiled when they are first called, by numba."""

import os
import stat
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba


def compiled_loop(
    *signatures: str,
    sums_in_any_order: bool = False,
    fused_products: bool = False,
    part_of_others: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function of arrays and numbers.

    The compiled code is cached on disk for the next process where possible, and releases the interpreter's
    lock.  A division by zero gives ±∞ or NaN, as in numpy.

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
    config: Any = numba.config

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__qualname__ = f"{function.__qualname__}_{chosen}"
        if part_of_others:
            return njit(**options)(function)
        usual = config.CACHE_DIR
        for folder in (lambda: usual, _temporary_folder):  # first that of the package or of the user
            try:
                config.CACHE_DIR = folder()
                return njit(cache=True, **options)(function)
            except RuntimeError as error:  # it cannot be written to, or the function is not in a file
                if "cannot cache" not in str(error):
                    raise
            finally:
                config.CACHE_DIR = usual
        return njit(**options)(function)

    return decorate


def _temporary_folder() -> str:
    """A folder for temporary files that this user alone can read and write to; "" if there is none."""
    if not hasattr(os, "getuid"):  # where there are no such rights, compiled code is not kept
        return ""
    try:
        folder = Path(tempfile.gettempdir()) / f"spectheory-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return ""
    is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return str(folder) if is_private and os.access(folder, os.W_OK) else ""

"""Loops that read rows by address, in the precision in which they are stored."""

from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types

from spectheory.foundation.kernels.loops import compiled_loop

intrinsic: Any = extending.intrinsic


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    return types.voidptr(address), lambda context, builder, signature, given: builder.inttoptr(
        given[0], cgutils.voidptr_t
    )


@intrinsic
def _of_bits(typing: Any, bits: Any) -> Any:
    return types.float32(types.uint32), lambda context, builder, signature, given: builder.bitcast(
        given[0], ir.FloatType()
    )


@compiled_loop(part_of_others=True)
def _itself(entry: Any) -> Any:
    return entry


@compiled_loop(part_of_others=True)
def _from_bfloat16(entry: Any) -> Any:
    return _of_bits(np.uint32(np.uint32(entry) << np.uint32(16)))


_UP_TO_FLOAT32 = np.float32(2.0**112)  # the exponent bias is 15 in float16 and 127 in float32


@compiled_loop(part_of_others=True)
def _from_float16(entry: Any) -> Any:
    bits = np.uint32(entry)
    magnitude = np.uint32((bits & np.uint32(0x7FFF)) << np.uint32(13))
    value = _of_bits(magnitude) * _UP_TO_FLOAT32
    if magnitude >= np.uint32(0x0F800000):  # infinite or NaN
        value = _of_bits(np.uint32(magnitude | np.uint32(0x7F800000)))
    return -value if bits & np.uint32(0x8000) else value


STORED: dict[str, tuple[Any, Any, Any]] = {
    "float32": (np.float32, np.float32, _itself),
    "float64": (np.float64, np.float64, _itself),
    "bfloat16": (np.uint16, np.float32, _from_bfloat16),
    "float16": (np.uint16, np.float32, _from_float16),
}
"""dtype of rows -> (type of a stored entry, type used to compute, conversion between them)."""
KINDS = {getattr(torch, kind): kind for kind in STORED}


@lru_cache
def _row_reader(stored: Any) -> Any:
    itemsize = np.dtype(stored).itemsize

    def row_at(address: int, place: int, size: int) -> Any:
        return numba.carray(_pointer(address + place * itemsize), (size,), dtype=stored)

    row_at.__qualname__ += f"_{np.dtype(stored)}"
    return compiled_loop(part_of_others=True)(row_at)


def loop_of_kinds(signature: str, sums_in_any_order: bool = False) -> Callable[[Callable], Callable]:
    """Decorate a loop so that it is compiled for each dtype of rows at first use.

    The dtype is "real" in the signature.  Every dtype gets its own function, because numba numbers the
    variants of one function in the order of use, and two processes could confuse them on disk.  The loop uses
    the global names ``row_at``, ``number`` and ``REAL``, which are set for its dtype.
    """

    def decorate(function: Callable[..., Any]) -> Callable[[str], Callable[..., Any]]:
        @lru_cache
        def of_kind(kind: str) -> Callable[..., Any]:
            named, real = dict(function.__globals__), kind
            if kind in STORED:
                stored, real, number = STORED[kind]
                named |= {"row_at": _row_reader(stored), "number": number, "REAL": real}
            own = FunctionType(function.__code__, named)
            own.__qualname__ = f"{function.__qualname__}_{kind}"
            typed = signature.replace("real", np.dtype(real).name)
            return compiled_loop(typed, sums_in_any_order=sums_in_any_order)(own)

        return of_kind

    return decorate

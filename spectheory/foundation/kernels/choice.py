"""Where a row is computed: by operators of numpy or torch, by a loop of the host, or by a Triton kernel.

This is the one place that decides.  The residual masses and rows, ``draw``, ``sort`` and the ratios of
scored selection ask it.  No law depends on the answer, up to the order of sums.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib.util import find_spec
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array

Array = Any
"""A numpy array (object or float64) or a torch tensor."""

BLOCK = 256
"""How many entries of a long row are summed to one number first: about the root of a vocabulary."""
# Below it the call through torch's dispatcher costs more than the passes over memory that a loop saves
# (benchmarks/beside_loops.py).
WORTH_A_LOOP: float = 1 << 17
"""How many entries pay for the call of a loop of ``row_kernels`` instead of a few operators."""
DRAW_WORTH_A_LOOP = 1 / 256
"""The same, as a share of it, where the loop takes the place of the thirty operators of a draw."""
SORT_WORTH_A_LOOP = 1 / 32
"""The same, where the loop takes the place of a sort by comparisons."""
SMALL_TABLE = 1 << 12
"""How many entries of a table are kept on a device."""


def on_host(array: Array) -> bool:
    """Whether the host can look at a number of it: no accelerator is waited for, and nothing is compiled."""
    return not is_torch_array(array) or (array.device.type == "cpu" and not compiling())


def compiling() -> bool:
    """Whether torch.compile follows the code that runs now."""
    import torch

    return torch.compiler.is_compiling()


def is_one_number(index: Array) -> bool:
    """Whether it is one number, and the host can look at it."""
    return prod(index.shape) == 1 and on_host(index)


def numbers_beside(rows: Array, numbers: Array) -> bool:
    """Whether rows are torch's and the numbers that go with them numpy's, as in ``on_numbers_of_host``."""
    return isinstance(numbers, np.ndarray) and is_torch_array(rows)


def rows_for_loops(*rows: Array) -> bool:
    """Whether the loops of ``row_kernels`` can read all of them: long rows of plain tensors of the host.

    Nothing follows what is computed from them: no derivative, no counter of operators, no compiler.
    """
    if not is_torch_array(rows[0]) or not on_host(rows[0]) or rows[0].shape[-1] < 2 * BLOCK:
        return False
    from torch.utils._python_dispatch import is_in_torch_dispatch_mode

    return not is_in_torch_dispatch_mode() and are_plain(rows, rows)


def plain_on_host(*arrays: Array) -> bool:
    """Whether they are torch tensors of one kind of floats that numpy can see, and nothing follows them."""
    if not is_torch_array(arrays[0]) or not on_host(arrays[0]) or arrays[0].itemsize == 2:
        return False
    from torch.utils._python_dispatch import is_in_torch_dispatch_mode

    return not is_in_torch_dispatch_mode() and are_plain([], arrays)


def are_plain(rows: Sequence[Array], given: Sequence[Array]) -> bool:
    """Whether a kernel can read these tensors: of one kind of floats, without derivatives."""
    import torch
    from torch.autograd.forward_ad import unpack_dual

    first = given[0]
    return (
        first.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        and all(type(array) is torch.Tensor and array.dtype is first.dtype for array in given)
        and all(array.stride(-1) == 1 and array.shape[-1] == first.shape[-1] for array in rows)
        and not any(array.requires_grad or unpack_dual(array).tangent is not None for array in given)
    )


def use_row_kernel(
    rows: Sequence[Array],
    per_row: Sequence[Array | None] = (),
    num_entries: float | None = None,
    on_device: bool = True,
) -> bool:
    """Whether an operator of ``row_kernels`` applies: a loop to long rows of torch in the memory of the
    host, a Triton kernel to any rows on a CUDA device.

    They have no derivatives.  The choice depends on the number of entries, so the last bits of a sum may
    depend on the size of a batch.

    Args:
        rows: [..., V], the entries of a row side by side in memory.
        per_row: numbers that go with them, or ``None``.
        num_entries: how many are read of each; by default all of the first.
        on_device: whether there is a kernel for a device too.
    """
    first = rows[0]
    if not is_torch_array(first) or compiling():
        return False
    if on_host(first):
        many = (first.numel() if num_entries is None else num_entries) >= WORTH_A_LOOP
        if first.shape[-1] < 2 * BLOCK or not many:
            return False
    elif not (on_device and _kernels_work_on(first.device, first.dtype)):
        return False
    return are_plain(rows, [*rows, *(array for array in per_row if array is not None)])


def sums_by_kernel(rows: Array, other: Array, *scales: Array) -> bool:
    """Whether ``use_row_kernel`` holds for residual masses: rows of one shape, and a scale for each."""
    fits = rows.shape == other.shape and all(scale.shape == rows.shape[:-1] for scale in scales)
    return fits and use_row_kernel((rows, other), scales)


def draws_by_kernel(rows: Array, uniform: Array) -> bool:
    """Whether ``use_row_kernel`` holds for a draw from rows, [..., V], by uniform numbers, [..., 1]."""
    fits = uniform.shape[:-1] == rows.shape[:-1]
    return fits and use_row_kernel((rows,), num_entries=prod(rows.shape) / DRAW_WORTH_A_LOOP)


def sorts_by_loop(keys: Array) -> bool:
    """Whether ``use_row_kernel`` holds for a sort, for which there is a loop of the host only."""
    return use_row_kernel((keys,), num_entries=prod(keys.shape) / SORT_WORTH_A_LOOP, on_device=False)


def on_device_with_kernels(*given: Array) -> bool:
    """Whether a Triton kernel can read these tensors: of one kind of floats, on a CUDA device."""
    first = given[0]
    if not is_torch_array(first) or on_host(first) or compiling():
        return False
    return _kernels_work_on(first.device, first.dtype) and are_plain((), given)


@cache
def _kernels_work_on(device: Any, dtype: Any) -> bool:
    if device.type != "cuda" or find_spec("triton") is None:
        return False
    from spectheory.foundation.kernels import triton_rows

    return triton_rows.work_on(device, dtype)


def row_kernels() -> ModuleType:
    """The loops, imported when the first of them is used: numba takes a second."""
    from spectheory.foundation.kernels import row_kernels

    return row_kernels


_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quiet_floats() -> Iterator[None]:
    """Floats overflow and are divided by 0 without a warning, which is faster said once than always."""
    before = _QUIET.set(True)
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            yield
    finally:
        _QUIET.reset(before)


def on_device_of(like: Array, table: np.ndarray, dtype: Any = None) -> Array:
    """A table of numpy as an array beside ``like``.

    To a CUDA device a small one goes once: the host would wait for every copy.
    """
    if is_torch_array(like) and like.device.type == "cuda" and table.size <= SMALL_TABLE and not compiling():
        return _kept_on_device(table.tobytes(), table.dtype.str, table.shape, dtype, like.device).clone()
    return array_namespace(like).asarray(table, dtype=dtype, device=like.device)


@lru_cache(maxsize=256)
def _kept_on_device(entries: bytes, kind: str, shape: tuple[int, ...], dtype: Any, device: Any) -> Array:
    import torch

    return torch.tensor(np.frombuffer(entries, kind).reshape(shape), dtype=dtype, device=device)


def is_quiet() -> bool:
    """Whether ``quiet_floats`` is in force."""
    return _QUIET.get()

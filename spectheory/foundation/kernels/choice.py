"""Choose how rows are computed: by numpy or torch operators, by a loop on the host, or by a Triton kernel.

It also chooses how many texts are computed at a time, and in which memory.  Only this module chooses.  The
residual masses and rows, ``draw``, ``argsort`` and the ratios of scored selection call it.  The choice
changes results only through the order of sums.
"""

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array

Array = Any
"""A numpy array (object or float64) or a torch tensor."""

BLOCK = 256
"""The number of entries of a long row that are first summed: about the square root of a vocabulary size."""
# With fewer entries, torch's dispatcher costs more than the passes over memory that a loop saves
# (benchmarks/beside_loops.py).
WORTH_A_LOOP: float = 1 << 17
"""The number of entries from which a loop of ``row_kernels`` is faster than a few operators."""
DRAW_WORTH_A_LOOP = 1 / 256
"""The threshold for a draw, as a fraction of ``WORTH_A_LOOP``: here a loop replaces thirty operators."""
SORT_WORTH_A_LOOP = 1 / 32
"""The same fraction for a sort, where a loop replaces a sort by comparisons."""
LARGE = 1 << 22
"""The number of bytes from which fresh memory asks for large pages, as numpy does."""
SMALL_TABLE = 1 << 12
"""The largest table, in entries, that is kept on a device."""


def on_host(array: Array) -> bool:
    """True if the host can read an entry without waiting for an accelerator, and torch does not compile."""
    return not is_torch_array(array) or (array.device.type == "cpu" and not compiling())


def compiling() -> bool:
    """True if torch.compile traces the code that runs now."""
    import torch

    return torch.compiler.is_compiling()


def is_one_number(index: Array) -> bool:
    """True if the array has one entry and the host can read it without waiting."""
    return prod(index.shape) == 1 and on_host(index)


def is_large_on_host(array: Array) -> bool:
    """True for a torch tensor on the host that fills many pages of memory."""
    return is_torch_array(array) and array.nbytes >= LARGE and on_host(array)


def room_like(array: Array, shape: Sequence[int] | None = None, dtype: Any = None) -> Array:
    """Return an array of undefined entries, by default of the shape and dtype of ``array``.

    A large torch tensor on the host gets large pages, because the first write to a page of 4 KiB takes
    several times as long as the write itself.
    """
    shape = tuple(array.shape if shape is None else shape)
    if not is_torch_array(array):
        return np.empty(shape, dtype or array.dtype)
    room = array.new_empty(shape, dtype=dtype)
    advice = getattr(mmap, "MADV_HUGEPAGE", None)  # on Linux only
    if advice is not None and is_large_on_host(room):
        start = -(-room.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        size = room.data_ptr() + room.nbytes - start
        _libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(size - size % mmap.PAGESIZE), advice)
    return room


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)


def parts_of(rows: Array) -> list[Any]:
    """Divide a batch of rows [B, .., V] into parts, which are computed one after the other.

    The intermediate arrays of a part are small, so that their memory is used again and needs no new pages.

    Returns:
        Slices of the first axis.  If there is nothing to gain, it is one index, ``...``.
    """
    if not is_torch_array(rows) or rows.ndim < 2 or not on_host(rows):
        return [...]
    import torch

    # A part has a text for every thread, and enough entries for the loops that a large batch takes.
    number = min(len(rows) // torch.get_num_threads(), int(rows.numel() // WORTH_A_LOOP))
    if number < 2:
        return [...]
    ends = np.linspace(0, len(rows), number + 1).astype(int).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def numbers_beside(rows: Array, numbers: Array) -> bool:
    """True if rows are torch tensors and their numbers are numpy arrays, as in ``on_numbers_of_host``."""
    return isinstance(numbers, np.ndarray) and is_torch_array(rows)


def rows_for_loops(*rows: Array) -> bool:
    """True if the loops of ``row_kernels`` can read all rows: long rows of plain tensors on the host.

    Nothing may track the computation: no derivative, no counter of operators, no compiler.
    """
    if not is_torch_array(rows[0]) or not on_host(rows[0]) or rows[0].shape[-1] < 2 * BLOCK:
        return False
    from torch.utils._python_dispatch import is_in_torch_dispatch_mode

    return not is_in_torch_dispatch_mode() and are_plain(rows, rows)


def plain_on_host(*arrays: Array) -> bool:
    """True if the arrays are torch tensors of one float dtype that numpy has, and nothing tracks them."""
    if not is_torch_array(arrays[0]) or not on_host(arrays[0]) or arrays[0].itemsize == 2:
        return False
    from torch.utils._python_dispatch import is_in_torch_dispatch_mode

    return not is_in_torch_dispatch_mode() and are_plain([], arrays)


def are_plain(rows: Sequence[Array], given: Sequence[Array]) -> bool:
    """True if a kernel can read these tensors: plain torch tensors of one float dtype, without derivatives.

    Args:
        rows: tensors [..., V] with contiguous last dimension, which must be as long as that of ``given[0]``.
        given: all tensors that the kernel reads.
    """
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
    """True if a row kernel may process these rows.

    A row kernel is a compiled loop for long torch rows on the host, or a Triton kernel for any rows on CUDA.
    Kernels have no derivatives.  The choice depends on the number of entries, so the last bits of a sum may
    depend on the batch size.

    Args:
        rows: [..., V], with the entries of a row adjacent in memory.
        per_row: arrays of numbers per row, or ``None``.
        num_entries: the number of entries read of each array; by default the size of the first.
        on_device: True if there is a Triton kernel for this operation.
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
    """True if a row kernel can sum residuals.

    Both arrays have one shape, each scale has one number per row, and ``use_row_kernel`` is true.
    """
    fits = rows.shape == other.shape and all(scale.shape == rows.shape[:-1] for scale in scales)
    return fits and use_row_kernel((rows, other), scales)


def draws_by_kernel(rows: Array, uniform: Array) -> bool:
    """True if ``use_row_kernel`` holds for a draw from rows [..., V] with uniform numbers [..., 1]."""
    fits = uniform.shape[:-1] == rows.shape[:-1]
    return fits and use_row_kernel((rows,), num_entries=prod(rows.shape) / DRAW_WORTH_A_LOOP)


def sorts_by_loop(*rows: Array) -> bool:
    """True if ``use_row_kernel`` holds for a sort or a ranking, which have loops on the host only."""
    return use_row_kernel(rows, num_entries=prod(rows[0].shape) / SORT_WORTH_A_LOOP, on_device=False)


def on_device_with_kernels(*given: Array) -> bool:
    """True if a Triton kernel can read these tensors: they have one float dtype and are on a CUDA device."""
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
    """Import and return the module of loops.  It is imported on first use, because numba takes a second."""
    from spectheory.foundation.kernels import row_kernels

    return row_kernels


_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quiet_floats() -> Iterator[None]:
    """Switch off warnings of overflow and division by 0, once, which is faster than for each operation."""
    before = _QUIET.set(True)
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            yield
    finally:
        _QUIET.reset(before)


def on_device_of(like: Array, table: np.ndarray, dtype: Any = None) -> Array:
    """Convert a numpy table to the library and device of ``like``.

    Small tables are kept on a CUDA device, because the host would wait for every copy.
    """
    if is_torch_array(like) and like.device.type == "cuda" and table.size <= SMALL_TABLE and not compiling():
        return _kept_on_device(table.tobytes(), table.dtype.str, table.shape, dtype, like.device).clone()
    xp = np if type(like) is np.ndarray else array_namespace(like)
    return xp.asarray(table, dtype=dtype, device=like.device)


@lru_cache(maxsize=256)
def _kept_on_device(entries: bytes, kind: str, shape: tuple[int, ...], dtype: Any, device: Any) -> Array:
    import torch

    return torch.tensor(np.frombuffer(entries, kind).reshape(shape), dtype=dtype, device=device)


def is_quiet() -> bool:
    """True inside the context ``quiet_floats``."""
    return _QUIET.get()

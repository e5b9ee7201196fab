"""Loops over long rows on the host: every row is read once, and nothing that lies between is written.

torch multiplies, subtracts, takes the positive part and sums in four passes over memory, and draws from a row
in thirty operators.  These loops are the same formulas with the same roundings, but for the order of a sum.
``arrays``, ``correction_rows`` and ``outcome`` choose between the two ways; nobody else calls this module.

The loops read memory by place, so their operators refuse arguments that do not belong together.  They are
operators of torch, ``torch.ops.spectheory``, so that whatever counts operators sees them.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.foundation.kernels.loops import compiled_loop

AT_ONCE = 1024
"""How many entries are summed in the precision of the rows, before they join a sum in float64."""

WORTH_A_THREAD = 1 << 18
"""How many entries a thread must be given to pay for its start."""

WORTH_OF_A_SORT = 8
"""How many entries are read in the time in which one is sorted."""

DIGIT = 11
"""How many bits of a number are sorted by at once: two thousand counters stay in the nearest cache."""

NO_ROW = -1
"""The place of a row of zeros."""


def _loop(signature: str, sums_in_any_order: bool = False) -> Callable[[Callable], Callable]:
    """Compile a loop for one kind of entries, "real" in the signature, when it first meets rows of it.

    Every kind is a function of its own: numba numbers the kinds of one function as they come, so that two
    processes could mix them up on the disk.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @lru_cache
        def compiled(kind: np.dtype) -> Callable[..., Any]:
            name = f"{function.__name__}_{kind}"
            of_kind = FunctionType(function.__code__, function.__globals__, name)
            return compiled_loop(signature.replace("real", str(kind)), sums_in_any_order=sums_in_any_order)(
                of_kind
            )

        return lambda rows, *others: compiled(rows.dtype)(rows, *others)

    return decorate


_OF_TWO_TERMS = "(real[::1], int64[::1], real[::1], real[::1], int64[::1], real[::1], int64, real[::1])"


@_loop(_OF_TWO_TERMS, sums_in_any_order=True)
def _masses(
    rows: Any, at: Any, scales: Any, others: Any, other_at: Any, other_scales: Any, size: int, out: Any
) -> None:
    """out_n = sum_x max(scale_n rows(at_n + x) - other_scale_n others(other_at_n + x), 0)."""
    for n in range(len(at)):
        row, other = rows[at[n] : at[n] + size], others[other_at[n] : other_at[n] + size]
        scale, other_scale = scales[n], other_scales[n]
        zero, total = rows.dtype.type(0), 0.0
        for first in range(0, size, AT_ONCE):
            entries, beside = row[first : first + AT_ONCE], other[first : first + AT_ONCE]
            part = zero
            for x in range(len(entries)):
                excess = scale * entries[x] - other_scale * beside[x]
                part += zero if excess < 0 else excess
            total += part
        out[n] = total


@_loop(_OF_TWO_TERMS)
def _rows(
    rows: Any, at: Any, scales: Any, others: Any, other_at: Any, other_scales: Any, size: int, out: Any
) -> None:
    """out(n size + x) = max(scale_n rows(at_n + x) - other_scale_n others(other_at_n + x), 0)."""
    for n in range(len(at)):
        row, written = rows[at[n] : at[n] + size], out[n * size : (n + 1) * size]
        scale, other_scale = scales[n], other_scales[n]
        zero = rows.dtype.type(0)
        if other_at[n] == NO_ROW:
            for x in range(size):
                excess = scale * row[x]
                written[x] = zero if excess < 0 else excess
            continue
        other = others[other_at[n] : other_at[n] + size]
        for x in range(size):
            excess = scale * row[x] - other_scale * other[x]
            written[x] = zero if excess < 0 else excess


@compiled_loop(sums_in_any_order=True, part_of_others=True)
def _sum(entries: Any) -> float:
    total = 0.0
    for x in range(len(entries)):
        total += entries[x]
    return total


# Here sums go from left to right: an entry without mass repeats the sum before it, and is never drawn.
@compiled_loop(part_of_others=True)
def _first_beyond(weights: Any, uniform: float) -> tuple[int, float, float]:
    """(where the cumulative share of the total first exceeds u, that share, the total)."""
    total = 0.0
    for x in range(len(weights)):
        total += 0.0 if weights[x] < 0 else weights[x]
    share, cumulative = 0.0, 0.0
    for x in range(len(weights)):
        cumulative += 0.0 if weights[x] < 0 else weights[x]
        share = cumulative / total
        if share > uniform:
            return x, share, total
    return len(weights) - 1, share, total


@_loop("(real[::1], int64[::1], float64[::1], int64, int64, float64[::1], int64[::1], float64[::1])")
def _draws(
    rows: Any, at: Any, uniforms: Any, size: int, block: int, sums: Any, numbers: Any, masses: Any
) -> None:
    """numbers_n, drawn in proportion to rows(at_n + x), and masses_n; see ``outcome.sample_rows``."""
    for n in range(len(at)):
        row, uniform = rows[at[n] : at[n] + size], uniforms[n]
        if size < 2 * block:
            numbers[n], _, masses[n] = _first_beyond(row, uniform)
            continue
        for b in range(len(sums)):
            sums[b] = _sum(row[b * block : (b + 1) * block])
        b, share, masses[n] = _first_beyond(sums, uniform)
        left = 1 - (share - uniform) / (sums[b] / masses[n])  # below 1, see ``outcome._left``
        left = 0.0 if left < 0 else left
        numbers[n] = b * block + _first_beyond(row[b * block : (b + 1) * block], left)[0]


@_loop("(real[::1], int64[::1], int64, real, int64[:, ::1], real[:, ::1], int32[:, ::1], int64[::1])")
def _orders(
    bits: Any, at: Any, size: int, infinity: Any, counts: Any, codes: Any, places: Any, orders: Any
) -> None:
    """orders(n size + i): the place of the i-th smallest entry of a row, of which the bits are given.

    A radix sort, ``DIGIT`` bits at a time from the last ones on, so that ties keep their order.  Before it,
    bits become whole numbers in the order of the entries: 0 and -0 are one, and what is no number is the
    largest.
    """
    kind, width = bits.dtype.type, 8 * bits.itemsize
    one, mask = kind(1), kind((1 << DIGIT) - 1)
    sign = one << kind(width - 1)
    passes = len(counts)
    code_of, moved, order, moved_order = codes[0], codes[1], places[0], places[1]
    for n in range(len(at)):
        for digit in range(passes):
            for value in range(counts.shape[1]):
                counts[digit, value] = 0
        for x in range(size):
            entry = bits[at[n] + x]
            magnitude = entry & ~sign
            if magnitude > infinity:
                code = ~kind(0)
            elif magnitude == 0:
                code = sign
            elif entry & sign:
                code = ~entry
            else:
                code = entry | sign
            code = kind(code)  # whole numbers are computed with in 64 bits
            code_of[x], order[x] = code, x
            for digit in range(passes):
                counts[digit, (code >> kind(digit * DIGIT)) & mask] += 1
        for digit in range(passes):
            shift, count = kind(digit * DIGIT), counts[digit]
            if count[(code_of[0] >> shift) & mask] == size:
                continue
            first = 0
            for value in range(len(count)):
                first, count[value] = first + count[value], first
            for x in range(size):
                value = (code_of[x] >> shift) & mask
                place = count[value]
                moved[place], moved_order[place] = code_of[x], order[x]
                count[value] = place + 1
            code_of, moved, order, moved_order = moved, code_of, moved_order, order
        for x in range(size):
            orders[n * size + x] = order[x]


def _sort(keys: Tensor) -> tuple[Tensor, Tensor]:
    size, width = keys.shape[-1], keys.itemsize
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[width]
    as_bits = keys.view(whole)
    order = as_bits.new_empty(keys.shape, dtype=torch.int64)
    if order.numel():
        bits = _memory(as_bits).view(f"uint{8 * width}")
        infinity = keys.new_tensor(math.inf).view(whole).numpy().view(bits.dtype)[()]
        places, orders = _places(keys).ravel(), order.numpy().ravel()

        def portion(start: int, end: int) -> None:
            counts = np.empty((-(-8 * width // DIGIT), 1 << DIGIT), np.int64)
            room = np.empty((2, size), bits.dtype), np.empty((2, size), np.int32)
            found = orders[start * size : end * size]
            _orders(bits, places[start:end], size, infinity, counts, *room, found)

        _in_threads(portion, len(places), size * WORTH_OF_A_SORT)
    return as_bits.gather(-1, order).view(keys.dtype), order


def _draw(rows: Tensor, uniform: Tensor, block: int) -> tuple[Tensor, Tensor]:
    size = rows.shape[-1]
    _refuse_unless(uniform.shape == rows.shape[:-1], "a uniform number per row", uniform.shape)
    numbers = rows.new_empty(rows.shape[:-1], dtype=torch.int64)
    masses = rows.new_empty(rows.shape[:-1], dtype=torch.float64)
    if numbers.numel():
        drawn = numbers.numpy().ravel(), masses.numpy().ravel()
        at, uniforms = _places(rows).ravel(), uniform.double().numpy().flatten()
        _draws(_memory(rows), at, uniforms, size, block, np.empty(-(-size // block)), *drawn)
    return numbers, masses


def _residual_mass(rows: Tensor, other: Tensor, scale: Tensor | None, other_scale: Tensor | None) -> Tensor:
    _refuse_unless(rows.shape == other.shape, "rows of one shape", rows.shape, other.shape)
    out = rows.new_empty(rows.shape[:-1])
    _run(_masses, out, (rows, _places(rows), scale), (other, _places(other), other_scale))
    return out


def _residual_at_stops(
    target_rows: Tensor,
    draft_rows: Tensor,
    path_index: Tensor,
    length: Tensor,
    scale: Tensor | None,
    draft_scale: Tensor | None,
) -> Tensor:
    *batch, paths, depths, size = target_rows.shape
    fits = draft_rows.shape == (*batch, paths, depths - 1, size)
    fits = fits and path_index.shape == length.shape == tuple(batch)
    given = target_rows.shape, draft_rows.shape, path_index.shape, length.shape
    _refuse_unless(fits, "[..., K, L+1, V], [..., K, L, V], [...], [...]", *given)
    path, depth = path_index.numpy().astype(np.int64), length.numpy().astype(np.int64)
    if path.size and not (0 <= path.min() <= path.max() < paths and 0 <= depth.min() <= depth.max() < depths):
        raise IndexError(f"a stop lies outside of {paths} paths of 0 to {depths - 1} tokens")
    at, beside = (
        _places(rows[..., 0, 0, :]) + path * rows.stride(-3) + depth * rows.stride(-2)
        for rows in (target_rows, draft_rows)
    )
    beside = np.where(depth == depths - 1, NO_ROW, beside)
    out = target_rows.new_empty((*batch, size))
    _run(_rows, out, (target_rows, at, scale), (draft_rows, beside, draft_scale))
    return out


def _refuse_unless(fits: bool, expected: str, *shapes: Any) -> None:
    if not fits:
        raise ValueError(f"expected {expected}, got shapes {', '.join(map(str, map(tuple, shapes)))}")


_LIBRARY = torch.library.Library("spectheory", "DEF")
for _signature, _operator in (
    (
        "residual_mass(Tensor rows, Tensor other, Tensor? scale, Tensor? other_scale) -> Tensor",
        _residual_mass,
    ),
    (
        "residual_at_stops(Tensor target_rows, Tensor draft_rows, Tensor path_index, Tensor length,"
        " Tensor? scale, Tensor? draft_scale) -> Tensor",
        _residual_at_stops,
    ),
    ("draw(Tensor rows, Tensor uniform, int block) -> (Tensor, Tensor)", _draw),
    ("sort(Tensor keys) -> (Tensor, Tensor)", _sort),
):
    _LIBRARY.define(_signature)
    _LIBRARY.impl(_signature.partition("(")[0], _operator, "CPU")

residual_mass = torch.ops.spectheory.residual_mass.default
residual_at_stops = torch.ops.spectheory.residual_at_stops.default
draw = torch.ops.spectheory.draw.default
sort = torch.ops.spectheory.sort.default


def _places(rows: Tensor) -> np.ndarray:
    """Where each row begins, in entries from the first one.  [..., V] -> [...]"""
    return _row_places(rows.shape[:-1], rows.stride()[:-1])


@lru_cache(maxsize=256)
def _row_places(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    places = np.zeros((), dtype=np.int64)
    for size, stride in zip(shape, strides, strict=True):
        places = places[..., None] + stride * np.arange(size)
    return places


def _run(kernel: Callable[..., None], out: Tensor, *terms: tuple[Tensor, np.ndarray, Tensor | None]) -> None:
    """Fill ``out`` from the two terms of a difference: the memory of rows, where rows begin, their scales."""
    if not out.numel():
        return
    size, count = terms[0][0].shape[-1], terms[0][1].size
    one, other = (
        (_memory(rows), places.ravel(), _scales(scale, places.shape, out.dtype))
        for rows, places, scale in terms
    )
    written = out.numpy().ravel()
    entries_per_row = written.size // count

    def portion(start: int, end: int) -> None:
        part = slice(start, end)
        here = written[start * entries_per_row : end * entries_per_row]
        kernel(one[0], one[1][part], one[2][part], other[0], other[1][part], other[2][part], size, here)

    _in_threads(portion, count, size)


def _in_threads(portion: Callable[[int, int], None], count: int, size: int) -> None:
    """Do the rows 0..count-1 of so many entries, neighbouring ones in one thread."""
    threads = min(torch.get_num_threads(), count, 1 + count * size // WORTH_A_THREAD)
    if threads == 1:
        portion(0, count)
        return
    ends = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(portion, ends, ends[1:]))


def _memory(rows: Tensor) -> np.ndarray:
    """The memory from the first to the last entry of the rows, without a copy."""
    _refuse_unless(rows.stride(-1) == 1, "the entries of a row side by side", rows.shape)
    span = 1 + sum((size - 1) * stride for size, stride in zip(rows.shape, rows.stride(), strict=True))
    return rows.as_strided((span,), (1,)).numpy()


def _scales(scale: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype) -> np.ndarray:
    if scale is None:
        return _ones(math.prod(shape), dtype)
    _refuse_unless(scale.shape == shape, "a scale per row", scale.shape)
    return scale.numpy().flatten()  # a copy: one kind of array, whatever the strides


@lru_cache(maxsize=256)
def _ones(count: int, dtype: torch.dtype) -> np.ndarray:
    return torch.ones(count, dtype=dtype).numpy()

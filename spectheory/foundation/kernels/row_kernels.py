"""Loops over long rows on the host: every row is read once, and no intermediate array is written.

torch multiplies, subtracts, takes the positive part and sums in four passes over memory, and draws from a row
in thirty operators.  These loops use the same formulas with the same roundings, except the order of a sum.
Rows in half precision are read without a copy, and computed in float32.

Each loop has two interfaces.  One takes torch rows and numpy numbers, and has little overhead
(``masses``, ``residuals``, ``draws``, ``entries``).  The other is a torch operator in
``torch.ops.spectheory`` for torch numbers, so that tools that count operators see it.  On a CUDA device this
operator is a kernel of ``triton_rows``.  The loops read memory by address, so all check that the shapes of
their arguments fit.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.foundation.kernels.loops import compiled_loop
from spectheory.foundation.kernels.places import refuse_unless, row_places
from spectheory.foundation.kernels.stored_numbers import KINDS, STORED, loop_of_kinds

AT_ONCE = 1024
"""The number of entries that are summed in the precision of the rows, before the sum is added in float64."""

WORTH_A_THREAD = 1 << 18
"""The number of entries per thread that pays for starting the thread."""

WORTH_OF_A_SORT = 8
"""The number of entries that are read in the time of sorting one."""

DIGIT = 11
"""The number of bits per pass of the radix sort: two thousand counters fit into the first-level cache."""

NO_ROW = -1
"""The offset that stands for a row of zeros."""

row_at: Any = None
number: Any = None
REAL: Any = None
"""Placeholders, which ``loop_of_kinds`` sets for each dtype."""

_OF_TWO_TERMS = "(int64, int64[::1], real[::1], int64, int64[::1], real[::1], int64, {out})"


@loop_of_kinds(_OF_TWO_TERMS.format(out="real[::1]"), sums_in_any_order=True)
def _masses(
    rows: Any, at: Any, scales: Any, others: Any, other_at: Any, other_scales: Any, size: int, out: Any
) -> None:
    """Write out_n = sum_x max(scale_n rows(at_n + x) - other_scale_n others(other_at_n + x), 0)."""
    for n in range(len(at)):
        row, other = row_at(rows, at[n], size), row_at(others, other_at[n], size)
        scale, other_scale = scales[n], other_scales[n]
        zero, total = REAL(0), 0.0
        for first in range(0, size, AT_ONCE):
            entries, beside = row[first : first + AT_ONCE], other[first : first + AT_ONCE]
            part = zero
            for x in range(len(entries)):
                excess = scale * number(entries[x]) - other_scale * number(beside[x])
                part += zero if excess < 0 else excess
            total += part
        out[n] = total


@loop_of_kinds(_OF_TWO_TERMS.format(out="real[::1]"))
def _rows(
    rows: Any, at: Any, scales: Any, others: Any, other_at: Any, other_scales: Any, size: int, out: Any
) -> None:
    """Write out(n size + x) = max(scale_n rows(at_n + x) - other_scale_n others(other_at_n + x), 0)."""
    for n in range(len(at)):
        row, written = row_at(rows, at[n], size), out[n * size : (n + 1) * size]
        scale, other_scale = scales[n], other_scales[n]
        zero = REAL(0)
        if other_at[n] == NO_ROW:
            for x in range(size):
                excess = scale * number(row[x])
                written[x] = zero if excess < 0 else excess
            continue
        other = row_at(others, other_at[n], size)
        for x in range(size):
            excess = scale * number(row[x]) - other_scale * number(other[x])
            written[x] = zero if excess < 0 else excess


@loop_of_kinds("(int64, int64[::1], int64[::1], int64, real[::1])")
def _entries(rows: Any, at: Any, tokens: Any, size: int, out: Any) -> bool:
    """Write out_n = rows(at_n + token_n).  Return False if a token is out of range."""
    for n in range(len(at)):
        if not 0 <= tokens[n] < size:
            return False
        out[n] = number(row_at(rows, at[n] + tokens[n], 1)[0])
    return True


@compiled_loop(f"(int64[::1], int64[::1], int64[::1], int64[::1]{6 * ', int64'})")
def _stop_places(
    at: Any, beside: Any, path: Any, depth: Any, paths: int, depths: int, by_path: int, by_depth: int,
    other_by_path: int, other_by_depth: int,
) -> bool:  # fmt: skip
    """Advance at_n and beside_n in place to the rows at stop n.  Return False if a stop is out of range."""
    for n in range(len(at)):
        if not (0 <= path[n] < paths and 0 <= depth[n] < depths):
            return False
        at[n] += path[n] * by_path + depth[n] * by_depth
        if depth[n] == depths - 1:
            beside[n] = NO_ROW
        else:
            beside[n] += path[n] * other_by_path + depth[n] * other_by_depth
    return True


@compiled_loop(sums_in_any_order=True, part_of_others=True)
def _sum(entries: Any) -> float:
    total = 0.0
    for x in range(len(entries)):
        total += entries[x]
    return total


@compiled_loop(sums_in_any_order=True, part_of_others=True)
def _sum_and_lowest(entries: Any) -> tuple[float, float]:
    """Return the sum and min(smallest entry, 0).  If an entry is NaN, the sum is NaN."""
    total, below, lowest = 0.0, 0, 0.0
    for x in range(len(entries)):
        total += entries[x]
        below += entries[x] < 0
    if below:
        for x in range(len(entries)):
            lowest = entries[x] if entries[x] < lowest else lowest
    return total, lowest


# This sums from left to right: an entry without mass repeats the sum before it, so it is never drawn.
@compiled_loop(part_of_others=True)
def _first_beyond(weights: Any, uniform: float) -> tuple[int, float, float]:
    """Return (index, share, total) for the first index whose cumulative share of the total exceeds u.

    Negative weights count as 0.
    """
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


@loop_of_kinds("(int64, int64[::1], int64, float64[::1], float64[::1])")
def _sums_and_lowest(rows: Any, at: Any, size: int, sums: Any, lowest: Any) -> None:
    for n in range(len(at)):
        row = row_at(rows, at[n], size)
        sums[n], lowest[n] = 0.0, 0.0
        for first in range(0, size, AT_ONCE):
            total, smallest = _sum_and_lowest(row[first : first + AT_ONCE])
            sums[n], lowest[n] = sums[n] + total, min(lowest[n], smallest)


@loop_of_kinds(
    "(int64, int64[::1], float64[::1], int64, int64, float64[::1], int64[::1], float64[::1],"
    " float64[::1], float64[::1])"
)
def _draws(
    rows: Any, at: Any, uniforms: Any, size: int, block: int, sums: Any, numbers: Any, masses: Any,
    totals: Any, lowest: Any,
) -> None:  # fmt: skip
    """Draw numbers_n in proportion to rows(at_n + x), and write masses_n; see ``outcome.sample_rows``.

    Also write the results of ``_sums_and_lowest``.
    """
    for n in range(len(at)):
        row, uniform = row_at(rows, at[n], size), uniforms[n]
        if size < 2 * block:
            numbers[n], _, masses[n] = _first_beyond(row, uniform)
            totals[n], lowest[n] = _sum_and_lowest(row)
            continue
        totals[n], lowest[n] = 0.0, 0.0
        for b in range(len(sums)):
            sums[b], smallest = _sum_and_lowest(row[b * block : (b + 1) * block])
            totals[n], lowest[n] = totals[n] + sums[b], min(lowest[n], smallest)
        b, share, masses[n] = _first_beyond(sums, uniform)
        left = 1 - (share - uniform) / (sums[b] / masses[n])  # below 1, see ``row_draws._left``
        left = 0.0 if left < 0 else left
        numbers[n] = b * block + _first_beyond(row[b * block : (b + 1) * block], left)[0]


@loop_of_kinds("(real[::1], int64[::1], int64, real, int64[:, ::1], real[:, ::1], int32[:, ::1], int64[::1])")
def _orders(
    bits: Any, at: Any, size: int, infinity: Any, counts: Any, codes: Any, places: Any, orders: Any
) -> None:
    """Write to orders(n size + i) the index of the i-th smallest entry of row n, given the bits of the rows.

    This is a radix sort, ``DIGIT`` bits at a time from the lowest, so that ties keep their order.  First the
    bits are mapped to integers in the order of the entries: 0 and -0 are equal, and NaN is the largest.
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
            code = kind(code)  # numba computes with integers in 64 bits
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


@loop_of_kinds("(int64, int64[::1], int64, int64[::1], int64, uint32, float32[::1], float64[::1], real[::1])")
def _masses_up_to(
    rows: Any, at: Any, others: Any, other_at: Any, size: int, cut: Any, ratios: Any, sums: Any, out: Any
) -> None:
    """Write to out(n size + x) the sum of others(other_at_n + y) over x and all y ranked below it.

    Rank is by rows/others in float32 without its last ``cut`` bits, then by place.
    """
    bits, mask = ratios.view(np.uint32), np.uint32(len(sums) - 1)
    for n in range(len(at)):
        row, other = row_at(rows, at[n], size), row_at(others, other_at[n], size)
        written = out[n * size : (n + 1) * size]
        for x in range(size):
            ratios[x] = number(row[x]) / number(other[x])
        for c in range(len(sums)):
            sums[c] = 0.0
        for x in range(size):
            sums[(bits[x] >> cut) & mask] += number(other[x])
        below = 0.0
        for c in range(len(sums)):
            sums[c], below = below, below + sums[c]
        for x in range(size):
            place = (bits[x] >> cut) & mask
            sums[place] += number(other[x])
            written[x] = sums[place]


def mass_of_ratios_up_to(target_rows: Tensor, draft_rows: Tensor, kept_bits: int) -> Tensor:
    """Compute ``mass_ranked_up_to`` in the ranking by the first bits of p/q after the sign, in float32."""
    kind, size, given = kind_of(draft_rows), draft_rows.shape[-1], (target_rows, draft_rows)
    refuse_unless(target_rows.shape == draft_rows.shape, "rows of one shape", *(rows.shape for rows in given))
    out = np.empty(draft_rows.shape, STORED[kind][1])
    written, (at, beside) = out.ravel(), map(places_of, given)

    def portion(start: int, end: int) -> None:
        room = np.empty(size, np.float32), np.empty(1 << kept_bits)
        rows = target_rows.data_ptr(), at[start:end], draft_rows.data_ptr(), beside[start:end]
        found = written[start * size : end * size]
        _masses_up_to(kind)(*rows, size, np.uint32(31 - kept_bits), *room, found)

    in_threads(portion, len(at), size * WORTH_OF_A_SORT)
    return torch.from_numpy(out).to(draft_rows.dtype)


def _argsort(keys: Tensor) -> Tensor:
    size, width = keys.shape[-1], keys.itemsize
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[width]
    as_bits = keys.view(whole)
    order = as_bits.new_empty(keys.shape, dtype=torch.int64)
    if order.numel():
        kind = f"uint{8 * width}"
        bits = _memory(as_bits).view(kind)
        infinity = keys.new_tensor(math.inf).view(whole).numpy().view(bits.dtype)[()]
        places, orders = places_of(keys), order.numpy().ravel()

        def portion(start: int, end: int) -> None:
            counts = np.empty((-(-8 * width // DIGIT), 1 << DIGIT), np.int64)
            room = np.empty((2, size), bits.dtype), np.empty((2, size), np.int32)
            found = orders[start * size : end * size]
            _orders(kind)(bits, places[start:end], size, infinity, counts, *room, found)

        in_threads(portion, len(places), size * WORTH_OF_A_SORT)
    return order


def entries(rows: Tensor, tokens: np.ndarray) -> np.ndarray:
    """Take rows[..., token], one entry of each row; half precision becomes float32.  [..., V], [...]"""
    size = rows.shape[-1]
    refuse_unless(rows.shape[:-1] == tokens.shape, "a token per row", rows.shape, tokens.shape)
    kind = kind_of(rows)
    out = np.empty(tokens.shape, STORED[kind][1])
    if out.size:
        chosen = flat_numbers(tokens, np.int64)
        if not _entries(kind)(rows.data_ptr(), places_of(rows), chosen, size, out.ravel()):
            raise IndexError(f"a token lies outside of 0..{size - 1}")
    return out


def sums_and_lowest(rows: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Compute the sum of every row, and min(its smallest entry, 0).  [..., V] -> [...], [...]

    If an entry is NaN, the sum is NaN, but the smallest entry may not be.
    """
    sums, lowest = (np.empty(rows.shape[:-1]) for _ in range(2))
    if sums.size:
        found = sums.ravel(), lowest.ravel()
        _sums_and_lowest(kind_of(rows))(rows.data_ptr(), places_of(rows), rows.shape[-1], *found)
    return sums, lowest


def draws(
    rows: Tensor, uniform: np.ndarray, block: int
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Draw one index per row in proportion to its entries; also return masses and ``sums_and_lowest``.

    [..., V], [...] -> [...], [...], ([...], [...])
    """
    size = rows.shape[-1]
    rows = rows.float() if rows.itemsize == 2 else rows
    refuse_unless(uniform.shape == rows.shape[:-1], "a uniform number per row", rows.shape, uniform.shape)
    numbers, masses = np.empty(uniform.shape, np.int64), np.empty(uniform.shape)
    totals, lowest = np.empty(uniform.shape), np.empty(uniform.shape)
    if numbers.size:
        uniforms, sums = flat_numbers(uniform, np.float64), np.empty(-(-size // block))
        found = (array.ravel() for array in (numbers, masses, totals, lowest))
        _draws(kind_of(rows))(rows.data_ptr(), places_of(rows), uniforms, size, block, sums, *found)
    return numbers, masses, (totals, lowest)


def masses(
    rows: Tensor, other: Tensor, scale: np.ndarray | None, other_scale: np.ndarray | None
) -> np.ndarray:
    """Sum max(scale rows(x) - other_scale other(x), 0) over x.  [..., V], [..., V], [...], [...] -> [...]"""
    refuse_unless(rows.shape == other.shape, "rows of one shape", rows.shape, other.shape)
    out = np.empty(rows.shape[:-1], STORED[kind_of(rows)][1])
    _run(_masses, out, out.shape, (rows, places_of(rows), scale), (other, places_of(other), other_scale))
    return out


def residuals(
    target_rows: Tensor,
    draft_rows: Tensor,
    path_index: np.ndarray,
    length: np.ndarray,
    scale: np.ndarray | None,
    draft_scale: np.ndarray | None,
) -> Tensor:
    """Compute max(scale p - draft_scale q, 0) at a stop per batch element, with q = 0 at depth L.

    [..., K, L+1, V], [..., K, L, V], [...], [...], [...], [...] -> [..., V], at least in float32

    Raises:
        IndexError: a stop is out of range.
    """
    *batch, paths, depths, size = target_rows.shape
    fits = draft_rows.shape == (*batch, paths, depths - 1, size)
    fits = fits and path_index.shape == length.shape == tuple(batch)
    given = target_rows.shape, draft_rows.shape, path_index.shape, length.shape
    refuse_unless(fits, "[..., K, L+1, V], [..., K, L, V], [...], [...]", *given)
    strides, other_strides = target_rows.stride(), draft_rows.stride()
    at, beside = (row_places(tuple(batch), some[:-3]).copy() for some in (strides, other_strides))
    stops = flat_numbers(path_index, np.int64), flat_numbers(length, np.int64)
    if not _stop_places(
        at, beside, *stops, paths, depths, strides[-3], strides[-2], other_strides[-3], other_strides[-2]
    ):
        raise IndexError(f"a stop lies outside of {paths} paths of 0 to {depths - 1} tokens")
    out = torch.empty((*batch, size), dtype=torch.promote_types(target_rows.dtype, torch.float32))
    _run(_rows, out.numpy(), tuple(batch), (target_rows, at, scale), (draft_rows, beside, draft_scale))
    return out


def _residual_mass(rows: Tensor, other: Tensor, scale: Tensor | None, other_scale: Tensor | None) -> Tensor:
    return torch.from_numpy(masses(rows, other, *map(_numbers, (scale, other_scale)))).to(rows.dtype)


def _residual_at_stops(
    target_rows: Tensor,
    draft_rows: Tensor,
    path_index: Tensor,
    length: Tensor,
    scale: Tensor | None,
    draft_scale: Tensor | None,
) -> Tensor:
    numbers = (array.numpy().astype(np.int64) for array in (path_index, length))
    scales = map(_numbers, (scale, draft_scale))
    return residuals(target_rows, draft_rows, *numbers, *scales).to(target_rows.dtype)


def _draw(rows: Tensor, uniform: Tensor, block: int) -> tuple[Tensor, Tensor]:
    number, mass, _ = draws(rows, uniform.numpy(), block)
    return torch.from_numpy(number), torch.from_numpy(mass)


def _numbers(array: Tensor | None) -> np.ndarray | None:
    """Convert numbers to numpy, half precision to float32."""
    if array is None:
        return None
    return (array.float() if array.itemsize == 2 else array).numpy()


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
    ("argsort(Tensor keys) -> Tensor", _argsort),
):
    _LIBRARY.define(_signature)
    _LIBRARY.impl(_signature.partition("(")[0], _operator, "CPU")


def _in_triton(name: str) -> Callable[..., Any]:
    def operator(*given: Any) -> Any:
        from spectheory.foundation.kernels import triton_rows

        return getattr(triton_rows, name)(*given)

    return operator


for _name in ("residual_mass", "residual_at_stops", "draw"):
    _LIBRARY.impl(_name, _in_triton(_name), "CUDA")

residual_mass = torch.ops.spectheory.residual_mass.default
residual_at_stops = torch.ops.spectheory.residual_at_stops.default
draw = torch.ops.spectheory.draw.default
argsort = torch.ops.spectheory.argsort.default


def kind_of(rows: Tensor) -> str:
    refuse_unless(rows.stride(-1) == 1, "the entries of a row side by side", rows.shape)
    return KINDS[rows.dtype]


def places_of(rows: Tensor) -> np.ndarray:
    """Compute the offset of each row in memory, in entries.  [..., V] -> [n]"""
    return row_places(rows.shape[:-1], rows.stride()[:-1])


def _run(
    kernel: Callable[[str], Callable[..., None]],
    out: np.ndarray,
    shape: tuple[int, ...],
    *terms: tuple[Tensor, np.ndarray, np.ndarray | None],
) -> None:
    """Fill ``out`` from the two terms of a difference: (rows, their offsets, their scales of ``shape``)."""
    if not out.size:
        return
    size, count = terms[0][0].shape[-1], terms[0][1].size
    kind = kind_of(terms[0][0])
    refuse_unless(kind_of(terms[1][0]) == kind, "rows of one precision", *(rows.dtype for rows, *_ in terms))
    loop = kernel(kind)
    one, other = (
        (rows.data_ptr(), places, _scales(scale, shape, out.dtype)) for rows, places, scale in terms
    )
    written = out.ravel()
    entries_per_row = written.size // count

    def portion(start: int, end: int) -> None:
        part = slice(start, end)
        here = written[start * entries_per_row : end * entries_per_row]
        loop(one[0], one[1][part], one[2][part], other[0], other[1][part], other[2][part], size, here)

    in_threads(portion, count, size)


def in_threads(portion: Callable[[int, int], None], count: int, size: int) -> None:
    """Call ``portion(start, end)`` in threads, on consecutive parts of ``count`` rows of ``size`` entries."""
    threads = min(torch.get_num_threads(), count, 1 + count * size // WORTH_A_THREAD)
    if threads == 1:
        portion(0, count)
        return
    ends = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(portion, ends, ends[1:]))


def _memory(rows: Tensor) -> np.ndarray:
    """View the memory from the first to the last entry of the rows, without a copy."""
    refuse_unless(rows.stride(-1) == 1, "the entries of a row side by side", rows.shape)
    span = 1 + sum((size - 1) * stride for size, stride in zip(rows.shape, rows.stride(), strict=True))
    return rows.as_strided((span,), (1,)).numpy()


def flat_numbers(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Flatten the numbers.  Read-only arrays are copied, because the loops are compiled for writable ones."""
    flat = np.ascontiguousarray(array, dtype).ravel()
    return flat if flat.flags.writeable else flat.copy()


def _scales(scale: np.ndarray | None, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if scale is None:
        return _ones(math.prod(shape), dtype)
    refuse_unless(scale.shape == shape, "a scale per row", scale.shape)
    return flat_numbers(scale, dtype)


@lru_cache(maxsize=256)
def _ones(count: int, dtype: np.dtype) -> np.ndarray:
    return np.ones(count, dtype=dtype)

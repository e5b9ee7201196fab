"""A loop over long rows that places ratios of entries between given knots, and sums masses at the knots."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.foundation.kernels import choice
from spectheory.foundation.kernels.places import refuse_unless
from spectheory.foundation.kernels.row_kernels import (
    AT_ONCE,
    flat_numbers,
    in_threads,
    kind_of,
    places_of,
)
from spectheory.foundation.kernels.stored_numbers import loop_of_kinds

WORTH_OF_AN_ENTRY = 4
"""The number of entries that are read in the time of placing one between its knots."""

row_at: Any = None
number: Any = None
REAL: Any = None
"""Placeholders, which ``loop_of_kinds`` sets for each dtype."""


@loop_of_kinds(
    "(int64, int64[::1], int64, int64[::1], real[::1], int64, real[::1],"
    " int16[:, ::1], real[:, ::1], float64[:, ::1])"
)
def _between(
    rows: Any, at: Any, others: Any, other_at: Any, scales: Any, size: int, knots: Any,
    lower: Any, shares: Any, masses: Any,
) -> None:  # fmt: skip
    """Write the knot below s rows(x) / others(x), at most the last knot, and the share towards the next knot.

    Also write the mass of ``others`` at every knot: each entry is shared between the two knots around it.
    """
    last, top = len(knots) - 1, knots[-1]
    values, places = np.empty(AT_ONCE, REAL), np.empty(AT_ONCE, np.int32)
    for n in range(len(at)):
        row, other = row_at(rows, at[n], size), row_at(others, other_at[n], size)
        scale, below, above = scales[n], np.zeros(last + 1), np.zeros(last + 1)
        for first in range(0, size, AT_ONCE):
            # With slices in place of sums of indices, the compiler sees that no index is negative.
            entries, beside = row[first : first + AT_ONCE], other[first : first + AT_ONCE]
            found, share_of = lower[n, first : first + AT_ONCE], shares[n, first : first + AT_ONCE]
            count = len(entries)
            for x in range(count):
                value = scale * number(entries[x]) / number(beside[x])
                values[x] = value if value <= top else top  # NaN is above
            places[:count] = 0
            for between in range(1, last):
                knot = knots[between]
                for x in range(count):
                    places[x] += knot <= values[x]
            for x in range(count):
                place, entry = places[x], np.float64(number(beside[x]))
                share = (values[x] - knots[place]) / (knots[place + 1] - knots[place])
                found[x], share_of[x] = place, share
                part = entry * np.float64(share)
                below[place] += entry - part
                above[place + 1] += part
        for knot in range(last + 1):
            masses[n, knot] = below[knot] + above[knot]


@loop_of_kinds(
    "(int64, int64[::1], int16[:, ::1], real[:, ::1], real[:, ::1], int64[::1], int64, int64[::1], int64)"
)
def _scaled(
    rows: Any, at: Any, lower: Any, shares: Any, factors: Any, which: Any, out: Any, out_at: Any, size: int
) -> None:
    """Write out(out_at_n + x) = rows(at_m + x) (f + share (f' - f)) with m = which_n.

    f and f' are the factors at the two knots around the ratio.
    """
    steps = factors[:, 1:] - factors[:, :-1]
    for n in range(len(which)):
        m = which[n]
        row, written = row_at(rows, at[m], size), row_at(out, out_at[n], size)
        below, share, factor, step = lower[m], shares[m], factors[m], steps[m]
        for x in range(size):
            knot = below[x]
            written[x] = number(row[x]) * (factor[knot] + share[x] * step[knot])


def between_knots(
    rows: Tensor, others: Tensor, scale: Tensor, knots: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Place the ratios scale rows / others between knots.

    On a CUDA device this is a kernel of ``triton_knots``.

    Returns:
        The index of the knot below each ratio, [n, V], the share towards the next knot, [n, V], and the mass
        of ``others`` at every knot, [n, G].
    """
    if rows.is_cuda:
        from spectheory.foundation.kernels import triton_knots

        return triton_knots.between_knots(rows, others, scale, knots)
    count, size = rows.shape
    refuse_unless(rows.shape == others.shape, "rows of one shape", rows.shape, others.shape)
    refuse_unless(scale.shape == (count,), "a scale per row", scale.shape)
    refuse_unless(len(knots) <= 1 << 15, "knots with indices of 16 bits", knots.shape)
    lower, shares = choice.room_like(rows, dtype=torch.int16), choice.room_like(rows)
    masses = torch.empty((count, len(knots)), dtype=torch.float64)
    given = [flat_numbers(array.numpy(), rows.numpy().dtype) for array in (scale, knots)]
    at, other_at = places_of(rows), places_of(others)
    written = [array.numpy() for array in (lower, shares, masses)]

    def portion(start: int, end: int) -> None:
        _between(kind_of(rows))(
            rows.data_ptr(), at[start:end], others.data_ptr(), other_at[start:end], given[0][start:end], size,
            given[1], *(array[start:end] for array in written),
        )  # fmt: skip

    in_threads(portion, count, size * WORTH_OF_AN_ENTRY)
    return lower, shares, masses


def scale_between_knots(
    rows: Tensor, lower: Tensor, shares: Tensor, factors: Tensor, which: Tensor, out: Tensor
) -> None:
    """Write rows times factors at the contexts ``which`` into ``out``.

    The factor of an entry is interpolated between two knots.  [n, V], [n, V], [n, V], [n, G], [N] -> [N, V];
    ``out`` may be a part of a larger array.
    """
    fits = rows.shape == lower.shape == shares.shape and len(factors) == len(rows)
    fits = fits and out.shape == (len(which), rows.shape[1]) and kind_of(out) == kind_of(rows)
    refuse_unless(fits, "numbers for every entry", rows.shape, lower.shape, factors.shape, out.shape)
    numbers, at, out_at = flat_numbers(which.numpy(), np.int64), places_of(rows), places_of(out)
    given = [np.require(array.numpy(), None, ["C", "W"]) for array in (lower, shares, factors)]
    refuse_unless(set(numbers.tolist()) <= set(range(len(rows))), "numbers of contexts", rows.shape)

    def portion(start: int, end: int) -> None:
        part = slice(start, end)
        _scaled(kind_of(rows))(
            rows.data_ptr(), at, *given, numbers[part], out.data_ptr(), out_at[part], rows.shape[1]
        )

    in_threads(portion, len(numbers), rows.shape[1])

"""``between_knots`` as a Triton kernel: rows on a CUDA device are read once, a program per part of a row."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spectheory.foundation.kernels.places import refuse_unless
from spectheory.foundation.kernels.triton_rows import ENTRIES_AT_ONCE, places_of_rows


@triton.jit
def _between_kernel(
    rows, at, others, other_at, scales, knots, lower, shares, masses, size, last, block: tl.constexpr
):  # fmt: skip
    """Find the knot below s rows(x) / others(x), the share towards the next, and the masses of this part."""
    n, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    lanes = part * block + tl.arange(0, block)
    inside = lanes < size
    entries = tl.load(rows + tl.load(at + n) + lanes, mask=inside, other=0.0)
    beside = tl.load(others + tl.load(other_at + n) + lanes, mask=inside, other=0.0)
    most = tl.load(knots + last)
    value = _divided(tl.load(scales + n) * entries, beside)
    value = tl.where(value <= most, value, most)  # 0/0 = NaN counts as above
    place = tl.zeros((block,), tl.int64)
    for between in range(1, last):
        place += (tl.load(knots + between) <= value).to(tl.int64)
    knot = tl.load(knots + place)
    share = _divided(value - knot, tl.load(knots + place + 1) - knot)
    tl.store(lower + n * size + lanes, place, mask=inside)
    tl.store(shares + n * size + lanes, share, mask=inside)
    above = beside.to(tl.float64) * share.to(tl.float64)
    below = beside.to(tl.float64) - above
    out = masses + (n * tl.num_programs(1) + part) * 2 * last
    for knot_below in range(0, last):
        here = place == knot_below
        tl.store(out + knot_below, tl.sum(tl.where(here, below, 0.0), axis=0))
        tl.store(out + last + knot_below, tl.sum(tl.where(here, above, 0.0), axis=0))


@triton.jit
def _divided(numerator, denominator):
    """Divide with rounding to nearest, as on the host.  Plain float32 division may round otherwise."""
    if numerator.dtype == tl.float64:
        return numerator / denominator
    else:
        return tl.div_rn(numerator, denominator)


def between_knots(
    rows: Tensor, others: Tensor, scale: Tensor, knots: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute ``knot_kernels.between_knots``, with sums part by part, in float64 and in a fixed order."""
    count, size = rows.shape
    refuse_unless(rows.shape == others.shape, "rows of one shape", rows.shape, others.shape)
    refuse_unless(scale.shape == (count,), "a scale per row", scale.shape)
    lower, shares = rows.new_empty((count, size), dtype=torch.int64), rows.new_empty((count, size))
    parts, last = triton.cdiv(size, ENTRIES_AT_ONCE), len(knots) - 1
    masses = rows.new_empty((count, parts, 2, last), dtype=torch.float64)
    if rows.numel():
        _between_kernel[(count, parts)](
            rows, places_of_rows(rows), others, places_of_rows(others), scale.contiguous(),
            knots.contiguous(), lower, shares, masses, size, last, ENTRIES_AT_ONCE,
        )  # fmt: skip
    below, above = masses.sum(dim=1).unbind(dim=1)
    nothing = torch.zeros_like(below[:, :1])
    return lower, shares, torch.cat([below, nothing], dim=1) + torch.cat([nothing, above], dim=1)

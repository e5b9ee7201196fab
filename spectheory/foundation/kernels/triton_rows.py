"""The row operators of ``row_kernels`` as Triton kernels, one launch each, for rows on a CUDA device.

A program reads a row, or a part of it.  The formulas are the same as in ``arrays`` and ``row_draws``.  Sums
of long rows are taken block by block in float64.  Only ``work_on`` waits for the device, before the first
use.  The tests run the kernels in Triton's interpreter.  The audit of a sampler tracks random numbers
through these kernels as through any other kernel.
"""

import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from spectheory.foundation.errors import NoKernelsNotice
from spectheory.foundation.kernels.places import refuse_unless, row_places

ENTRIES_AT_ONCE = 1024


@triton.jit
def _mass_kernel(
    rows, at, scales, others, other_at, other_scales, out, size, scaled: tl.constexpr,
    other_scaled: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Write out_n = sum_x max(scale_n rows(at_n + x) - other_scale_n others(other_at_n + x), 0)."""
    n = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, block)
    row, other = rows + tl.load(at + n), others + tl.load(other_at + n)
    total = tl.sum(tl.zeros((block,), tl.float64), axis=0)
    for first in range(0, size, block):
        inside = first + lanes < size
        entries = tl.load(row + first + lanes, mask=inside, other=0.0)
        beside = tl.load(other + first + lanes, mask=inside, other=0.0)
        entries, beside = _wide(entries), _wide(beside)
        if scaled:
            entries = entries * _wide(tl.load(scales + n))
        if other_scaled:
            beside = beside * _wide(tl.load(other_scales + n))
        excess = entries - beside
        total += tl.sum(tl.where(excess < 0, 0.0, excess).to(tl.float64), axis=0)
    tl.store(out + n, total if out.dtype.element_ty == tl.float64 else total.to(tl.float32))


@triton.jit
def _wide(entries):
    """Convert half precision to float32; other numbers stay."""
    if entries.dtype == tl.float64:
        return entries
    else:  # the compiler allows returns of one type only
        return entries.to(tl.float32)


@triton.jit
def _stop_kernel(
    rows, at, scales, others, other_at, other_scales, path, depth, out, size, by_path, by_depth,
    other_by_path, other_by_depth, last, scaled: tl.constexpr, other_scaled: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Write out(n size + x) = max(scale_n p(x) - other_scale_n q(x), 0) at stop n, with q = 0 at depth L."""
    n, first = tl.program_id(0).to(tl.int64), tl.program_id(1) * block
    lanes = tl.arange(0, block)
    inside = first + lanes < size
    here, deep = tl.load(path + n), tl.load(depth + n)
    row = rows + tl.load(at + n) + here * by_path + deep * by_depth
    other = others + tl.load(other_at + n) + here * other_by_path + deep * other_by_depth
    entries = _wide(tl.load(row + first + lanes, mask=inside, other=0.0))
    beside = _wide(tl.load(other + first + lanes, mask=inside & (deep + 0 * lanes < last), other=0.0))
    if scaled:
        entries = entries * _wide(tl.load(scales + n))
    if other_scaled:
        beside = beside * _wide(tl.load(other_scales + n))
    excess = entries - beside
    tl.store(out + n * size + first + lanes, tl.where(excess < 0, 0.0, excess), mask=inside)


@triton.jit
def _weights(row, first, size, block: tl.constexpr):
    lanes = first + tl.arange(0, block)
    entries = tl.load(row + lanes, mask=lanes < size, other=0.0).to(tl.float64)
    return tl.where(entries < 0, 0.0, entries)


@triton.jit
def _draw_kernel(rows, at, uniforms, numbers, masses, size, block: tl.constexpr):
    """Draw numbers_n in proportion to rows(at_n + x) by u_n.  Write masses_n; see ``outcome.sample_rows``."""
    n = tl.program_id(0).to(tl.int64)
    row, uniform = rows + tl.load(at + n), tl.load(uniforms + n)
    total = tl.sum(tl.zeros((block,), tl.float64), axis=0)
    for first in range(0, size, block):
        total += tl.sum(_weights(row, first, size, block), axis=0)
    # These are the same sums in the same order, so the share of the last block is exactly 1 and exceeds u.
    before, start, left = total * 0, 0, uniform
    if size > block:
        found = 0
        for first in range(0, size, block):
            if found == 0:
                own = tl.sum(_weights(row, first, size, block), axis=0)
                before += own
                share = before / total
                if share > uniform:
                    left = 1 - (share - uniform) / (own / total)
                    start, found = first, 1
    weights = _weights(row, start, size, block)
    # A parallel sum may differ in the last bits across a zero: an entry without mass is never drawn.
    sums = tl.where(weights == 0, 0.0, tl.cumsum(weights, axis=0))
    shares = sums / tl.max(sums, axis=0)
    tl.store(numbers + n, start + tl.argmax((shares > left).to(tl.int32), axis=0))
    tl.store(masses + n, total)


def residual_mass(rows: Tensor, other: Tensor, scale: Tensor | None, other_scale: Tensor | None) -> Tensor:
    """Sum max(scale rows(x) - other_scale other(x), 0) over x.  [..., V], [..., V], [...], [...] -> [...]"""
    refuse_unless(rows.shape == other.shape, "rows of one shape", rows.shape, other.shape)
    out = rows.new_empty(rows.shape[:-1])
    if out.numel():
        terms = *_term(rows, scale), *_term(other, other_scale)
        _mass_kernel[(out.numel(),)](
            *terms, out, rows.shape[-1], scale is not None, other_scale is not None, ENTRIES_AT_ONCE
        )
    return out


def residual_at_stops(
    target_rows: Tensor,
    draft_rows: Tensor,
    path_index: Tensor,
    length: Tensor,
    scale: Tensor | None,
    draft_scale: Tensor | None,
) -> Tensor:
    """Compute max(scale p - draft_scale q, 0) at a stop per batch element, with q = 0 at depth L.

    [..., K, L+1, V], [..., K, L, V], [...], [...], [...], [...] -> [..., V].  Stops must be in range; this is
    not checked.
    """
    *batch, paths, depths, size = target_rows.shape
    fits = draft_rows.shape == (*batch, paths, depths - 1, size)
    fits = fits and path_index.shape == length.shape == tuple(batch)
    given = target_rows.shape, draft_rows.shape, path_index.shape, length.shape
    refuse_unless(fits, "[..., K, L+1, V], [..., K, L, V], [...], [...]", *given)
    out = target_rows.new_empty((*batch, size))
    if out.numel():
        terms = *_term(target_rows[..., 0, 0, :], scale), *_term(draft_rows[..., 0, 0, :], draft_scale)
        strides = *target_rows.stride()[-3:-1], *draft_rows.stride()[-3:-1]
        _stop_kernel[(path_index.numel(), triton.cdiv(size, ENTRIES_AT_ONCE))](
            *terms, path_index.contiguous(), length.contiguous(), out, size, *strides, depths - 1,
            scale is not None, draft_scale is not None, ENTRIES_AT_ONCE,
        )  # fmt: skip
    return out


def draw(rows: Tensor, uniform: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """Draw one index per row in proportion to its entries; also return the row's mass.

    [..., V], [...] -> [...], [...]
    """
    refuse_unless(uniform.shape == rows.shape[:-1], "a uniform number per row", uniform.shape)
    numbers = rows.new_empty(rows.shape[:-1], dtype=torch.int64)
    masses = rows.new_empty(rows.shape[:-1], dtype=torch.float64)
    if numbers.numel():
        given = rows, places_of_rows(rows), uniform.contiguous(), numbers, masses
        _draw_kernel[(numbers.numel(),)](*given, rows.shape[-1], block)
    return numbers, masses


@cache
def work_on(device: torch.device, dtype: torch.dtype) -> bool:
    """True if the kernels of this module work for this device and dtype, see ``give_what_is_known``."""

    def known_case() -> list[Any]:
        row, other = (
            torch.tensor([[entries]], dtype=dtype, device=device) for entries in ((0.5, 0.25), (0.25, 0.5))
        )
        half = torch.full((1,), 0.5, dtype=torch.float64, device=device)
        stop = torch.zeros(1, dtype=torch.int64, device=device)
        rows = torch.stack([row, row], dim=2)
        flat = torch.ones((1, 700), dtype=dtype, device=device)
        found = [
            residual_mass(row[0], other[0], None, None),
            residual_at_stops(rows, other[:, :, None], stop, stop, None, None)[0],
            residual_at_stops(rows, other[:, :, None], stop, stop + 1, None, None)[0],
            *draw(flat, half, 256),
        ]
        return [part.tolist() for part in found]

    return give_what_is_known(device, dtype, known_case, [[0.25], [0.25, 0], [0.5, 0.25], [350], [700]])


def give_what_is_known(
    device: torch.device, dtype: torch.dtype, known_case: Callable[[], list[Any]], expected: list[Any]
) -> bool:
    """Whether kernels compile for a device and compute the expected result of a small case on it.

    If not, a warning says that torch's operators replace them.
    """
    try:
        fault = "" if known_case() == expected else "they give other numbers"
    except Exception as error:  # a compiler or driver may fail in any way, and torch can replace the kernels
        fault = f"{type(error).__name__}: {error}".partition("\n")[0]
    if fault:
        warnings.warn(
            f"the Triton kernels of the package are not used on {device} with {dtype}, torch's operators "
            f"are: {fault}",
            NoKernelsNotice,
            stacklevel=3,
        )
    return not fault


def _term(rows: Tensor, scale: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, their offsets, and their scales.  Without a scale the last array is never read."""
    refuse_unless(scale is None or scale.shape == rows.shape[:-1], "a scale per row", rows.shape)
    places = places_of_rows(rows)
    return rows, places, places if scale is None else scale.contiguous()


def places_of_rows(rows: Tensor) -> Tensor:
    """Compute the offset of each row in memory, in entries.  [..., V] -> [n]"""
    refuse_unless(rows.stride(-1) == 1, "the entries of a row side by side", rows.shape)
    return _row_places(tuple(rows.shape[:-1]), rows.stride()[:-1], rows.device)


@lru_cache(maxsize=256)
def _row_places(shape: tuple[int, ...], strides: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.from_numpy(row_places(shape, strides)).to(device)

"""Draw from rows by inversion: one uniform number finds an entry."""

from array_api_compat import is_torch_array

from spectheory.foundation.arrays import (
    Array,
    block_sums,
    first_true,
    namespace,
    on_host,
    positive_part,
    quotients,
    take_along,
    zero_where,
)
from spectheory.foundation.kernels import choice


def draw(rows: Array, uniform: Array) -> tuple[Array, Array]:
    """(an index per row, drawn in proportion to its entries; the row's mass).  [..., V], [..., 1] -> [...]

    One uniform number decides.  Of a long row it finds a block first, and what the block leaves of it, an
    entry there: the row is read once, and nothing of its length is written.  Entries below zero are never
    drawn; of a long row they count in the sums of their blocks.
    """
    xp = namespace(rows)
    if is_torch_array(rows) and rows.itemsize == 2 and on_host(rows):  # sums of these are slow
        rows = rows.float()
    if choice.draws_by_kernel(rows, uniform):
        return choice.row_kernels().draw(rows, uniform[..., 0].detach(), choice.BLOCK)
    if rows.shape[-1] < 2 * choice.BLOCK:
        return _search(xp.astype(rows, xp.float64), uniform)[:2]
    sums = block_sums(rows, xp.float64)
    block, total, share = _search(sums, uniform)
    number = block[..., None]
    left = _left(uniform, take_along(share, number), quotients(take_along(sums, number), total[..., None]))
    taken = take_block(rows, block)
    return block * choice.BLOCK + _search(xp.astype(taken, xp.float64), left)[0], total


def take_block(rows: Array, number: Array) -> Array:
    """The entries that a number of ``block_sums`` is the sum of, and zeros beyond the end of the row.

    [..., V], [...] -> [..., BLOCK]; of one row nothing is copied, and nothing stands beyond its end.
    """
    if choice.is_one_number(number):
        start = number.item() * choice.BLOCK
        return rows[..., start : start + choice.BLOCK]
    xp, size = namespace(rows), rows.shape[-1]
    entries = number[..., None] * choice.BLOCK + xp.arange(choice.BLOCK, device=rows.device)
    if size % choice.BLOCK == 0:
        return take_along(rows, entries)
    return zero_where(entries >= size, take_along(rows, xp.clip(entries, None, size - 1)))


def _search(weights: Array, uniform: Array) -> tuple[Array, Array, Array]:
    """(the entry where the cumulative share of the total first exceeds u, the total, the shares).

    Entries below zero count as zero.
    """
    weights = positive_part(weights)
    cumulative = weights.cumsum(-1)
    if is_torch_array(weights) and on_host(weights):
        # A processor adds from left to right: an entry without mass repeats its neighbour exactly.
        import torch

        total = cumulative[..., -1]
        share = cumulative / total[..., None]
        number = torch.searchsorted(share.contiguous(), uniform.contiguous(), right=True)[..., 0]
        return number.clamp_max_(weights.shape[-1] - 1), total, share
    # A parallel cumulative sum may differ in the last bits even across a zero, so entries without
    # mass are masked rather than trusted to repeat their neighbour.
    cumulative = zero_where(weights == 0, cumulative)
    total = namespace(weights).max(cumulative, axis=-1)
    # The share, not u * total: that product can round to 0 or to the total itself.
    share = quotients(cumulative, total[..., None])
    return first_true(share > uniform), total, share


def _left(uniform: Array, share: Array, own: Array) -> Array:
    """The rest of u after an entry is drawn: uniform on [0, 1) given the entry.

    Args:
        uniform: u, [..., 1].
        share: of the entries up to and with the one that is drawn, [..., 1]; it exceeds u.
        own: the share of the one that is drawn, [..., 1].
    """
    # Below 1, because two floats differ by 2^-53 of the larger one at least; rounding can carry it below 0.
    return positive_part(1 - quotients(share - uniform, own))

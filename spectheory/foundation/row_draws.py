"""Draw entries of rows by inversion: one uniform number per row."""

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
    """Draw one index per row in proportion to its entries.  [..., V], [..., 1] -> [...], [...]

    In a long row the uniform number first selects a block.  The rest of the number, rescaled, selects an
    entry in this block.  So the row is read once, and no array of its length is written.  Entries below zero
    are never drawn, but in a long row they count in the sums of their blocks.

    Returns:
        The indices, and the masses of the rows.
    """
    xp = namespace(rows)
    if is_torch_array(rows) and rows.itemsize == 2 and on_host(rows):  # sums in half precision are slow
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
    """Take the entries of one block of ``block_sums`` per row, padded with zeros after the end of the row.

    [..., V], [...] -> [..., BLOCK].  For a single row the result is a view without padding.
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
    """Find the first entry at which the cumulative share of the total exceeds u.

    Entries below zero count as zero.  Returns the index, the total, and the cumulative shares.
    """
    weights = positive_part(weights)
    cumulative = weights.cumsum(-1)
    if is_torch_array(weights) and on_host(weights):
        # A CPU adds from left to right, so the sum at an entry without mass equals the sum before it.
        import torch

        total = cumulative[..., -1]
        share = cumulative / total[..., None]
        number = torch.searchsorted(share.contiguous(), uniform.contiguous(), right=True)[..., 0]
        return number.clamp_max_(weights.shape[-1] - 1), total, share
    # A parallel cumulative sum may differ in the last bits even across a zero, so we mask entries without
    # mass instead of relying on equal neighbours.
    cumulative = zero_where(weights == 0, cumulative)
    total = namespace(weights).max(cumulative, axis=-1)
    # Compare shares with u, because u * total can round to 0 or to the total itself.
    share = quotients(cumulative, total[..., None])
    return first_true(share > uniform), total, share


def _left(uniform: Array, share: Array, own: Array) -> Array:
    """Rescale u after an entry is drawn, so that it is uniform on [0, 1) given this entry.

    Args:
        uniform: u, [..., 1].
        share: cumulative share up to and including the drawn entry, [..., 1]; it exceeds u.
        own: share of the drawn entry, [..., 1].
    """
    # The result is below 1, because two floats differ by at least 2^-53 of the larger one.  Rounding can make
    # it negative.
    return positive_part(1 - quotients(share - uniform, own))

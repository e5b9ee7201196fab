"""Small steps that the algorithms on one path share."""

from __future__ import annotations

from spectheory.arrays import Array, namespace, ones_like, zeros_like


def drop_path_axis(paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array, Array]:
    """The first drafted path and its rows: [..., L], [..., L+1, V], [..., L, V]."""
    return paths[..., 0, :], target_rows[..., 0, :, :], draft_rows[..., 0, :, :]


def pad_with_zero_row(draft_rows: Array) -> Array:
    """Draft rows with a row of zeros at depth L, where nothing was drafted.  [..., L+1, V]

    max(w p - 0, 0) is proportional to p there: the residual formula then gives the target's own
    row for the token after a fully accepted path.
    """
    last = draft_rows[..., -1:, :]
    return namespace(draft_rows).concat([draft_rows, zeros_like(last)], axis=-2)


def prefix_products(factors: Array) -> Array:
    """1, f_1, f_1 f_2, ..: products over prefixes of the last axis.  [..., L] -> [..., L+1]"""
    xp = namespace(factors)
    one = ones_like(factors[..., :1])
    return xp.cumulative_prod(xp.concat([one, factors], axis=-1), axis=-1)

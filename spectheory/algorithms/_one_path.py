"""Small steps that the algorithms on one path share."""

from __future__ import annotations

from spectheory.arrays import Array, divide_or_zero, namespace, ones_like, take_token, zeros_like


def first_path_ratios(paths: Array, target_rows: Array, draft_rows: Array) -> Array:
    """p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}) along the first drafted path.  -> [..., L]

    A path that was drafted has q > 0 everywhere; the 0 at q = 0 is never used.
    """
    path = paths[..., 0, :]
    target_on_path = take_token(target_rows[..., 0, :-1, :], path)
    return divide_or_zero(target_on_path, take_token(draft_rows[..., 0, :, :], path))


def prefix_products(factors: Array) -> Array:
    """1, f_1, f_1 f_2, ..: products over prefixes of the last axis.  [..., L] -> [..., L+1]"""
    xp = namespace(factors)
    one = ones_like(factors[..., :1])
    return xp.cumulative_prod(xp.concat([one, factors], axis=-1), axis=-1)


def first_path_only(stop_probs: Array, paths: Array) -> Array:
    """Stop probabilities on the first of K paths, zeros on the others.  [..., L+1] -> [..., K, L+1]"""
    first = stop_probs[..., None, :]
    others = [zeros_like(first)] * (paths.shape[-2] - 1)
    return namespace(stop_probs).concat([first, *others], axis=-2)

"""Block verification: accept prefixes jointly; the optimal verifier on one path."""

from __future__ import annotations

from typing import ClassVar

from spectheory.algorithms._one_path import drop_path_axis, pad_with_zero_row, prefix_products
from spectheory.arrays import (
    Array,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    positive_part,
    take_depth,
    take_row,
    take_token,
)
from spectheory.outcome import Outcome, Verifier


class Block(Verifier):
    """Block verification, block_verification.txt Algorithm 2.

    In the notation of the package (p target, q draft; w_i is p_i in the paper), on one path X_{1:L}:

    1. w_0 = 1, w_i = min(1, w_{i-1} p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}))        (line 4)
    2. S_i = sum_x max(w_i p(x | X_{1:i}) - q(x | X_{1:i}), 0),
       h_i = S_i / (1 - w_i + S_i) for i < L, and h_L = w_L                          (Eq. 5)
    3. each prefix is accepted with probability h_i, independently; tau is the longest
       accepted one, and 0 if none is                                          (lines 6-9)
    4. Y ~ max(w_tau p - q, 0), normalised, at X_{1:tau}; Y ~ p if tau = L         (Eq. 4)

    greedy_multipath.txt Eq. 4 prints the sums of step 2 without w; that is a misprint.

    Lossless, and no valid verifier on one path earns more (Thm 2; greedy_multipath.txt Thm 3.4).
    P(tau >= i | X_{1:i}) = w_i.  Where 1 - w_i + S_i = 0 (w_i = 1 and p = q at X_{1:i}) a longer
    prefix is accepted with certainty, so h_i has no influence and is taken as 0.

    Example:
        >>> from spectheory import certify, instances
        >>> certify("block", instances.two_token(2), with_optimum=False).block_efficiency
        Fraction(20, 9)
    """

    name: ClassVar[str] = "block"
    source: ClassVar[str] = "block_verification Alg. 2"
    single_path: ClassVar[bool] = True

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        path, target_rows, draft_rows = drop_path_axis(paths, target_rows, draft_rows)
        xp = namespace(target_rows)
        ratio = divide_or_zero(take_token(target_rows[..., :-1, :], path), take_token(draft_rows, path))
        weights = path_weights(ratio)

        residual = positive_part(weights[..., :-1, None] * target_rows[..., :-1, :] - draft_rows)
        residual_mass = xp.sum(residual, axis=-1)
        accept = divide_or_zero(residual_mass, 1 - weights[..., :-1] + residual_mass)
        # h_1 .. h_L; the empty prefix is what remains when all of them are rejected.
        accept = xp.concat([accept[..., 1:], weights[..., -1:]], axis=-1)
        all_longer_rejected = xp.flip(prefix_products(1 - xp.flip(accept, axis=-1)), axis=-1)
        stop_probs = all_longer_rejected * xp.concat([ones_like(accept[..., :1]), accept], axis=-1)

        def correction(path_index: Array, length: Array) -> Array:
            weight = take_depth(weights, length)[..., None]
            row = weight * take_row(target_rows, length) - take_row(pad_with_zero_row(draft_rows), length)
            return normalise(positive_part(row))

        return Outcome(stop_probs[..., None, :], correction)


def path_weights(ratio: Array) -> Array:
    """w_0..w_L from the ratios p/q along the path (Algorithm 2, line 4).  [..., L] -> [..., L+1]"""
    xp = namespace(ratio)
    one = ones_like(ratio[..., 0])
    weights = [one]
    for i in range(ratio.shape[-1]):
        weights.append(xp.minimum(one, weights[-1] * ratio[..., i]))
    return xp.stack(weights, axis=-1)

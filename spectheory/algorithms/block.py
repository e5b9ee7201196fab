"""Block verification: accept prefixes jointly; the optimal verifier on one path."""

from __future__ import annotations

from typing import ClassVar

from spectheory.algorithms._one_path import first_path_only, first_path_ratios, prefix_products
from spectheory.arrays import (
    Array,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    positive_part,
    take_draft_row,
    take_stop_row,
    take_token,
)
from spectheory.drafts import ALL_PROCESSES
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
    draft_processes: ClassVar[frozenset[str]] = ALL_PROCESSES

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        weights = path_weights(first_path_ratios(paths, target_rows, draft_rows))
        residual_mass = _residual_masses(weights, target_rows[..., 0, :, :], draft_rows[..., 0, :, :])
        accept = divide_or_zero(residual_mass, 1 - weights[..., :-1] + residual_mass)
        # h_1 .. h_L; the empty prefix is what remains when all of them are rejected.
        accept = xp.concat([accept[..., 1:], weights[..., -1:]], axis=-1)
        all_longer_rejected = xp.flip(prefix_products(1 - xp.flip(accept, axis=-1)), axis=-1)
        stop_probs = all_longer_rejected * xp.concat([ones_like(accept[..., :1]), accept], axis=-1)

        def correction(path_index: Array, length: Array) -> Array:
            weight = take_token(weights, length)[..., None]
            target_row = take_stop_row(target_rows, path_index, length)
            residual = weight * target_row - take_draft_row(draft_rows, path_index, length)
            return normalise(positive_part(residual))

        return Outcome(first_path_only(stop_probs, paths), correction)


def _residual_masses(weights: Array, target_rows: Array, draft_rows: Array) -> Array:
    """S_i for i = 0..L-1 on one path; one depth at a time, to hold one row per path and not L."""
    xp = namespace(target_rows)
    masses = []
    for depth in range(draft_rows.shape[-2]):
        scaled = weights[..., depth, None] * target_rows[..., depth, :]
        masses.append(xp.sum(positive_part(scaled - draft_rows[..., depth, :]), axis=-1))
    return xp.stack(masses, axis=-1)


def path_weights(ratio: Array) -> Array:
    """w_0..w_L from the ratios p/q along the path (Algorithm 2, line 4).  [..., L] -> [..., L+1]"""
    xp = namespace(ratio)
    one = ones_like(ratio[..., 0])
    weights = [one]
    for i in range(ratio.shape[-1]):
        weights.append(xp.minimum(one, weights[-1] * ratio[..., i]))
    return xp.stack(weights, axis=-1)

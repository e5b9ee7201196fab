"""Block verification: accept prefixes jointly; the optimal verifier on one path."""

from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    at_most_one,
    divide_or_zero,
    namespace,
    ones_like,
    prefix_products,
    residual_mass,
    take_token,
    zeros_like,
)
from spectheory.verification.algorithms.one_path.first_path import OnePath, first_path_only, first_path_ratios
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome, on_numbers_of_host


class Block(OnePath):
    """Block verification, block2024 Algorithm 2.

    In the notation of the package (p target, q draft; w_i is p_i in the paper), on one path X_{1:L}:

    1. w_0 = 1, w_i = min(1, w_{i-1} p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}))        (line 4)
    2. S_i = sum_x max(w_i p(x | X_{1:i}) - q(x | X_{1:i}), 0),
       h_i = S_i / (1 - w_i + S_i) for i < L, and h_L = w_L                          (Eq. 5)
    3. each prefix is accepted with probability h_i, independently; tau is the longest
       accepted one, and 0 if none is                                          (lines 6-9)
    4. Y ~ max(w_tau p - q, 0), normalised, at X_{1:tau}; Y ~ p if tau = L         (Eq. 4)

    greedy2026 Eq. 4 prints the sums of step 2 without w.  That is a misprint.

    Lossless.  P(tau >= i | X_{1:i}) = w_i.  In one call no lossless verifier of one path earns more
    (theory.md Statement 4.2; greedy2026 Thm 3.4).  Over several calls one can, although block2024 Thm 2 says
    otherwise (theory.md Statement 4.6).  None decodes n tokens in fewer calls on average (Statement 4.9).

    Where w_i = 1 and p = q at X_{1:i}, h_i is 0/0.  A longer prefix is then accepted with certainty, so h_i
    has no influence, and it is taken as 0.

    Example:
        >>> from spectheory import certify, instances
        >>> certify("block", instances.two_token(2), with_optimum=False).block_efficiency
        Fraction(20, 9)
    """

    name: ClassVar[str] = "block"
    source: ClassVar[str] = "block2024 Alg. 2"

    @on_numbers_of_host
    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        weights = self.weights(first_path_ratios(paths, target_rows, draft_rows))
        residual_mass = self.residual_masses(weights, target_rows[..., 0, :, :], draft_rows[..., 0, :, :])
        stop_probs = self.stops(self.acceptance(weights, residual_mass))

        def residual(path_index: Array, length: Array) -> Array:
            rows = CorrectionRows(target_rows, draft_rows, path_index, length)
            return self.residual(take_token(weights, length), rows)

        return Outcome.from_weights(first_path_only(stop_probs, paths), residual)

    def weights(self, ratio: Array) -> Array:
        """Step 1, line 4: w_0..w_L from the ratios p/q along the path.  [..., L] -> [..., L+1]"""
        weights = [ones_like(ratio[..., 0])]
        for i in range(ratio.shape[-1]):
            weights.append(at_most_one(weights[-1] * ratio[..., i]))
        return namespace(ratio).stack(weights, axis=-1)

    def residual_masses(self, weights: Array, target_rows: Array, draft_rows: Array) -> Array:
        """Step 2, Eq. 5: S_1..S_{L-1} on one path, after a 0 for S_0, which has no influence: h_0 is 1.

        [..., L+1], [..., L+1, V], [..., L, V] -> [..., L]
        """
        masses = residual_mass(target_rows[..., 1:-1, :], draft_rows[..., 1:, :], weights[..., 1:-1])
        return namespace(weights).concat([zeros_like(weights[..., :1]), masses], axis=-1)

    def acceptance(self, weights: Array, residual_mass: Array) -> Array:
        """Step 2, Eq. 5: h_1..h_L from w_0..w_L and S_0..S_{L-1}.  -> [..., L]"""
        accept = divide_or_zero(residual_mass, 1 - weights[..., :-1] + residual_mass)
        return namespace(weights).concat([accept[..., 1:], weights[..., -1:]], axis=-1)

    def stops(self, accept: Array) -> Array:
        """Step 3, lines 6-9: P(tau = i) from h_1..h_L, the longest accepted.  [..., L] -> [..., L+1]"""
        xp = namespace(accept)
        all_longer_rejected = xp.flip(prefix_products(1 - xp.flip(accept, axis=-1)), axis=-1)
        # The empty prefix is what remains when all of them are rejected.
        return all_longer_rejected * xp.concat([ones_like(accept[..., :1]), accept], axis=-1)

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        """Step 4, Eq. 4: max(w p - q, 0), not normalised; q = 0 at depth L.  [...] -> [..., V]"""
        return rows.residual(weight)

"""Token verification: accept or reject the drafted tokens one after the other."""

from typing import ClassVar

from spectheory.foundation.arrays import Array, at_most_one, namespace, prefix_products, zeros_like
from spectheory.verification.algorithms.one_path.first_path import OnePath, first_path_only, first_path_ratios
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome, on_numbers_of_host


class Token(OnePath):
    """Speculative sampling as first published (leviathan2023; chen2023); block2024 Algorithm 1.

    In the notation of the package (p target, q draft), on one path X_{1:L}:

    1. h_i = min(1, p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}))                       (line 4)
    2. tau = the number of tokens accepted before the first rejection           (lines 5-9)
    3. if tau = L, Y ~ p(. | X_{1:L}); otherwise Y ~ max(p - q, 0), normalised, at X_{1:tau} (Eq. 3)

    Lossless.  P(tau >= i | X) = prod_{j <= i} h_j.

    Example:
        >>> from spectheory import certify, instances
        >>> certify("token", instances.two_token(2), with_optimum=False).block_efficiency
        Fraction(19, 9)
    """

    name: ClassVar[str] = "token"
    source: ClassVar[str] = "block2024 Alg. 1 (leviathan2023; chen2023)"

    @on_numbers_of_host
    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        stop_probs = self.stops(self.acceptance(paths, target_rows, draft_rows))

        def residual(path_index: Array, length: Array) -> Array:
            return self.residual(CorrectionRows(target_rows, draft_rows, path_index, length))

        return Outcome.from_weights(first_path_only(stop_probs, paths), residual)

    def acceptance(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        """Step 1, line 4: h_1..h_L on the first path.  -> [..., L]"""
        return at_most_one(first_path_ratios(paths, target_rows, draft_rows))

    def stops(self, accept: Array) -> Array:
        """Step 2, lines 5-9: P(tau = i) from h_1..h_L, up to the first rejection.  [..., L] -> [..., L+1]"""
        at_least = prefix_products(accept)
        rejected = 1 - namespace(accept).concat([accept, zeros_like(accept[..., :1])], axis=-1)
        return at_least * rejected

    def residual(self, rows: CorrectionRows) -> Array:
        """Step 3, Eq. 3: max(p - q, 0), not normalised; q = 0 at depth L, where it is p itself.  [..., V]"""
        return rows.residual()

"""Token verification: accept or reject the drafted tokens one after the other."""

from collections.abc import Callable
from typing import ClassVar

from spectheory.foundation.arrays import Array, at_most_one, zeros_like
from spectheory.verification.algorithms.one_path.prefix_tests import PrefixTests, first_rejected
from spectheory.verification.correction_rows import CorrectionRows


class Token(PrefixTests):
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

    order: ClassVar[Callable[[Array], Array]] = staticmethod(first_rejected)
    numbers_of_host: ClassVar[bool] = True

    def longer(self, weight: Array, ratio: Array) -> Array:
        """Return w_i = p/q of X_i, without a contribution of earlier tokens."""
        return ratio

    def acceptance(self, weight: Array, residual_mass: Array) -> Array:
        """Step 1, line 4: compute h_i."""
        return at_most_one(weight)

    def residual_mass(self, weight: Array, target_rows: Array, draft_rows: Array) -> Array:
        """Return zeros, because step 1 needs no residual mass."""
        return zeros_like(weight)

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        """Step 3, Eq. 3: compute max(p - q, 0), not normalised.  At depth L q = 0, so it is p."""
        return rows.residual()

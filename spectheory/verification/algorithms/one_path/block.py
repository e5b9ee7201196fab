"""Block verification: test whole prefixes; it is the optimal verifier of one path in one call."""

from collections.abc import Callable
from typing import ClassVar

from spectheory.foundation.arrays import Array, at_most_one, divide_or_zero
from spectheory.verification.algorithms.one_path.prefix_tests import PrefixTests, longest_accepted


class Block(PrefixTests):
    """Block verification, block2024 Algorithm 2.

    In the notation of the package (p target, q draft; w_i is p_i in the paper), on one path X_{1:L}:

    1. w_0 = 1, w_i = min(1, w_{i-1} p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}))        (line 4)
    2. S_i = sum_x max(w_i p(x | X_{1:i}) - q(x | X_{1:i}), 0),
       h_i = S_i / (1 - w_i + S_i) for i < L, and h_L = w_L                          (Eq. 5)
    3. each prefix is accepted with probability h_i, independently; tau is the length of the
       longest accepted prefix, and 0 if none is accepted                      (lines 6-9)
    4. Y ~ max(w_tau p - q, 0), normalised, at X_{1:tau}; Y ~ p if tau = L         (Eq. 4)

    greedy2026 Eq. 4 prints the sums of step 2 without w.  That is a misprint.

    Lossless.  P(tau >= i | X_{1:i}) = w_i.  In one call no lossless verifier of one path decodes more tokens
    (theory.md Statement 4.2; greedy2026 Thm 3.4).  Over several calls another verifier can decode more,
    although block2024 Thm 2 says otherwise (theory.md Statement 4.6).  No verifier decodes n tokens in fewer
    calls on average (Statement 4.9).

    If w_i = 1 and p = q at X_{1:i}, h_i is 0/0.  Then a longer prefix is accepted with probability 1, so h_i
    has no influence, and we take it as 0.

    Example:
        >>> from spectheory import certify, instances
        >>> certify("block", instances.two_token(2), with_optimum=False).block_efficiency
        Fraction(20, 9)
    """

    name: ClassVar[str] = "block"
    source: ClassVar[str] = "block2024 Alg. 2"

    order: ClassVar[Callable[[Array], Array]] = staticmethod(longest_accepted)
    numbers_of_host: ClassVar[bool] = True

    def longer(self, weight: Array, ratio: Array) -> Array:
        """Step 1, line 4: compute w_i."""
        return at_most_one(weight * ratio)

    def acceptance(self, weight: Array, residual_mass: Array) -> Array:
        """Step 2, Eq. 5: compute h_i for i < L."""
        return divide_or_zero(residual_mass, 1 - weight + residual_mass)

    def last(self, weight: Array) -> Array:
        """Step 2: compute h_L = w_L."""
        return weight

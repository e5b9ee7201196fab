"""Greedy block verification: accepts more tokens in one call, but needs a modified target afterwards."""

from collections.abc import Callable
from typing import ClassVar

from spectheory.foundation.arrays import Array, namespace, ones_like, positive_part
from spectheory.verification.algorithms.one_path.prefix_tests import PrefixTests, longest_accepted
from spectheory.verification.modification import ModifiesTarget


class GreedyBlock(PrefixTests, ModifiesTarget):
    """Greedy block verification, block2024 Appendix C, Algorithm 4.

    In the notation of the package (p target, q draft), on one path X_{1:L}:

    1. p̃_0 = 1, p̃_i = p̃_{i-1} p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}), without a minimum,
       so that p̃_i = p(X_{1:i}) / q(X_{1:i})                                    (lines 2, 4, 12)
    2. h_i = sum_x max(p̃_i p(x | X_{1:i}) - q(x | X_{1:i}), 0)
           / sum_x max(q(x | X_{1:i}) - p̃_i p(x | X_{1:i}), 0) for i < L            (line 5)
    3. each prefix is accepted with probability min(1, h_i), the whole path with min(1, p̃_L),
       independently; tau is the length of the longest accepted one, or 0      (lines 6-14)
    4. Y ~ max(p̃_tau p - q, 0), normalised, at X_{1:tau}; Y ~ p if tau = L      (lines 13-16)

    In step 2 numerator minus denominator is p̃_i - 1.  So h_i >= 1 if and only if p̃_i >= 1.  Otherwise the
    denominator is at least 1 - p̃_i > 0.  Both sums are zero if p̃_i = 1 and p = q at X_{1:i}.  Then a longer
    prefix is accepted with probability 1, so h_i has no influence, and we take it as 1.

    P(tau >= i | X_{1:i}) = min(1, p̃_i) (Lemma 9), and E[tau] is the sum of min(p(a), q(a)) over the contexts
    a of depth 1 to L (theory.md Statement 4.4).

    Not lossless on its own.  The next L - tau - 1 tokens must be decoded with the rows of
    ``modified_target_rows`` as the target (Algorithm 5, Lemma 8; theory.md Statement 4.5).
    ``spectheory.exact.iteration`` carries them from call to call.

    Example:
        >>> from spectheory import certify, instances
        >>> certificate = certify(GreedyBlock(), instances.two_token(2), with_optimum=False)
        >>> print(certificate.block_efficiency, certificate.total_variation)
        7/3 1/9
    """

    name: ClassVar[str] = "greedy_block"
    source: ClassVar[str] = "block2024 Alg. 4"
    lossless: ClassVar[bool] = False

    order: ClassVar[Callable[[Array], Array]] = staticmethod(longest_accepted)
    numbers_of_host: ClassVar[bool] = True

    def longer(self, weight: Array, ratio: Array) -> Array:
        """Step 1: compute p̃_i."""
        return weight * ratio

    def acceptance(self, weight: Array, residual_mass: Array) -> Array:
        """Step 2, line 5: compute min(1, h_i)."""
        one, certain = ones_like(weight), weight >= 1
        xp = namespace(weight)
        # Where acceptance is certain, the quotient is not used, and 1 avoids a division by 0.
        lost = xp.where(certain, one, residual_mass + 1 - weight)
        return xp.where(certain, one, residual_mass / lost)

    def rejected_mass(self, target_mass: Array, draft_mass: Array, num_drafts: int) -> Array:
        """Algorithm 5 (Eq. 31): compute max(p(a, x) - q(a, x), 0), for any number of drafts."""
        return positive_part(target_mass - draft_mass)

"""Block verification that uses w, the weight of a prefix, wrongly."""

from collections.abc import Callable
from typing import ClassVar

from spectheory.foundation.arrays import Array, at_most_one, namespace, ones_like, prefix_products
from spectheory.verification.algorithms.one_path.prefix_tests import first_rejected
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.defective.skeletons import BlockSkeleton


class BlockAcceptanceWithoutWeight(BlockSkeleton):
    """h is computed with max(p - q, 0) instead of max(w p - q, 0).

    Plausible because a paper misprints the formula like this, and both are equal while w = 1.  So with one
    drafted token the error has no effect.  A prefix with w < 1 is accepted too often.
    """

    origin: ClassVar[str] = "The formula of block verification is misprinted in later work."

    def residual_mass(self, weight: Array, target_rows: Array, draft_rows: Array) -> Array:
        return super().residual_mass(ones_like(weight), target_rows, draft_rows)


class BlockResidualWithoutWeight(BlockSkeleton):
    """The correction token is drawn from max(p - q, 0) instead of max(w p - q, 0).

    Plausible because it is the residual of token verification.  Acceptance is right, so the block efficiency
    equals block verification's exactly.  With one drafted token the error has no effect.
    """

    origin: ClassVar[str] = "Block acceptance is added to a token verifier whose residual is left in place."

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        return super().residual(ones_like(weight), rows)


class BlockUncappedWeight(BlockSkeleton):
    """w_i = p(a_{1:i}) / q(a_{1:i}), not capped at 1: greedy block verification without its second part.

    This is block2024 Algorithm 4 without the distribution modification of Algorithm 5.
    Plausible because more tokens are accepted per call and every step is printed in the paper.
    """

    origin: ClassVar[str] = "The minimum in the recursion is left out, or the second half of an algorithm is."

    def longer(self, weight: Array, ratio: Array) -> Array:
        return weight * ratio


class BlockUncappedLastWeight(BlockSkeleton):
    """The whole path is accepted with min(1, p(a_{1:L}) / q(a_{1:L})); shorter prefixes are right.

    The code published with hsd2026 does this at the last position, and uses the weights of block verification
    at earlier positions (theory.md Statement 4.11).  Plausible because it is the acceptance probability of a
    whole path as one draft.  Both agree unless a prefix has p > q, so one drafted token shows no error.
    """

    origin: ClassVar[str] = "Published code caps the ratio of all prefixes but that of the whole path."

    def weights(self, ratio: Array) -> Array:
        whole = at_most_one(prefix_products(ratio)[..., -1:])
        return namespace(ratio).concat([super().weights(ratio)[..., :-1], whole], axis=-1)


class BlockFirstRejection(BlockSkeleton):
    """The acceptance probabilities of block verification in a loop that stops at the first rejection.

    Plausible because that is the loop of token verification.  Longer prefixes that block verification would
    accept are never tested.
    """

    origin: ClassVar[str] = "A `break` of token verification survives in the loop of block verification."

    order: ClassVar[Callable[[Array], Array]] = staticmethod(first_rejected)


class BlockWeightAsAcceptance(BlockSkeleton):
    """Each prefix is accepted with probability w_i instead of h_i.

    Plausible because P(tau >= i) = w_i is the property on which block verification is built.  But w_i is the
    probability of accepting prefix i or a longer one, so prefix i alone needs a smaller one.
    """

    origin: ClassVar[str] = "A property from a proof is implemented in place of the algorithm."

    def acceptance(self, weight: Array, residual_mass: Array) -> Array:
        return weight

"""Block verification with w, the weight of a prefix, used wrongly."""

from collections.abc import Callable
from typing import ClassVar

from spectheory.foundation.arrays import Array, at_most_one, namespace, ones_like, prefix_products
from spectheory.verification.algorithms.one_path.prefix_tests import first_rejected
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.defective.skeletons import BlockSkeleton


class BlockAcceptanceWithoutWeight(BlockSkeleton):
    """h is computed with max(p - q, 0) where max(w p - q, 0) belongs.

    Plausible because it is how the formula is misprinted, and equal as long as w = 1: with one drafted
    token nothing shows.  A prefix with w < 1 is then accepted too often.
    """

    origin: ClassVar[str] = "The formula of block verification is misprinted in later work."

    def residual_mass(self, weight: Array, target_rows: Array, draft_rows: Array) -> Array:
        return super().residual_mass(ones_like(weight), target_rows, draft_rows)


class BlockResidualWithoutWeight(BlockSkeleton):
    """The correction token is drawn from max(p - q, 0) instead of max(w p - q, 0).

    Plausible because it is the residual of token verification.  Acceptance is right, so that the
    block efficiency is exactly that of block verification; with one drafted token nothing shows.
    """

    origin: ClassVar[str] = "Block acceptance is added to a token verifier whose residual is left in place."

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        return super().residual(ones_like(weight), rows)


class BlockUncappedWeight(BlockSkeleton):
    """w_i = p(a_{1:i}) / q(a_{1:i}), not capped at 1: greedy block verification on its own.

    block2024 Algorithm 4 without the distribution modification of its Algorithm 5.
    Plausible because more tokens are accepted per call and every step is printed in the paper.
    """

    origin: ClassVar[str] = "The minimum in the recursion is left out, or the second half of an algorithm is."

    def longer(self, weight: Array, ratio: Array) -> Array:
        return weight * ratio


class BlockUncappedLastWeight(BlockSkeleton):
    """The whole path is accepted with min(1, p(a_{1:L}) / q(a_{1:L})), shorter prefixes as they should be.

    The code published with hsd2026 decides so at the last position, while its weights before are those of
    block verification (theory.md Statement 4.11).  Plausible because it is the acceptance of a whole path as
    one draft, and equal unless a prefix has p > q: with one drafted token nothing shows.
    """

    origin: ClassVar[str] = "Published code caps the ratio of all prefixes but that of the whole path."

    def weights(self, ratio: Array) -> Array:
        whole = at_most_one(prefix_products(ratio)[..., -1:])
        return namespace(ratio).concat([super().weights(ratio)[..., :-1], whole], axis=-1)


class BlockFirstRejection(BlockSkeleton):
    """The acceptance probabilities of block verification in a loop that stops at the first rejection.

    Plausible because that is the loop of token verification.  A longer prefix that would have been
    accepted is never looked at.
    """

    origin: ClassVar[str] = "A `break` of token verification survives in the loop of block verification."

    order: ClassVar[Callable[[Array], Array]] = staticmethod(first_rejected)


class BlockWeightAsAcceptance(BlockSkeleton):
    """Each prefix is accepted with probability w_i instead of h_i.

    Plausible because P(tau >= i) = w_i is the property that block verification is built for.  It
    holds for "i or longer", so that the coin of prefix i alone must have less.
    """

    origin: ClassVar[str] = "A property from a proof is implemented in place of the algorithm."

    def acceptance(self, weight: Array, residual_mass: Array) -> Array:
        return weight

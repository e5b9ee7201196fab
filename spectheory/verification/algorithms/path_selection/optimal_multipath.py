"""A verifier that attains the multi-path optimum on one enumerated pair."""

from typing import ClassVar

from spectheory.foundation.arrays import Array, normalise
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import exact_values
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.optima.greedy_polymatroid import decompose_into_rankings
from spectheory.optima.path_selection import path_selection_optimum
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.leaf_rankings import LeafRankings
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier


class OptimalMultipath(LeafRankings):
    """The optimal valid verifier of K i.i.d. drafts on one pair, greedy2026 Theorem 4.6.

    1. Solve for the law r of the selected path with the largest block efficiency  (Theorem 4.6, Eqs. 16-17)
    2. Write r as a mixture of rankings, the vertices of the polytope of Eq. 17           (App. H)
    3. Draw a ranking and select its highest drafted path, which has law r             (Lemma 4.5)
    4. Run block verification on it with target p and draft r                          (Lemma 4.4)

    Steps 1 and 2 run once, when the verifier is created, and need both models at every context.  On
    an exact pair everything is exact: the verifier's law attains the optimum and is lossless exactly.
    A float64 pair is first converted exactly and normalised (``exact_neighbour``), and the law attains the
    optimum of the converted pair.  The verifier refuses other pairs (``LeafRankings``).  The name
    ``"optimal_multipath"`` creates a verifier for each pair.

    Args:
        pair: the models the verifier is bound to.
        num_drafts: K.

    Attributes:
        value: the optimum, tokens per target call.

    Raises:
        InvalidInputError: K is not an integer of at least 1.
        EnumerationTooLargeError: the pair has too many leaves.

    Example:
        >>> from spectheory import certify, instances
        >>> pair = instances.uniform_equal(1)
        >>> certificate = certify(OptimalMultipath(pair, 2), pair, 2)
        >>> print(certificate.verdict, certificate.block_efficiency, certificate.optimum)
        lossless 2 2
        >>> certify("greedy_multipath", pair, 2).block_efficiency
        Fraction(7, 4)
    """

    name: ClassVar[str] = "optimal_multipath"
    source: ClassVar[str] = "greedy2026 Thm 4.6, App. H"

    def __init__(self, pair: ModelPair, num_drafts: int) -> None:
        exact_pair = pair if pair.is_exact else exact_neighbour(pair)
        best = path_selection_optimum(exact_pair, num_drafts)
        found = decompose_into_rankings(exact_pair, num_drafts, best.skewed_draft.leaf_law)
        super().__init__(pair, found.weights, found.orders)
        self.num_drafts = num_drafts
        self.value = best.value if pair.is_exact else float(best.value)

    def skewed_draft(self, num_drafts: int) -> SkewedDraft:
        """Return r, the law of the selected path.  ``num_drafts`` must be the verifier's own number."""
        if num_drafts != self.num_drafts:
            raise InvalidInputError(
                f"verifier {self.name!r} was made for {self.num_drafts} drafts and given {num_drafts}; "
                f"make another, OptimalMultipath(pair, {num_drafts})"
            )
        return super().skewed_draft(num_drafts)


class OptimalMultipathOfPair(Verifier):
    """The registered verifier ``optimal_multipath``: ``bind`` creates the ``OptimalMultipath`` of a pair.

    ``certify`` and the command line use it by its name.  Without ``bind`` it verifies nothing.

    Example:
        >>> from spectheory import certify, instances
        >>> print(certify("optimal_multipath", instances.two_token(2), 3).block_efficiency)
        2080/729
    """

    name: ClassVar[str] = OptimalMultipath.name
    source: ClassVar[str] = OptimalMultipath.source

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Verifier:
        super().bind(process, pair)
        return self if pair is None else OptimalMultipath(pair, process.num_drafts)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        raise InvalidInputError(
            f"verifier {self.name!r} needs both models at every context; certify it on an enumerated pair, "
            "or make one with OptimalMultipath(pair, num_drafts)"
        )


def exact_neighbour(pair: ModelPair) -> ModelPair:
    """Convert a float64 pair to rationals: each entry exactly, then each row divided by its exact sum."""
    target, draft = ([exact_values(level) for level in side] for side in (pair.target, pair.draft))
    return ModelPair(tuple(map(normalise, target)), tuple(map(normalise, draft)), pair.vocab)

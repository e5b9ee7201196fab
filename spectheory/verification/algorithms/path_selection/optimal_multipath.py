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

    1. Solve for the law r of the selected path that earns the most         (Theorem 4.6, Eqs. 16-17)
    2. Write r as a mixture of rankings, the vertices of the polytope of Eq. 17           (App. H)
    3. Draw a ranking, select its highest drafted path: the selected path has law r    (Lemma 4.5)
    4. Run block verification on it with target p and draft r                          (Lemma 4.4)

    Steps 1 and 2 are done once, when the verifier is made, and need both models at every context.  On
    an exact pair everything is exact: the verifier's law attains the optimum and is lossless exactly.
    A float64 pair is taken at its exact neighbour, every row divided by its exact sum; the law then
    attains the optimum of that.  On any other pair the verifier is refused (``LeafRankings``); the name
    ``"optimal_multipath"`` makes one for every pair it meets.

    Args:
        pair: the models the verifier is bound to.
        num_drafts: K.

    Attributes:
        value: the optimum, tokens per target call.

    Raises:
        InvalidInputError: K is not a whole number of at least 1.
        EnumerationTooLargeError: the pair has too many leaves.

    Example:
        >>> from spectheory import certify, instances
        >>> pair = instances.uniform_equal(1)
        >>> certificate = certify(OptimalMultipath(pair, 2), pair, 2)
        >>> print(certificate.is_valid, certificate.block_efficiency, certificate.optimum)
        True 2 2
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
        """r, the law of the selected path, for the number of drafts the verifier was made for."""
        if num_drafts != self.num_drafts:
            raise InvalidInputError(
                f"verifier {self.name!r} was made for {self.num_drafts} drafts and given {num_drafts}; "
                f"make another, OptimalMultipath(pair, {num_drafts})"
            )
        return super().skewed_draft(num_drafts)


class OptimalMultipathOfPair(Verifier):
    """``optimal_multipath`` before it is told the pair: ``bind`` makes the ``OptimalMultipath``.

    It is what the name stands for in ``certify`` and on the command line; on its own it verifies nothing.

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
    """A float64 pair as rationals: every entry exactly, every row divided by its exact sum."""
    target, draft = ([exact_values(level) for level in side] for side in (pair.target, pair.draft))
    return ModelPair(tuple(map(normalise, target)), tuple(map(normalise, draft)), pair.vocab)

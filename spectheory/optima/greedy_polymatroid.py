"""Decomposition of a skewed draft into rankings, the vertices of the polytope (greedy2026 Appendix H)."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import to_flint, to_fraction
from spectheory.foundation.results import no_verdict
from spectheory.optima.bounds.level_sets import LevelSets, SortedByRatio
from spectheory.optima.bounds.skewed_draft import SkewedDraft, is_skewed_draft, ranked_leaf_law
from spectheory.pairs.pair import ModelPair


class RankingDecomposition(NamedTuple):
    """A mixture of rankings: draw a ranking, then select the highest-ranked draft.

    Attributes:
        weights: the probability of each ranking, Fractions > 0 that sum to 1.
        orders: the rankings: leaf numbers, lowest rank first.
    """

    weights: tuple[Fraction, ...]
    orders: tuple[np.ndarray, ...]

    def __bool__(self) -> bool:
        raise no_verdict(self, ".weights")

    def leaf_law(self, pair: ModelPair, num_drafts: int) -> np.ndarray:
        """Compute the law of the selected path, Σ_i weight_i r_i, [V^L].  r_i is the law under ranking i."""
        drafts = [SkewedDraft.from_order(pair, num_drafts, order) for order in self.orders]
        return SkewedDraft.mixture(self.weights, drafts).leaf_law


def decompose_into_rankings(pair: ModelPair, num_drafts: int, leaf_law: np.ndarray) -> RankingDecomposition:
    """Write any skewed draft r exactly as a mixture of at most M = V^L rankings (Carathéodory).

    So every feasible law has a path-selection rule: draw a ranking, then select its highest-ranked draft.

    1. Keep a chain of tight sets ∅ ⊂ C_1 ⊂ .. ⊂ V^L, r(C_i) = f(q(C_i)) with f(u) = 1 - (1 - u)^K.  Rank the
       leaves of smaller sets above the others, and by r/q within a step of the chain.  The sets are also
       tight at the vertex v, the law of this ranking.
    2. Go from v through r to the boundary: y = r + t (r - v) with the largest feasible t, by Newton's
       method on the most violated set (each step one sort).  Then r = (y + t v) / (1 + t).
    3. At y a new set S is tight, with y(S) ≠ r(S).  The sets (S ∩ C_{i+1}) ∪ C_i are tight as well, because
       f∘q is submodular, and they refine the chain strictly.  Continue with y in place of r, until r = v.

    Every round but the last refines the chain, so there are at most M rounds.

    Args:
        pair: an exact pair; only the draft is used.
        num_drafts: K.
        leaf_law: r, [V^L], Fractions.

    Returns:
        Weights and rankings whose mixture is ``leaf_law`` exactly.

    Raises:
        InvalidInputError: the pair is not exact, or the law is not a skewed draft.  The text names the
            leaf set with too much mass.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], draft_length=1)
        >>> found = decompose_into_rankings(pair, 2, np.array([Fraction(3, 8), Fraction(5, 8)]))
        >>> [(str(weight), order.tolist()) for weight, order in zip(*found)]
        [('3/4', [0, 1]), ('1/4', [1, 0])]
    """
    if not pair.is_exact:
        raise InvalidInputError("the decomposition into rankings is exact; give an exact pair")
    membership = is_skewed_draft(pair, leaf_law, num_drafts)
    if not membership.is_member:
        raise InvalidInputError(
            f"leaf_law is not the law of a selected path: the leaves {list(membership.witness)} have "
            f"{membership.excess} more mass than the probability that some draft is one of them"
        )
    draft_probs = pair.draft_path_probs(pair.draft_length)
    support = np.flatnonzero(draft_probs > 0)
    never = np.flatnonzero(draft_probs == 0)
    law = to_flint(np.asarray(leaf_law)[support])
    steps = list(_rankings(law, to_flint(draft_probs[support]), num_drafts))
    return RankingDecomposition(
        tuple(to_fraction(weight) for weight, _ in steps),
        tuple(np.concatenate([never, support[top_down[::-1]]]) for _, top_down in steps),
    )


def _rankings(law: np.ndarray, draft_probs: np.ndarray, num_drafts: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield (weight, leaves with the highest rank first) for every ranking of the mixture."""
    step = np.zeros(len(law), dtype=int)  # per leaf: the step of the chain that added it
    left = law[0] * 0 + 1
    while True:
        by_ratio = SortedByRatio.of(-law, draft_probs).order
        top_down = by_ratio[np.argsort(step[by_ratio], kind="stable")]
        direction = law - ranked_leaf_law(draft_probs, top_down[::-1], num_drafts)
        if not (direction != 0).any():
            yield left, top_down
            return
        length, tight = _to_the_boundary(law, direction, draft_probs, num_drafts)
        if length > 0:
            yield left * length / (1 + length), top_down
            left = left / (1 + length)
            law = law + length * direction
        step = np.unique(2 * step + ~tight, return_inverse=True)[1]


def _to_the_boundary(
    law: np.ndarray, direction: np.ndarray, draft_probs: np.ndarray, num_drafts: int
) -> tuple[Any, np.ndarray]:
    """Find the largest t with law + t direction feasible, and a set that becomes tight at it (booleans [M]).

    The slack min_S f(q(S)) - law(S) - t direction(S) is concave in t.  So Newton's method from an infeasible
    t decreases to the root in finitely many steps.  It starts at the t where an entry becomes 0.  This t is
    infeasible: with probability q(b)^K > 0 all drafts end in that leaf b, so a feasible law has r(b) > 0.
    """
    falling = direction < 0
    length = (law[falling] / -direction[falling]).min()
    tight = np.zeros(len(law), dtype=bool)
    while True:
        sets = LevelSets.of(law + length * direction, draft_probs, num_drafts)
        worst = int(np.argmax(sets.excesses))
        if sets.excesses[worst] <= 0:
            return length, tight
        tight = np.isin(np.arange(len(law)), sets.leaves(worst))
        limit = hit_probability(draft_probs[tight].sum(keepdims=True), num_drafts)[0]
        length = (limit - law[tight].sum()) / direction[tight].sum()

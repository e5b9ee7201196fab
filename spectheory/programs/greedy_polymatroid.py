"""Rankings as vertices of the polytope of skewed drafts (greedy2026 Appendix H)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.arrays import to_flint, to_fraction
from spectheory.bounds.skewed_draft import LeafOrder, SkewedDraft
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.budgets import some_draft_probs
from spectheory.programs.path_selection import is_skewed_draft, prefix_excesses


class RankingDecomposition(NamedTuple):
    """A law of the selected path as a random choice of a ranking.

    Attributes:
        weights: the probability of each ranking, Fractions > 0 that sum to 1.
        orders: the rankings: leaf numbers, lowest rank first.
    """

    weights: tuple[Fraction, ...]
    orders: tuple[np.ndarray, ...]

    def leaf_law(self, pair: ModelPair, num_drafts: int) -> np.ndarray:
        """sum_w weight_w r_w, the law of the path selected by the ranking that was drawn, [V^L]."""
        laws = [ranking_vertex(pair, num_drafts, order) for order in self.orders]
        return np.asarray(sum(weight * law for weight, law in zip(self.weights, laws, strict=True)))


def ranking_vertex(pair: ModelPair, num_drafts: int, order: LeafOrder) -> np.ndarray:
    """The law of the highest-ranked of K drafts: a vertex of {r : r(S) ≤ f(q(S)), r(V^L) = 1}.

    Source: greedy2026 Eq. 19, and Appendix H as the output of the greedy polymatroid algorithm.
    The greedy algorithm takes leaves in the order of Eq. 93, ψ({P_1..P_i}) - ψ({P_1..P_{i-1}}) with
    ψ = f∘q, which gives the first leaf the most: its order is the ranking from the top down, the
    reverse of the order of Eq. 19.

    Args:
        pair: the models; only the draft is used.
        num_drafts: K.
        order: every leaf once, lowest rank first.

    Returns:
        r, [V^L].

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> print(ranking_vertex(pair, 2, [0, 1]), ranking_vertex(pair, 2, [1, 0]))
        [Fraction(4, 9) Fraction(5, 9)] [Fraction(8, 9) Fraction(1, 9)]
    """
    return SkewedDraft.from_order(pair, num_drafts, order).leaf_law


def decompose_into_rankings(pair: ModelPair, num_drafts: int, leaf_law: np.ndarray) -> RankingDecomposition:
    """Any skewed draft as a mixture of at most M = V^L rankings (Carathéodory), exactly.

    It makes every feasible law a runnable path-selection rule: draw a ranking, take its top draft.

    1. Keep a chain of tight sets ∅ ⊂ C_1 ⊂ .. ⊂ V^L, r(C_i) = f(q(C_i)).  Rank the leaves of a
       smaller set above the others, and by r/q within a step of the chain.  The vertex v of this
       ranking satisfies r(C_i) = f(q(C_i)) too.
    2. From v through r to the boundary: y = r + t (r - v) with the largest feasible t, by Newton's
       method on the most violated set (each step one sort).  r = (y + t v) / (1 + t).
    3. At y a set S is tight on which y moved.  The sets (S ∩ C_{i+1}) ∪ C_i are tight as well, because
       f∘q is submodular, and refine the chain strictly.  Continue with y; stop where r = v.

    Every round but the last refines the chain, so there are at most M rounds.

    Args:
        pair: an exact pair; only the draft is used.
        num_drafts: K.
        leaf_law: r, [V^L], Fractions.

    Returns:
        Weights and rankings whose mixture is ``leaf_law`` exactly.

    Raises:
        InvalidInputError: the pair is not exact, or the law is not a skewed draft; the text names the
            leaf set that is too heavy.

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
    """(weight, leaves from the top down) of every vertex in the mixture."""
    step = np.zeros(len(law), dtype=int)  # the step of the chain that each leaf was added in
    left = law[0] * 0 + 1
    while True:
        by_ratio = np.argsort(-(law / draft_probs), kind="stable")
        top_down = by_ratio[np.argsort(step[by_ratio], kind="stable")]
        direction = law - _vertex(top_down, draft_probs, num_drafts)
        if not (direction != 0).any():
            yield left, top_down
            return
        length, tight = _to_the_boundary(law, direction, draft_probs, num_drafts)
        if length > 0:
            yield left * length / (1 + length), top_down
            left = left / (1 + length)
            law = law + length * direction
        step = np.unique(2 * step + ~tight, return_inverse=True)[1]


def _vertex(top_down: np.ndarray, draft_probs: np.ndarray, num_drafts: int) -> np.ndarray:
    """f(q(P_1..P_i)) - f(q(P_1..P_{i-1})), from the top down (Eq. 93)."""
    covered = some_draft_probs(draft_probs[top_down].cumsum(), num_drafts)
    vertex = np.empty_like(covered)
    vertex[top_down] = np.concatenate([covered[:1], covered[1:] - covered[:-1]])
    return vertex


def _to_the_boundary(
    law: np.ndarray, direction: np.ndarray, draft_probs: np.ndarray, num_drafts: int
) -> tuple[Any, np.ndarray]:
    """The largest t with law + t direction feasible, and a set that stops it (booleans [M]).

    The slack min_S f(q(S)) - law(S) - t direction(S) is concave in t: Newton's method from an
    infeasible t falls to the root in finitely many steps.  It starts where an entry becomes 0,
    which is infeasible: the leaf is the only one drafted with probability q(b)^K > 0.
    """
    falling = direction < 0
    length = (law[falling] / -direction[falling]).min()
    tight = np.zeros(len(law), dtype=bool)
    while True:
        order, excesses = prefix_excesses(law + length * direction, draft_probs, num_drafts)
        worst = int(np.argmax(excesses))
        if excesses[worst] <= 0:
            return length, tight
        tight = np.isin(np.arange(len(law)), order[: worst + 1])
        limit = some_draft_probs(draft_probs[tight].sum(keepdims=True), num_drafts)[0]
        length = (limit - law[tight].sum()) / direction[tight].sum()

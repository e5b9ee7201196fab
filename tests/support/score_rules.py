"""Rules of scored selection for tests: random ones, known algorithms written as such, and a wrong one."""

from fractions import Fraction
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

from spectheory.foundation.arrays import Array
from spectheory.foundation.exact_numbers import to_flint
from spectheory.optima.bounds.rankings import leaf_order
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.score_levels import ScoreNode
from spectheory.verification.algorithms.path_selection.scored import ScoredSelection, ScoreSplit, ScoreState


def fraction_array(values: list[list[Fraction]]) -> np.ndarray:
    array = np.empty((len(values), len(values[0])), dtype=object)
    array[:] = values
    return to_flint(array)


class RankedScores(ScoredSelection):
    """``mixed_multipath`` on one pair as scores: with share λ uniform, otherwise the interval of a ranking.

    The cells end where the leaves of the pair do, in the order of p/q.
    """

    name: ClassVar[str] = "ranked_scores"
    source: ClassVar[str] = "a test"

    def __init__(self, pair: ModelPair, first_draft_prob: Fraction) -> None:
        self.share = first_draft_prob
        leaves = pair.draft_path_probs(pair.draft_length)[leaf_order(pair)]
        self.edges = to_flint(np.concatenate([leaves[:1] * 0, np.cumsum(leaves)]))

    def cell_edges(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        return np.broadcast_to(self.edges, (len(draft_row), len(self.edges)))

    def split(self, state: ScoreState, target_row: Array, draft_row: Array) -> ScoreSplit:
        share = to_flint(np.array([self.share]))[0]
        uniform = np.broadcast_to(np.diff(self.edges), state.masses.shape)
        plans, rows = [], []
        for number in range(len(draft_row)):
            p, q = target_row[number], draft_row[number]
            ratio = np.array([x / y if y else x * 0 for x, y in zip(p, q, strict=True)])
            order = np.argsort(ratio, kind="stable")[::-1]
            ranked = state.masses[number] - share * uniform[number]  # (1-λ) times the interval of the context
            node = ScoreNode.of(q[order] * (1 - share), ratio[order], ranked, state.win_rates[number])
            laws = [
                piece / mass if mass else piece for piece, mass in zip(node.pieces, q[order], strict=True)
            ]
            plans.append([share * uniform[number] + law for law in laws])
            rows.append(np.argsort(order))
        lower = np.array(rows)
        return ScoreSplit(np.array(plans), lower)


class RandomScores(ScoredSelection):
    """Any split will do: tokens i and i+1 exchange a random part of two random cells."""

    name: ClassVar[str] = "random_scores"
    source: ClassVar[str] = "a test"
    exchanged: ClassVar[bool] = True

    def cell_edges(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        edges = fraction_array([[Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(5, 6), Fraction(1)]])
        return np.repeat(edges, len(draft_row), axis=0)

    def split(self, state: ScoreState, target_row: Array, draft_row: Array) -> ScoreSplit:
        plan = np.repeat(state.masses[:, None, :], draft_row.shape[-1], axis=1)
        for row, (p, q) in enumerate(zip(target_row, draft_row, strict=True)):
            rng = np.random.default_rng(abs(hash((*p, *q))) % 2**32)
            for x in range(len(q) - 1):
                i, j = rng.choice(4, size=2, replace=False)
                if q[x] and q[x + 1]:
                    most = min(plan[row, x, i] * q[x], plan[row, x + 1, j] * q[x + 1])
                    part = most * int(rng.integers(1, 5)) / 4
                    plan[row, x, i] -= part / q[x]
                    plan[row, x, j] += part / q[x]
                    if self.exchanged:
                        plan[row, x + 1, j] -= part / q[x + 1]
                        plan[row, x + 1, i] += part / q[x + 1]
        lower = np.zeros(draft_row.shape, dtype=np.int64) + np.arange(draft_row.shape[-1])
        return ScoreSplit(plan, lower)


class OneSidedScores(RandomScores):
    """Known to be wrong: a token moves its scores and its neighbour does not, so that (M) fails."""

    exchanged: ClassVar[bool] = False


def node_of(
    p: list[int], q: list[int], masses: list[int], num_drafts: int, served: Fraction | int
) -> ScoreNode:
    """A node of whole weights, tokens in descending order of p/q, equal cells; a batch of one."""
    target, draft = ([Fraction(x, sum(row)) for x in row] for row in (p, q))
    demands = [served * x / y if y else Fraction(0) for x, y in zip(target, draft, strict=True)]
    order = sorted(range(len(p)), key=lambda x: -demands[x])
    cells, M = [Fraction(m, sum(masses)) for m in masses], len(masses)
    rates = [M * (Fraction(j + 1, M) ** num_drafts - Fraction(j, M) ** num_drafts) for j in range(M)]
    arrays = ([draft[x] for x in order], [demands[x] for x in order], cells, rates)
    return ScoreNode.of(*(fraction_array([row]) for row in arrays))


nodes = st.builds(
    node_of,
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any),
    st.integers(1, 4),
    st.fractions(0, 2, max_denominator=4),
)
"""Nodes of four tokens and three cells, zeros and ties among them, and nodes without any demand."""

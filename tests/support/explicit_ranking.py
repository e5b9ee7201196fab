"""Greedy multi-path verification with any order of the leaves, which no published verifier has."""

from typing import ClassVar

from spectheory.optima.bounds.rankings import LeafOrder
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.leaf_rankings import LeafRankings


class ExplicitRanking(LeafRankings):
    """Greedy multi-path block verification with any total order on the leaves of one pair (Def. 5.1).

    The law of the selected path is looked up (Eq. 19); in general on-path rows do not determine it.

    Args:
        pair: the models whose leaves are ordered.
        order: every leaf once, lowest rank first: leaf numbers or paths of token ids.
    """

    name: ClassVar[str] = "explicit_ranking"
    source: ClassVar[str] = "greedy2026 Def. 5.1, Eq. 19"

    def __init__(self, pair: ModelPair, order: LeafOrder) -> None:
        super().__init__(pair, [1], [order])

"""The best and the worst tree-based ranking of greedy multi-path block verification on a small pair."""

import math
from functools import cache
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from spectheory.optima.bounds.rankings import Ranking, leaf_order, ranking_keys, ratio_ranking
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.pair import ModelPair

Orders = tuple[tuple[int, ...], ...]
"""The tokens that can be drafted after every context, lowest rank first; contexts by depth and number."""


class RankedEfficiency(NamedTuple):
    """A ranking as an order on all leaves, lowest first, [V^L], and its block efficiency."""

    value: Any
    leaf_order: np.ndarray


class BestRanking(NamedTuple):
    """The rankings with the largest and the smallest block efficiency, that by p/q, and the number tried."""

    best: RankedEfficiency
    worst: RankedEfficiency
    greedy: RankedEfficiency
    rankings_tried: int


def count_tree_rankings(pair: ModelPair) -> int:
    """The number of tree-based rankings that differ on drafts: the product of n! over the contexts that can
    be drafted, n the number of tokens with q > 0 there."""
    return math.prod(math.factorial(len(tokens)) for tokens in _supports(pair))


def best_ranking(pair: ModelPair, num_drafts: int) -> BestRanking:
    """The tree-based rankings (greedy2026 Def. 5.2) that earn the most and the least, of all there are.

    The block efficiency of a ranking is Σ_a min_{k ≤ |a|} p(a_{k+1:} | a_{1:k}) q^Γ(a_{1:k}) (Eq. 16).
    In Def. 5.2 the order at a context depends on its rows only; here contexts with equal rows may be ordered
    differently.
    """

    @cache
    def earned(orders: Orders) -> Any:
        return SkewedDraft.from_ranking(pair, num_drafts, _as_ranking(orders)).block_efficiency(pair)

    def ranked(orders: Orders) -> RankedEfficiency:
        return RankedEfficiency(earned(orders), leaf_order(pair, _as_ranking(orders)))

    greedy = ranked(_orders_of(pair, ratio_ranking))
    every = list(product(*map(permutations, _supports(pair))))
    best, worst = ranked(max(every, key=earned)), ranked(min(every, key=earned))
    return BestRanking(best, worst, greedy, earned.cache_info().currsize)


def _as_ranking(orders: Orders) -> Ranking:
    """A ranking that returns the orders depth by depth, as it is called."""
    rest = iter(orders)

    def ranking(target_rows: np.ndarray, draft_rows: np.ndarray) -> np.ndarray:
        keys = np.full(draft_rows.shape, -1, dtype=np.int64)  # tokens that are never drafted rank lowest
        for row in keys:
            tokens = next(rest)
            row[list(tokens)] = np.arange(len(tokens))
        return keys

    return ranking


def _supports(pair: ModelPair) -> Orders:
    """The tokens that can be drafted after every context; none where the context cannot be drafted."""
    return tuple(
        tuple(np.flatnonzero(row > 0).tolist()) if reached > 0 else ()
        for depth, level in enumerate(pair.draft)
        for row, reached in zip(level, pair.draft_path_probs(depth), strict=True)
    )


def _orders_of(pair: ModelPair, ranking: Ranking) -> Orders:
    keys = [ranking_keys(ranking, *rows) for rows in zip(pair.target[:-1], pair.draft, strict=True)]
    ascending = np.concatenate([np.argsort(level, axis=-1, stable=True) for level in keys]).tolist()
    orders = zip(ascending, _supports(pair), strict=True)
    return tuple(tuple(token for token in row if token in tokens) for row, tokens in orders)

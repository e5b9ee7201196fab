"""The best and the worst tree-based ranking of greedy multi-path block verification on a small pair.

Nothing in the package uses it.  It says how much of the optimum a ranking can reach, and that the ranking by
p/q is not the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from spectheory.bounds.rankings import Ranking, leaf_order, ranking_keys, ratio_ranking
from spectheory.bounds.skewed_draft import SkewedDraft
from spectheory.pair import ModelPair
from spectheory.programs.path_selection import path_selection_optimum
from spectheory.validate import check_count, check_num_drafts

MAX_RANKINGS = 5_000
"""Up to this many tree-based rankings all of them are tried."""

Orders = tuple[tuple[int, ...], ...]
"""The tokens that can be drafted after every context, lowest rank first; contexts by depth and number."""


class RankedEfficiency(NamedTuple):
    """One ranking and what it earns.

    Attributes:
        value: block efficiency, tokens per target call; a Fraction on exact pairs.
        leaf_order: the ranking as an order on all leaves, lowest first, [V^L].
    """

    value: Any
    leaf_order: np.ndarray


@dataclass(frozen=True)
class BestRanking:
    """The range of block efficiencies over tree-based rankings.

    Attributes:
        best, worst: the rankings with the largest and the smallest block efficiency found.
        greedy: the ranking by p/q, which ``greedy_multipath`` uses.
        optimum: the best block efficiency of any valid verifier (Theorem 4.6).
        exhaustive: whether every tree-based ranking was tried.  If not, ``best`` and ``worst`` are
            what a local search found: a lower bound on the best and an upper bound on the worst.
        rankings_tried: how many rankings were evaluated.
    """

    best: RankedEfficiency
    worst: RankedEfficiency
    greedy: RankedEfficiency
    optimum: Any
    exhaustive: bool
    rankings_tried: int


def count_tree_rankings(pair: ModelPair) -> int:
    """The number of tree-based rankings that differ on drafts: the product of n! over the contexts that can
    be drafted, n the number of tokens with q > 0 there.

    Example:
        >>> from spectheory import instances
        >>> count_tree_rankings(instances.two_token(3))
        128
        >>> count_tree_rankings(instances.three_token_reversed(2))
        1296
    """
    return math.prod(math.factorial(len(tokens)) for tokens in _supports(pair))


def best_ranking(
    pair: ModelPair,
    num_drafts: int,
    max_rankings: int = MAX_RANKINGS,
    num_restarts: int = 8,
    seed: int = 0,
    with_optimum: bool = True,
) -> BestRanking:
    """The tree-based rankings (greedy2026 Def. 5.2) that earn the most and the least.

    The block efficiency of a ranking is Σ_a min_{k ≤ |a|} p(a_{k+1:} | a_{1:k}) q^Γ(a_{1:k}) (Eq. 16).
    Def. 5.2 wants the order at a context to depend on its rows only; here every context has an order of
    its own, so that contexts with equal rows may be ordered differently.

    - At most ``max_rankings`` rankings: all of them.
    - More: local search.  From the ranking by p/q, its reverse and random ones, reorder two
      neighbouring tokens at one context while that helps.

    Args:
        pair: the models.
        num_drafts: K.
        max_rankings: how many rankings are tried exhaustively.
        num_restarts: how many random starts the local search has.
        seed: of those starts.
        with_optimum: also solve for the optimum over all valid verifiers; ``None`` if not.

    Raises:
        InvalidInputError: a count that is not a whole number of at least 1.
        EnumerationTooLargeError: the pair is too large for the optimum.

    Example:
        >>> from spectheory import instances
        >>> found = best_ranking(instances.two_token(2), 2)
        >>> print(found.best.value, found.greedy.value, found.worst.value, found.optimum, found.exhaustive)
        212/81 212/81 146/81 212/81 True
    """
    num_drafts = check_num_drafts(num_drafts)

    @cache
    def earned(orders: Orders) -> Any:
        return SkewedDraft.from_ranking(pair, num_drafts, _as_ranking(orders)).block_efficiency(pair)

    def ranked(orders: Orders) -> RankedEfficiency:
        return RankedEfficiency(earned(orders), leaf_order(pair, _as_ranking(orders)))

    greedy = ranked(_orders_of(pair, ratio_ranking))
    exhaustive = count_tree_rankings(pair) <= check_count("max_rankings", max_rankings)
    scores: list[Callable[[Orders], Any]] = [earned, lambda orders: -earned(orders)]
    if exhaustive:
        found = [max(product(*map(permutations, _supports(pair))), key=score) for score in scores]
    else:
        found = [_local_search(pair, score, num_restarts, seed) for score in scores]
    best, worst = map(ranked, found)
    optimum = path_selection_optimum(pair, num_drafts).value if with_optimum else None
    return BestRanking(best, worst, greedy, optimum, exhaustive, earned.cache_info().currsize)


# --------------------------------------------------------------------------- orders of tokens


def _as_ranking(orders: Orders) -> Ranking:
    """A ranking that returns the orders of one depth after the other, the way it is asked for them."""
    rest = iter(orders)

    def ranking(target_rows: np.ndarray, draft_rows: np.ndarray) -> np.ndarray:
        keys = np.full(draft_rows.shape, -1, dtype=np.int64)  # what is never drafted ranks lowest
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
    """The drafted tokens of every context in the order of a ranking."""
    keys = [ranking_keys(ranking, *rows) for rows in zip(pair.target[:-1], pair.draft, strict=True)]
    ascending = np.concatenate([np.argsort(level, axis=-1, stable=True) for level in keys]).tolist()
    orders = zip(ascending, _supports(pair), strict=True)
    return tuple(tuple(token for token in row if token in tokens) for row, tokens in orders)


# ------------------------------------------------------------------------------ local search


def _local_search(pair: ModelPair, score: Callable[[Orders], Any], num_restarts: int, seed: int) -> Orders:
    """The best local optimum from the ranking by p/q, its reverse and random rankings."""
    rng = np.random.default_rng(seed)
    greedy = _orders_of(pair, ratio_ranking)
    starts = [greedy, tuple(tokens[::-1] for tokens in greedy)]
    starts += [
        tuple(tuple(rng.permutation(tokens).tolist()) for tokens in greedy) for _ in range(num_restarts)
    ]
    return max((_climb(start, score) for start in starts), key=score)


def _climb(orders: Orders, score: Callable[[Orders], Any]) -> Orders:
    """Take the first better neighbour until there is none."""
    while True:
        value = score(orders)
        better = next((found for found in _neighbours(orders) if score(found) > value), None)
        if better is None:
            return orders
        orders = better


def _neighbours(orders: Orders) -> Iterator[Orders]:
    """Two neighbouring tokens at one context change places."""
    for number, tokens in enumerate(orders):
        for i in range(len(tokens) - 1):
            swapped = (*tokens[:i], tokens[i + 1], tokens[i], *tokens[i + 2 :])
            yield (*orders[:number], swapped, *orders[number + 1 :])

"""The best and the worst tree-based ranking, against plain enumeration."""

from fractions import Fraction
from itertools import permutations, product

import reference
from deep import first_is_quick
from spectheory import instances
from spectheory.optima import path_selection_optimum
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.pair import ModelPair
from tree_rankings import best_ranking, count_tree_rankings


def tree_rankings(pair: ModelPair) -> list[list[tuple[int, ...]]]:
    """Every tree-based ranking as an order of all leaves, V! orders at each context, in plain Python."""

    def below(context: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
        if len(context) == pair.draft_length:
            return [[context]]
        children = [below((*context, token)) for token in range(pair.vocab_size)]
        return [
            [leaf for token in order for leaf in chosen[token]]
            for chosen in product(*children)
            for order in permutations(range(pair.vocab_size))
        ]

    return below(())


@first_is_quick("first", range(0, 201, 67))
def test_exhaustive_search_against_plain_enumeration(first: int) -> None:
    """Best and worst over all Π V! rankings, each evaluated from its leaf law alone: 201 pairs."""
    for seed in range(first, first + 67):
        V, L, K = ((2, 2, 2), (2, 2, 3), (3, 1, 2))[seed % 3]
        pair = instances.random_rational(seed, V, L)
        values = [
            reference.ranking_efficiency(pair, reference.skewed_leaf_probs(pair, order, K))
            for order in tree_rankings(pair)
        ]
        found = best_ranking(pair, K)
        assert found.rankings_tried == count_tree_rankings(pair) <= len(values)
        assert (found.best.value, found.worst.value) == (max(values), min(values)), seed
        assert found.worst.value <= found.greedy.value <= found.best.value
        assert found.best.value <= path_selection_optimum(pair, K).value
        for ranked in (found.best, found.worst, found.greedy):
            draft = SkewedDraft.from_order(pair, K, ranked.leaf_order)
            assert draft.block_efficiency(pair) == ranked.value


def test_the_ratio_ranking_is_not_always_the_best() -> None:
    """Among tree-based rankings p/q is best on the two-token example and not on some random pair."""
    found = best_ranking(instances.two_token(2), 2)
    optimum = path_selection_optimum(instances.two_token(2), 2).value
    assert found.best.value == found.greedy.value == optimum == Fraction(212, 81)
    same = ModelPair.context_free_pair(["1/3", "2/3"], ["1/3", "2/3"], 2)
    found = best_ranking(same, 2)
    assert (found.greedy.value, found.best.value) == (Fraction(203, 81), Fraction(205, 81))
    assert found.best.leaf_order.tolist() == [0, 1, 3, 2]
    assert reference.ranking_efficiency(
        same, reference.skewed_leaf_probs(same, [(0, 0), (0, 1), (1, 1), (1, 0)], 2)
    ) == Fraction(205, 81)
    random_pairs = [instances.random_rational(seed, 3, 2) for seed in range(12)]
    random = [best_ranking(pair, 2) for pair in random_pairs]
    assert any(result.greedy.value < result.best.value for result in random)
    optima = [path_selection_optimum(pair, 2).value for pair in random_pairs]
    assert any(result.best.value < best for result, best in zip(random, optima, strict=True))

"""greedy_multipath with any ranking: lossless, as plain Python has it, and what the ranking is worth."""

from __future__ import annotations

from fractions import Fraction

import pytest

import reference
from law_checks import assert_same_law, budget_masses
from rankings import RANDOM_GROUPS, RANKINGS, plain_order, some_cases
from spectheory import instances
from spectheory.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.algorithms.path_selection.mixed_multipath import MixedMultipath
from spectheory.bounds.antichain_hulls import most_violated_antichain
from spectheory.bounds.rankings import leaf_order
from spectheory.bounds.skewed_draft import SkewedDraft
from spectheory.law import output_law

# ----------------------------------------------------------------- greedy, with any ranking


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("group", [*RANDOM_GROUPS, "partial_overlap"])
def test_greedy_is_lossless_with_every_tree_ranking(group: str, name: str) -> None:
    """Valid exactly; the law is that of plain Python with one global order; Eq. 16 is its efficiency."""
    ranking = RANKINGS[name]
    for case in some_cases(group):
        pair, K = case.pair, case.num_drafts
        law = output_law(GreedyMultipath(ranking), pair, K)
        assert law.total_variation == 0, case
        assert most_violated_antichain(pair, budget_masses(law), K)[0] == 0, case
        skewed = reference.skewed_leaf_probs(pair, plain_order(pair, ranking), K)
        assert law.block_efficiency == reference.ranking_efficiency(pair, skewed), case
        assert law.block_efficiency == SkewedDraft.from_ranking(pair, K, ranking).block_efficiency(pair)
        bound = GreedyMultipath.with_order(pair, leaf_order(pair, ranking))
        assert_same_law(output_law(bound, pair, K), law)
        if name == "ratio":
            assert reference.law_of(law) == reference.greedy_multipath_law(pair, K)


def test_the_ranking_matters() -> None:
    """The rankings earn different amounts; with one draft none of them matters."""
    pair = instances.two_token(2)
    values = {
        name: output_law(GreedyMultipath(rank), pair, 2).block_efficiency for name, rank in RANKINGS.items()
    }
    assert values["ratio"] == Fraction(212, 81)  # theory.md §5
    assert values["reversed ratio"] < values["ratio"]
    for ranking in RANKINGS.values():
        assert_same_law(output_law(GreedyMultipath(ranking), pair, 1), output_law("block", pair, 1))


# ----------------------------------------------------------------------------- the mixture


def test_greedy_multipath_loses_to_one_path() -> None:
    """Identical models, V = 2, L = 1, K = 2: r = (1/4, 3/4), 7/4 < 2 (theory.md Statement 5.7)."""
    pair = instances.uniform_equal(1)
    skewed = SkewedDraft.from_ranking(pair, 2)
    assert skewed.leaf_law.tolist() == [Fraction(1, 4), Fraction(3, 4)]
    assert output_law("greedy_multipath", pair, 2).block_efficiency == Fraction(7, 4)
    assert output_law("block", pair, 2).block_efficiency == 2
    assert output_law(MixedMultipath(), pair, 2).block_efficiency == 2

"""greedy_multipath with any ranking: lossless, as plain Python has it, and what the ranking is worth."""

import reference
from deep import first_is_quick
from explicit_ranking import ExplicitRanking
from law_checks import assert_same_law, budget_masses, trusted_law
from rankings import RANDOM_GROUPS, RANKINGS, plain_order, some_cases
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.bounds.rankings import leaf_order
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath


@first_is_quick("name", RANKINGS, quick=11)
@first_is_quick("group", [*RANDOM_GROUPS, "partial_overlap"])
def test_greedy_is_lossless_with_every_tree_ranking(group: str, name: str) -> None:
    """Valid exactly, as with one global order of the leaves; Eq. 16 is its efficiency in plain Python."""
    ranking = RANKINGS[name]
    for case in some_cases(group):
        pair, K = case.pair, case.num_drafts
        law = trusted_law(GreedyMultipath(ranking), pair, K)
        assert law.total_variation == 0, case
        assert most_violated_antichain(pair, budget_masses(law), K)[0] == 0, case
        skewed = reference.skewed_leaf_probs(pair, plain_order(pair, ranking), K)
        assert law.block_efficiency == reference.ranking_efficiency(pair, skewed), case
        assert law.block_efficiency == SkewedDraft.from_ranking(pair, K, ranking).block_efficiency(pair)
        bound = ExplicitRanking(pair, leaf_order(pair, ranking))
        assert_same_law(trusted_law(bound, pair, K), law)

"""A skewed draft as sums over leaves (greedy2026 Eq. 19) and as rows at nodes (Eqs. 22-23)."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import reference
from rankings import RANDOM_GROUPS, RANKINGS, plain_order, some_cases
from spectheory import instances
from spectheory.optima.bounds.rankings import check_leaf_order, leaf_order
from spectheory.optima.bounds.skewed_draft import SkewedDraft


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("group", [*RANDOM_GROUPS, "partial_overlap", "disjoint_supports", "point_masses"])
def test_leaf_form_is_tree_form(group: str, name: str) -> None:
    """Eq. 19 = Eqs. 22-23 at every node, ties and zeros included; both are what plain Python sums up."""
    for case in some_cases(group):
        pair, K = case.pair, case.num_drafts
        tree = SkewedDraft.from_ranking(pair, K, RANKINGS[name])
        leaf = SkewedDraft.from_order(pair, K, leaf_order(pair, RANKINGS[name]))
        order = plain_order(pair, RANKINGS[name])
        expected = reference.skewed_leaf_probs(pair, order, K)
        assert [expected[path] for path in reference.leaves(pair)] == tree.leaf_law.tolist(), case
        assert len(tree.node_laws) == len(leaf.node_laws) == pair.draft_length + 1
        for one, other in zip(tree.node_laws, leaf.node_laws, strict=True):
            assert (one == other).all(), case
            assert all(isinstance(value, Fraction) for value in one)
        assert check_leaf_order(pair, order).tolist() == leaf_order(pair, RANKINGS[name]).tolist()
        for depth, rows in enumerate(tree.rows):
            sums = rows.sum(axis=1)
            assert (sums == (tree.node_laws[depth] > 0)).all()
            reached = tree.node_laws[depth][:, None] * rows
            assert (reached.ravel() == tree.node_laws[depth + 1]).all()


def test_leaf_form_partner_the_printed_sums_are_no_law() -> None:
    """With q(P_i) inside the sums, as printed in Eq. 19, r does not sum to 1."""
    probs = instances.two_token(1).draft_path_probs(1)
    printed = [(i * q) ** 2 - ((i - 1) * q) ** 2 for i, q in enumerate(probs, start=1)]
    assert sum(printed) != 1
    assert sum(SkewedDraft.from_order(instances.two_token(1), 2, [0, 1]).leaf_law) == 1


def test_law_of_the_selected_path_by_enumerating_drafts() -> None:
    """r is how often the highest-ranked of K drafts is each leaf, tuple by tuple."""
    for seed in range(6):
        pair = instances.random_rational(seed, 2, 2)
        rank = np.argsort(np.random.default_rng(seed).permutation(4))
        probs = pair.draft_path_probs(2)
        counted = [Fraction(0)] * 4
        for drafts in product(range(4), repeat=3):
            counted[max(drafts, key=lambda leaf: rank[leaf])] += np.prod(probs[list(drafts)])
        assert SkewedDraft.from_order(pair, 3, np.argsort(rank)).leaf_law.tolist() == counted

"""Which contexts are worth a variable: min{p(a), K q(a)} decides, and which of the two limits the others."""

import numpy as np
import pytest

from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.interval.live_tree import LiveTree, _numbered
from spectheory.pairs.pair import ModelPair


@pytest.mark.parametrize(("num_drafts", "size"), [(1, 1), (2, 2)])
def test_a_context_lives_by_what_all_drafts_reach(num_drafts: int, size: int) -> None:
    """q(B) = 0.1 is below 0.15, and reached twice as often by two drafts."""
    tree = ContextTree.of(ModelPair.context_free_pair([0.5, 0.5], [0.9, 0.1], 1))
    assert LiveTree.of(tree, num_drafts, 0.15).size == size


@pytest.mark.parametrize(("num_drafts", "slack"), [(1, 0), (2, 1)])
def test_a_dead_context_is_limited_by_the_smaller_side(num_drafts: int, slack: float) -> None:
    """p(B) = 0.12 is above q(B) = 0.08 and below 2 q(B): the slack takes all where the target limits."""
    tree = ContextTree.of(ModelPair.context_free_pair([0.88, 0.12], [0.92, 0.08], 1))
    live = LiveTree.of(tree, num_drafts, 0.2)
    assert live.size == 1
    assert live.fixed_slacks[1].tolist() == [0, slack]


def test_leaves_in_no_bin_leave_their_mass_to_the_others() -> None:
    """B hangs from the root with q = 0.05, too little for a bin: A has all of the law."""
    tree = ContextTree.of(ModelPair.context_free_pair([0.5, 0.5], [0.95, 0.05], 1))
    live = LiveTree.of(tree, 1, 0.15)
    assert live.leaf_law(np.ones(1)).tolist() == [1, 0]


def test_nodes_are_numbered_through_all_depths() -> None:
    live = [np.array([True]), np.array([False, True]), np.array([True, False, True, True])]
    numbers = [level.tolist() for level in _numbered(live)]
    assert numbers == [[0], [-1, 1], [2, -1, 3, 4]]

"""Passes over the tree, and how far q(a) and the leaves below a may differ."""

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.bounds.context_tree import (
    ContextTree,
    subtree_sums,
)
from spectheory.optima.bounds.tolerances import rounding_allowance
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.pairs import levels
from spectheory.pairs.pair import ModelPair


def test_mismatch_covers_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """q(a) and the leaves below it differ by at most 1 + mismatch, whichever is larger; exactly, and for
    rows below 1 the factor is attained, where the product of 1 + deviation would not be enough."""
    monkeypatch.setattr(levels, "SUM_TOLERANCE", 0.5)
    for sums in ((0.9, 0.8), (1.1, 1.2), (0.9, 1.2)):
        draft = tuple(np.full((2**depth, 2), total / 2) for depth, total in enumerate(sums))
        target = tuple(np.full((2**depth, 2), 0.5) for depth in range(3))
        pair = ModelPair(target, draft, ("A", "B"))
        tree = ContextTree.of(pair)
        below = subtree_sums(tree.draft_probs[-1], 2, 2)
        for masses, leaves in zip(tree.draft_probs, below, strict=True):
            most = np.maximum(masses / leaves, leaves / masses).max()
            assert most <= (1 + tree.mismatch) * (1 + 1e-15)
        if max(sums) < 1:
            assert tree.draft_probs[0][0] / below[0][0] == pytest.approx(1 + tree.mismatch, rel=1e-12)
            assert 1 + tree.mismatch > 1.1 * 1.2


def test_draft_rows_without_mass_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tolerance of 1 lets a row of zeros into a pair; no factor makes up for it."""
    monkeypatch.setattr(levels, "SUM_TOLERANCE", 1.0)
    target = np.full((1, 2), 0.5), np.full((2, 2), 0.5)
    empty = ModelPair(target, (np.zeros((1, 2)),), ("A", "B"))
    with pytest.raises(InvalidInputError, match=r"depth 0 has a sum that differs from 1 by 1; .* normalise"):
        multi_path_interval(empty, 2)


def test_an_exact_tree_needs_no_allowance() -> None:
    """Its rows sum to 1 and its sums are exact; the float64 tree of the same pair has an allowance."""
    tree = ContextTree.of(instances.random_rational(3, 3, 2))
    assert (tree.rounding, tree.mismatch) == (0, 0)
    floats = ContextTree.of(tree.pair.to_float())
    assert floats.rounding == rounding_allowance(13)
    assert 0 <= floats.mismatch < 1e-14

"""Passes over the tree, and how far q(a) and the leaves below a may differ."""

import re
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.bounds.context_tree import (
    ContextTree,
    accepted_masses,
    check_levels,
    prefix_sums,
    subtree_sums,
)
from spectheory.optima.bounds.tolerances import rounding_allowance
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.pairs.contexts import context_number
from spectheory.pairs.pair import ModelPair


def test_mismatch_covers_both_directions() -> None:
    """q(a) and the leaves below it differ by at most 1 + mismatch, whichever is larger; exactly, and for
    rows below 1 the factor is attained, where the product of 1 + deviation would not be enough."""
    for sums in ((0.9, 0.8), (1.1, 1.2), (0.9, 1.2)):
        draft = tuple(np.full((2**depth, 2), total / 2) for depth, total in enumerate(sums))
        target = tuple(np.full((2**depth, 2), 0.5) for depth in range(3))
        pair = ModelPair(target, draft, ("A", "B"), row_sum_tolerance=0.5)
        tree = ContextTree.of(pair)
        below = subtree_sums(tree.draft_probs[-1], 2, 2)
        for masses, leaves in zip(tree.draft_probs, below, strict=True):
            most = np.maximum(masses / leaves, leaves / masses).max()
            assert most <= (1 + tree.mismatch) * (1 + 1e-15)
        if max(sums) < 1:
            assert tree.draft_probs[0][0] / below[0][0] == pytest.approx(1 + tree.mismatch, rel=1e-12)
            assert 1 + tree.mismatch > 1.1 * 1.2


def test_draft_rows_without_mass_are_refused() -> None:
    """A tolerance of 1 lets a row of zeros into a pair; no factor makes up for it."""
    target = np.full((1, 2), 0.5), np.full((2, 2), 0.5)
    empty = ModelPair(target, (np.zeros((1, 2)),), ("A", "B"), row_sum_tolerance=1.0)
    with pytest.raises(InvalidInputError, match=r"depth 0 has a sum that differs from 1 by 1; .* normalise"):
        multi_path_interval(empty, 2)


@pytest.mark.parametrize("exact", [True, False])
def test_passes_against_sums_context_by_context(exact: bool) -> None:
    """Sums over subtrees and along paths, and x(a) with every minimum written out, on 20 random pairs."""
    for seed in range(20):
        V, L = ((2, 3), (3, 2), (1, 2), (4, 1))[seed % 4]
        pair = instances.random_rational([43, seed], V, L)
        pair = pair if exact else pair.to_float()
        tree = ContextTree.of(pair)
        contexts = [[pair.context(depth, i) for i in range(V**depth)] for depth in range(L + 1)]
        node_laws = subtree_sums(tree.draft_probs[-1], V, L)
        masses = accepted_masses(node_laws, tree.target_rows)
        sums = prefix_sums(tree.target_probs, V)
        for depth, level in enumerate(contexts):
            for i, a in enumerate(level):
                below = [
                    q for q, leaf in zip(tree.draft_probs[-1], contexts[-1], strict=True) if leaf[:depth] == a
                ]
                law = {k: node_laws[k][context_number(a[:k], V)] for k in range(depth + 1)}
                minimum = min(conditional_prob(tree, a, k) * law[k] for k in range(depth + 1))
                path_sum = sum(tree.target_probs[k][context_number(a[:k], V)] for k in range(depth + 1))
                for found, expected in (
                    (node_laws[depth][i], sum(below)),
                    (masses[depth][i], minimum),
                    (sums[depth][i], path_sum),
                ):
                    assert found == (expected if exact else pytest.approx(expected, rel=1e-14))


def conditional_prob(tree: ContextTree, context: tuple[int, ...], start: int) -> Any:
    """p(a_{k+1:} | a_{1:k}) of a context from depth k on."""
    rows = tree.target_rows
    steps = range(start, len(context))
    return prod(rows[i][context_number(context[:i], tree.vocab_size), context[i]] for i in steps)


def test_an_exact_tree_needs_no_allowance() -> None:
    """Its rows sum to 1 and its sums are exact; the float64 tree of the same pair has an allowance."""
    tree = ContextTree.of(instances.random_rational(3, 3, 2))
    assert (tree.rounding, tree.mismatch) == (0, 0)
    floats = ContextTree.of(tree.pair.to_float())
    assert floats.rounding == rounding_allowance(13)
    assert 0 <= floats.mismatch < 1e-14


def test_mismatch_is_of_the_worst_row() -> None:
    """Not of the first one: here only the last row of depth 1 is off."""
    draft = (np.full((1, 2), 0.5), np.array([[0.5, 0.5], [0.5, 0.4]]))
    target = tuple(np.full((2**depth, 2), 0.5) for depth in range(3))
    pair = ModelPair(target, draft, ("A", "B"), row_sum_tolerance=0.2)
    assert ContextTree.of(pair).mismatch == pytest.approx(1 / 0.9 - 1)


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ([np.ones(1)], "has 1 depths; expected 2"),
        ([np.ones(1)] * 3, "has 3 depths; expected 2"),
        ([np.ones(1), np.array([1.0, np.inf])], "expected a finite number of at least 0"),
        ([np.ones(1), np.array([1.0, np.nan])], "expected a finite number of at least 0"),
        ([np.ones(1), np.array([1.0, -1.0])], "expected a finite number of at least 0"),
        ([np.ones(1), np.array([Fraction(1), Fraction(1)])], "use one kind"),
        ([np.ones(1), np.ones(3)], "has shape (3,); expected (2,)"),
    ],
)
def test_levels_that_do_not_fit_the_tree(levels: list[Any], says: str) -> None:
    pair = ModelPair.context_free_pair([0.5, 0.5], [0.5, 0.5], draft_length=1)
    assert check_levels(pair, "y", [np.ones(1), np.ones(2)], nonnegative=True)[1].sum() == 2
    with pytest.raises(InvalidInputError, match=re.escape(says)):
        check_levels(pair, "y", levels, nonnegative=True)

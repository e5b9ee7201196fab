"""Which laws are skewed drafts, what a skewed draft earns, and Lemma 4.7."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import reference
from leaf_laws import f, ranking_vertex
from program_support import ALL_PAIRS
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import multi_path_optimum, single_path_optimum
from spectheory.optima.bounds.skewed_draft import SkewedDraft, is_skewed_draft
from spectheory.pairs.pair import ModelPair


def test_negative_entries_are_no_law() -> None:
    """An entry below 0 that keeps the sum at 1 is found as a set with more than all the mass."""
    pair = instances.uniform_equal(1)
    found = is_skewed_draft(pair, np.array([Fraction(-1, 10), Fraction(11, 10)]), 3)
    assert (found.is_member, found.witness, found.excess) == (False, (1,), Fraction(11, 10) - Fraction(7, 8))


def test_eq_93_goes_from_the_top_down() -> None:
    """Eq. 93 and Eq. 19 agree when one order is the reverse of the other, not when they are the same.

    Draft (2/3, 1/3), K = 2: Eq. 93 in the order P_1, P_2 gives (8/9, 1/9), Eq. 19 gives (4/9, 5/9).
    """
    pair = instances.two_token(1)
    assert ranking_vertex(pair, 2, [0, 1]).tolist() == [Fraction(4, 9), Fraction(5, 9)]
    assert ranking_vertex(pair, 2, [1, 0]).tolist() == [Fraction(8, 9), Fraction(1, 9)]
    for seed in range(8):
        pair = instances.random_rational(seed, 2, 2)
        probs = pair.draft_path_probs(2)
        for order in permutations(range(4)):
            masses = probs[list(order)].cumsum()
            eq_93 = [f(mass, 3) - f(mass - probs[leaf], 3) for leaf, mass in zip(order, masses, strict=True)]
            assert ranking_vertex(pair, 3, order[::-1])[list(order)].tolist() == eq_93


def lemma_4_7_bound(pair: ModelPair, draft: SkewedDraft) -> Fraction:
    """(L + 1) min_a r(a)/p(a) over the contexts with p(a) > 0 (Eq. 18)."""
    levels = enumerate(draft.node_laws)
    ratios = (r / p for i, law in levels for r, p in zip(law, pair.target_path_probs(i), strict=True) if p)
    return (pair.draft_length + 1) * min(ratios)


def test_lemma_4_7_bounds_the_objective_of_rankings() -> None:
    """(L+1) min r/p ≤ Eq. 16 ≤ the multi-path optimum, for random rankings; with the largest r/p it fails."""
    rng = np.random.default_rng(23)
    positive = wrong = 0
    for number, pair in enumerate(ALL_PAIRS[::3]):
        num_drafts = 1 + number % 3
        best = multi_path_optimum(pair, num_drafts).value
        leaves = pair.vocab_size**pair.draft_length
        for _ in range(3):
            skewed = ranking_vertex(pair, num_drafts, rng.permutation(leaves))
            draft = SkewedDraft.from_leaf_law(pair, skewed)
            objective, bound = draft.block_efficiency(pair), lemma_4_7_bound(pair, draft)
            named = dict(zip(reference.leaves(pair), skewed, strict=True))
            assert objective == reference.ranking_efficiency(pair, named)
            assert bound <= objective <= best
            positive += bound > 0
            present = pair.target_path_probs(pair.draft_length) > 0
            largest = max(skewed[present] / pair.target_path_probs(pair.draft_length)[present])
            wrong += (pair.draft_length + 1) * largest > objective
            floats = SkewedDraft.from_leaf_law(pair.to_float(), skewed.astype(float))
            assert floats.block_efficiency(pair.to_float()) == pytest.approx(float(objective))
    assert positive > 13
    assert wrong > 13


def test_lemma_4_7_is_attained_by_the_target_itself() -> None:
    """r = p gives L + 1 on both sides; r ≠ p gives less."""
    for pair in ALL_PAIRS:
        target = pair.target_path_probs(pair.draft_length)
        skewed = SkewedDraft.from_leaf_law(pair, target)
        both = skewed.block_efficiency(pair), lemma_4_7_bound(pair, skewed)
        assert both == (pair.draft_length + 1, pair.draft_length + 1)
        draft = pair.draft_path_probs(pair.draft_length)
        if (draft != target).any():
            skewed = SkewedDraft.from_leaf_law(pair, draft)
            assert lemma_4_7_bound(pair, skewed) < pair.draft_length + 1
            assert skewed.block_efficiency(pair) == single_path_optimum(pair).value


def test_skewed_drafts_that_are_none_are_refused() -> None:
    pair = instances.two_token(1)
    for law, text in (
        (["1/2", "1/3"], "sum to 1"),
        (["3/2", "-1/2"], "at least 0"),
        (["1"], r"expected \(2,\), one per context"),
        ([0.5, 0.5], "use one kind"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            SkewedDraft.from_leaf_law(pair, law)
        if "at least" not in text:
            with pytest.raises(InvalidInputError, match=text):
                is_skewed_draft(pair, law, 2)

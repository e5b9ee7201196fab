"""Scored selection: lossless for every split, and block, rankings and their mixtures are instances."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deep import first_is_quick
from law_checks import assert_same_law, budget_masses, trusted_law
from rankings import some_cases
from score_rules import OneSidedScores, RandomScores, RankedScores, fraction_array
from spectheory.exact.law import output_law
from spectheory.foundation.exact_numbers import to_fraction
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.bounds.skewed_draft import is_skewed_draft
from spectheory.verification.algorithms.path_selection.mixed_multipath import MixedMultipath
from spectheory.verification.algorithms.path_selection.score_couplings import independent
from spectheory.verification.algorithms.path_selection.scored import winning_chances
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath

SOME = (
    "partial_overlap",
    "equal_models",
    "point_masses",
    "random-V2-L3-K3",
    "random-V3-L2-K2",
    "random-V4-L1-K3",
)


@pytest.mark.parametrize("group", SOME)
def test_any_split_is_lossless(group: str) -> None:
    """theory.md Statement 5.18: exactly, and within the limits of K drafts."""
    for case in some_cases(group, 4):
        law = trusted_law(RandomScores(), case.pair, case.num_drafts)
        assert law.total_variation == 0, case
        assert most_violated_antichain(case.pair, budget_masses(law), case.num_drafts)[0] == 0, case


def test_partner_what_is_no_split_is_not_lossless() -> None:
    """Scores that are not uniform over all paths select with another law than the one verified against."""
    wrong = [
        trusted_law(OneSidedScores(), case.pair, case.num_drafts).total_variation > 0
        for case in some_cases("random-V3-L2-K2", 8)
    ]
    assert sum(wrong) >= 4


@pytest.mark.parametrize("share", [Fraction(0), Fraction(2, 5), Fraction(1)])
@pytest.mark.parametrize("group", SOME)
def test_rankings_and_their_mixtures_are_scores(group: str, share: Fraction) -> None:
    """theory.md Statement 5.19: λ = 0 is greedy_multipath, λ = 1 block, all with their exact laws."""
    for case in some_cases(group, 2):
        law = trusted_law(RankedScores(case.pair, share), case.pair, case.num_drafts)
        assert_same_law(law, output_law(MixedMultipath(share), case.pair, case.num_drafts))


@pytest.mark.parametrize("group", SOME)
def test_scores_that_learn_nothing_are_block(group: str) -> None:
    """theory.md Statement 5.19: μ_a uniform everywhere."""
    for case in some_cases(group, 4):
        law = output_law(ScoredMultipath(coupling=independent), case.pair, case.num_drafts)
        assert_same_law(law, output_law("block", case.pair))


@first_is_quick("group", SOME, quick=2)
def test_skewed_draft_is_the_law_of_the_selected_path(group: str) -> None:
    """Feasible for K drafts, and worth what the output law says; both exactly."""
    for case in some_cases(group, 4):
        pair, K = case.pair, case.num_drafts
        for verifier in (ScoredMultipath(), RandomScores()):
            skewed = verifier.skewed_draft(pair, K)
            assert is_skewed_draft(pair, skewed.leaf_law, K).is_member, case
            assert skewed.block_efficiency(pair) == trusted_law(verifier, pair, K).block_efficiency, case
        in_float = ScoredMultipath().skewed_draft(pair.to_float(), K).block_efficiency(pair.to_float())
        exact = ScoredMultipath().skewed_draft(pair, K).block_efficiency(pair)
        assert in_float == pytest.approx(float(exact), abs=1e-12)


def winners(masses: list[list[Fraction]]) -> list[Fraction]:
    """Listed: all choices of a cell by each score; scores in one cell win alike."""
    num_drafts, cells = len(masses), len(masses[0])
    chances = [Fraction(0)] * num_drafts
    for chosen in product(range(cells), repeat=num_drafts):
        prob = Fraction(1)
        for score, cell in zip(masses, chosen, strict=True):
            prob *= score[cell]
        best = [k for k, cell in enumerate(chosen) if cell == max(chosen)]
        for k in best:
            chances[k] += prob / len(best)
    return chances


@pytest.mark.parametrize("num_drafts", [1, 2, 3, 4])
def test_winning_chances(num_drafts: int) -> None:
    """Against a list of all outcomes; in floating point they are never negative and sum to 1."""
    rng = np.random.default_rng(num_drafts)
    for _ in range(5):
        weights = rng.integers(0, 4, size=(num_drafts, 4)) + np.eye(4, dtype=int)[:1]
        masses = [[Fraction(int(w), int(row.sum())) for w in row] for row in weights]
        found = winning_chances(fraction_array(masses)[None])[0]
        assert [to_fraction(chance) for chance in found] == winners(masses)
        in_float = winning_chances(np.array(masses, dtype=float))
        np.testing.assert_allclose(
            in_float, [float(to_fraction(chance)) for chance in found], rtol=0, atol=1e-15
        )
        assert (in_float >= 0).all()

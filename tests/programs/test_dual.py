"""The dual program: strong duality and complementary slackness with the multi-path program."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from program_support import ALL_PAIRS, DUAL_PAIRS, assert_solved, random_scores
from reference import number_of
from spectheory import instances
from spectheory.bounds.dual_scores import dual_objective, level_set_weights, upper_bound
from spectheory.pair import ModelPair
from spectheory.programs import Solution, multi_path_optimum
from spectheory.programs.dual import dual_optimum, dual_program, scores_of


@pytest.mark.parametrize("first", range(8))
def test_dual_program_is_tight(first: int) -> None:
    """Strong duality with Theorem 4.3: equal optima, and the scores alone give the value again."""
    for number in range(first, len(DUAL_PAIRS), 8):
        assert_tight(DUAL_PAIRS[number], 1 + number % 3)


def assert_tight(pair: ModelPair, num_drafts: int) -> None:
    """On one pair."""
    exact, primal = dual_optimum(pair, num_drafts), multi_path_optimum(pair, num_drafts)
    assert exact.value == primal.value
    scores = scores_of(pair, exact)
    assert upper_bound(pair, num_drafts, scores) == primal.value
    floats = pair.to_float()
    programs = dual_program(pair, num_drafts), dual_program(floats, num_drafts)
    floating = dual_optimum(floats, num_drafts)
    assert_solved(programs[0], exact, programs[1], floating)
    bound = upper_bound(floats, num_drafts, scores_of(floats, floating))
    assert bound == pytest.approx(float(primal.value), abs=1e-8)


def slackness(
    pair: ModelPair, num_drafts: int, budgets: Solution, scores: list[np.ndarray]
) -> list[Fraction]:
    """The products that vanish at optimal points: z(a) times the fall of the mass at a, and
    λ(T) times the slack of (12) at T."""
    depths = range(pair.draft_length + 1)
    mass = {
        (a := pair.context(depth, index)): budgets.primal[a] * prob
        for depth in depths
        for index, prob in enumerate(pair.target_path_probs(depth))
    }
    products, slack = [], None
    for depth in reversed(depths):
        most = np.array([Fraction(1)] * pair.vocab_size**depth, dtype=object)
        if slack is not None:
            most = most + (pair.target[depth] * slack.reshape(-1, pair.vocab_size)).sum(axis=1)
        slack = most - scores[depth]
        for index, z in enumerate(slack if depth else []):
            a = pair.context(depth, index)
            conditional = pair.target[depth - 1].ravel()[index]
            products.append(z * (conditional * mass[a[:-1]] - mass[a]))
    for antichain, weight in level_set_weights(pair, scores).items():
        drafted = sum(pair.draft_path_probs(len(a))[number_of(pair, a)] for a in antichain)
        limit = 1 - (1 - drafted) ** num_drafts
        products.append(weight * (limit - sum(mass[a] for a in antichain)))
    return products


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_complementary_slackness_with_the_primal(num_drafts: int) -> None:
    """All products are ≥ 0, they add up to bound minus value, and vanish exactly at the optimum."""
    rng = np.random.default_rng(num_drafts)
    strict = 0
    for pair in ALL_PAIRS[:40]:
        budgets = multi_path_optimum(pair, num_drafts)
        best = scores_of(pair, dual_optimum(pair, num_drafts))
        assert set(slackness(pair, num_drafts, budgets, best)) <= {0}
        other = random_scores(rng, pair)
        products = slackness(pair, num_drafts, budgets, other)
        bound = dual_objective(pair, num_drafts, other)
        assert min(products) >= 0
        assert sum(products) == bound - budgets.value
        strict += bound > budgets.value
    assert strict > 20


def test_a_moved_score_is_no_longer_optimal() -> None:
    """Scores 1 everywhere are feasible and bound by L + 1, strictly above the optimum 212/81."""
    pair = instances.two_token(2)
    ones = [np.array([Fraction(1)] * 2**depth, dtype=object) for depth in range(3)]
    assert upper_bound(pair, 2, ones) == 3
    assert any(slackness(pair, 2, multi_path_optimum(pair, 2), ones))

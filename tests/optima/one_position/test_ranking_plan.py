"""Plans made of rankings: optimal, lossless, and as few rankings as tokens (theory.md Statement 3.10)."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from spectheory.optima import optimal_acceptance, optimal_rankings, otm_optimum
from spectheory.optima.one_position.ranking_plan import OptimalRankings
from spectheory.pairs.instances import random_rational

ZERO = Fraction(0)


def rows(number: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows with zeros; of every third the draft has the target's masses in another order: ties."""
    pair = random_rational([441, number], size, 1, zero_probability=number % 2 / 4)
    target = pair.target[0][0]
    draft = np.roll(target, 1) if number % 3 == 0 else pair.draft[0][0]
    return target, np.full(size, Fraction(1, size)) if number % 7 == 0 else draft


@pytest.mark.parametrize("num_drafts", range(1, 17))
def test_the_acceptance_is_the_min_cut(num_drafts: int) -> None:
    """320 pairs, K = 1..16: Σ min(p, r) is α_K exactly, with at most V rankings whose mixture is r."""
    for number in range(20):
        size = 2 + number % 5
        target, draft = rows(100 * num_drafts + number, size)
        plan = optimal_rankings(target, draft, num_drafts)
        assert plan.acceptance == optimal_acceptance(target, draft, num_drafts).value
        weights, orders = plan.rankings
        assert len(weights) <= size
        assert sum(weights, ZERO) == 1
        mixed = np.full(size, ZERO)
        for weight, order in zip(weights, orders, strict=True):
            above = np.concatenate([[ZERO], draft[order].cumsum()])
            mixed[order] += weight * (above[1:] ** num_drafts - above[:-1] ** num_drafts)
        assert (mixed == plan.skewed_row).all()


def coupling(plan: OptimalRankings, draft: np.ndarray, num_drafts: int) -> tuple[np.ndarray, Fraction]:
    """(the law of the output, the probability that it was drafted) over all tuples of drafts."""
    law, accepted = np.full(len(draft), ZERO), ZERO
    for drafts in product(np.flatnonzero(draft).tolist(), repeat=num_drafts):
        given = plan.law_given(drafts)
        assert (given >= 0).all()
        prob = prod((draft[token] for token in drafts), start=Fraction(1))
        law = law + prob * given
        accepted += prob * sum(given[list(set(drafts))], ZERO)
    return law, accepted


@pytest.mark.parametrize("number", range(12))
def test_the_plan_is_lossless_and_optimal(number: int) -> None:
    """Enumerated: the output follows the target, and is drafted as often as the linear program allows."""
    size, num_drafts = 2 + number % 3, 1 + number % 3
    target, draft = rows(number, size)
    plan = optimal_rankings(target, draft, num_drafts)
    law, accepted = coupling(plan, draft, num_drafts)
    assert (law == target).all()
    assert accepted == 1 - otm_optimum(target, draft, num_drafts).value


def test_partner_one_ranking_is_not_optimal() -> None:
    """The ranking by p/q alone: not lossless against r, and against its own law it accepts less."""
    half = np.array([Fraction(1, 2)] * 2)
    plan = optimal_rankings(half, half, 3)
    assert plan.acceptance == 1
    assert len(plan.rankings.weights) == 2
    one = plan._replace(cut_times=plan.cut_times * 0)
    assert len(one.rankings.weights) == 1
    assert coupling(one, half, 3)[0].tolist() != half.tolist()
    own = one._replace(skewed_row=np.array([Fraction(7, 8), Fraction(1, 8)]))
    law, accepted = coupling(own, half, 3)
    assert law.tolist() == half.tolist()
    assert own.acceptance == Fraction(5, 8)
    assert accepted < 1

"""Bets against a law: rarely won against a right sampler, whenever one stops, and won against a wrong one."""

import math

import numpy as np
import pytest

from spectheory.auditing.drawing.bets import Bets
from spectheory.auditing.drawing.draw import Drawn, draw_and_judge
from spectheory.auditing.drawing.power import POWER, seen_with

P = np.array([0.1, 0.2, 0.3, 0.4])
"""Of two tokens: [0, 0], [0, 1], [1, 0], [1, 1]."""


def judged(law: dict[tuple[int, ...], float], seed: int, most: int, risk: float) -> Drawn:
    rng = np.random.default_rng(seed)
    answers = list(law)
    drawn = iter(rng.choice(len(answers), most, p=list(law.values())))
    return draw_and_judge(lambda: answers[next(drawn)], P, 2, 2, most=most, risk=risk)


RIGHT = {(0,): 0.15, (0, 0): 0.05, (0, 1): 0.1, (1, 0): 0.3, (1, 1): 0.4}
"""Its completion has the law P: half of the answers that begin with 0 end there."""


def moved(distance: float) -> dict[tuple[int, ...], float]:
    return {**RIGHT, (1, 0): RIGHT[1, 0] + distance, (1, 1): RIGHT[1, 1] - distance}


def test_false_alarms_are_as_rare_as_stated_with_optional_stopping() -> None:
    """In 300 runs at a risk of 0.1 more than 50 false alarms have a probability below 10^-3."""
    found = [judged(RIGHT, seed, 100, 0.1).rejected for seed in range(300)]
    assert sum(found) <= 50


def test_a_difference_of_the_stated_size_is_found() -> None:
    size = seen_with(P, 300, 0.05)
    found = [judged(moved(size), seed, 300, 0.1).rejected for seed in range(100)]
    assert sum(found) >= 100 * POWER - 4
    assert not judged(RIGHT, 1, 300, 1e-6).rejected


@pytest.mark.parametrize("answer", [(), (1, 1)])
def test_an_answer_that_is_impossible_ends_the_test(answer: tuple[int, ...]) -> None:
    """The partner is possible."""
    wanted = np.array([0.25, 0.25, 0.5, 0.0])
    found = draw_and_judge(lambda: answer, wanted, 2, 2, most=100, risk=1e-6)
    assert (found.rejected, found.draws, found.undefined) == (True, 1, float(not answer))
    assert draw_and_judge(lambda: (1, 0), wanted, 2, 2, most=1, risk=1e-6).rejected is False


def test_the_stake_is_a_martingale() -> None:
    """Its mean after three answers is 1, over all answers with their probabilities under P."""
    mean = 0.0
    for first, p in RIGHT.items():
        for second, q in RIGHT.items():
            for third, r in RIGHT.items():
                bets = Bets(P, 2, 2)
                for answer in (first, second, third):
                    bets.see(answer)
                mean += p * q * r * math.exp(bets.log_stake)
    assert mean == pytest.approx(1)


def test_completions_are_summed() -> None:
    bets = Bets(P, 2, 2)
    bets.see((0,))
    bets.see((1, 1))
    assert bets.law == pytest.approx([1 / 6, 1 / 3, 0, 1 / 2])
    assert bets.distance == pytest.approx(0.3)

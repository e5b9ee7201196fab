"""Laws that are learned by probing are exact, wrong regions are found, and the bound holds."""

# ruff: noqa: NPY002

import math
import random
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.auditing.handing.handing import handing
from spectheory.auditing.handing.numbers import NotHandedError
from spectheory.auditing.probing.claim import (
    Probed,
    points_needed,
    probe,
    risk_of_stage,
    wrong_at_most,
)
from spectheory.auditing.probing.learning import ASKED_TWICE, BudgetSpentError

WEIGHTS = [0.125, 0.625, 0.25]
MADE = np.random.default_rng(0)


def probed(
    function: Callable[[int], Any],
    within: float = 0.02,
    budget: int = 5_000,
    seed: int = 0,
    risk: float = 1e-6,
) -> Probed[Any]:
    with handing():
        return probe([(1.0, function)], within, risk, budget, seed)


def race(numbers: Any) -> int:
    return int(np.argmin(numbers / WEIGHTS))


def coin_then_token(_: int) -> tuple[int, ...]:
    if torch.rand(1) < 0.25:
        return (3,)
    return 4, int(np.random.choice(3, p=WEIGHTS))


def order_of_a_race(_: int) -> tuple[int, ...]:
    return tuple(
        torch.topk(torch.tensor(WEIGHTS).log() - torch.rand(3).log().neg().log(), 2).indices.tolist()
    )


PLACKETT_LUCE = {
    (i, j): WEIGHTS[i] * WEIGHTS[j] / (1 - WEIGHTS[i]) for i in range(3) for j in range(3) if i != j
}
TOKENS = dict(enumerate(WEIGHTS))
EXACT: dict[str, tuple[Callable[[int], Any], dict[Any, float], float]] = {
    "coin and inversion": (
        coin_then_token,
        {(3,): 0.25} | {(4, i): 0.75 * w for i, w in TOKENS.items()},
        1e-9,
    ),
    "a strict comparison on the grid": (
        lambda _: bool(torch.rand(1) <= 0.5),
        {True: 0.5 + 2**-24, False: 0.5 - 2**-24},
        1e-15,
    ),
    "and the other one": (lambda _: bool(torch.rand(1) < 0.5), {True: 0.5, False: 0.5}, 1e-15),
    "a race of torch": (lambda _: race(torch.empty(3).exponential_().numpy()), TOKENS, 1e-6),
    "a Gumbel race of numpy": (
        lambda _: int(np.argmax(np.log(WEIGHTS) + np.random.gumbel(size=3))),
        TOKENS,
        1e-6,
    ),
    "a race of -log u": (lambda _: race(-np.log(np.random.rand(3))), TOKENS, 2e-5),
    "topk of a race": (order_of_a_race, PLACKETT_LUCE, 2e-5),
    "an exponential number as a coin": (
        lambda _: bool(torch.empty(1).exponential_() < math.log(2)),
        {True: 0.5, False: 0.5},
        1e-6,
    ),
    "101 values": (
        lambda _: bool(torch.randint(101, (1,)).item() < 25),
        {True: 25 / 101, False: 76 / 101},
        1e-9,
    ),
    "integers of numpy": (lambda _: int(np.random.choice(2)), {0: 0.5, 1: 0.5}, 1e-9),
    "integers of a generator": (lambda _: int(np.random.default_rng().integers(2)), {0: 0.5, 1: 0.5}, 1e-9),
    "nothing": (lambda _: 7, {7: 1.0}, 0),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_learned_law_is_exact(name: str) -> None:
    function, wanted, error = EXACT[name]
    found = probed(function)
    assert found.laws[0] == pytest.approx(wanted, abs=error)
    assert (found.mismatches, found.within <= 0.02) == (0, True)


@pytest.mark.parametrize(
    "function",
    [
        lambda _: bool(MADE.random() < 0.5),
        lambda seed: seed % 2,
        lambda _: bool(random.SystemRandom().random() < 0.5),
    ],
)
def test_what_is_no_function_of_the_numbers_is_refused(function: Callable[[int], Any]) -> None:
    """A generator made before the call, the seed, the system; the partners are those of ``EXACT``."""
    with pytest.raises(NotHandedError, match="called twice with the same random numbers"):
        probed(function)


def test_an_answer_that_changes_late_and_uses_no_number_is_refused() -> None:
    """After the points that are asked twice."""
    calls = count()
    with pytest.raises(NotHandedError, match="changes where no random number"):
        probed(lambda _: next(calls) > 2 * ASKED_TWICE)


def test_a_shared_number_is_outside_of_the_trees_and_the_bound_says_so() -> None:
    """The coin is a number of the race: no product has this law.  The answer 0 has probability 0.0113."""

    def shared(_: int) -> int:
        noise = np.random.exponential(size=3)
        return 3 if noise[0] < 0.3 else race(noise)

    found = probed(shared, within=0.0005)
    assert found.mismatches > 0
    assert found.within > 0.0113 - found.laws[0].get(0, 0.0)


def test_calls_are_limited() -> None:
    with pytest.raises(BudgetSpentError):
        probed(coin_then_token, budget=30)


def hidden(size: float, corner: tuple[float, float]) -> Callable[[int], Any]:
    """A sampler that is wrong where two numbers lie in a square of this area."""
    side = math.sqrt(size)

    def function(_: int) -> int:
        first, second = np.random.random(), np.random.random()
        if 0 <= first - corner[0] < side and 0 <= second - corner[1] < side:
            return 9
        return int(first < 0.3) + 2 * int(second < 0.6)

    return function


def test_a_region_that_the_test_finds_is_learned() -> None:
    found = probed(hidden(0.01, (0.41, 0.22)), within=0.001)
    assert found.laws[0][9] == pytest.approx(0.01, abs=1e-9)
    assert found.mismatches == 0


@pytest.mark.parametrize(("size", "within"), [(0.003, 0.005), (0.01, 0.02), (0.03, 0.05)])
def test_the_bound_is_rarely_below_the_truth(size: float, within: float) -> None:
    """At a risk of 0.2, and 40 runs: more than 18 failures have a probability below 10^-4."""
    rng = np.random.default_rng(1)
    below = 0
    for number in range(40):
        found = probed(hidden(size, tuple(rng.random(2) * 0.8)), within, seed=number, risk=0.2)
        missed = abs(found.laws[0].get(9, 0.0) - size)
        below += missed > found.within
    assert below <= 18


def test_the_numbers_of_the_claim() -> None:
    assert sum(risk_of_stage(1e-6, stage) for stage in range(1, 10_000)) == pytest.approx(1e-6, rel=1e-3)
    assert wrong_at_most(points_needed(0.002, 1e-6), 0, 1e-6) <= 0.002
    assert wrong_at_most(points_needed(0.002, 1e-6) - 1, 0, 1e-6) > 0.002
    # The tail at the bound has the risk: P(Bin(100, p) <= 3) = 0.05.
    bound = wrong_at_most(100, 3, 0.05)
    tail = sum(math.comb(100, k) * bound**k * (1 - bound) ** (100 - k) for k in range(4))
    assert tail == pytest.approx(0.05)
    assert wrong_at_most(5, 5, 0.05) == 1


def test_parts_are_tested_together() -> None:
    """A part that is called rarely gets few of the points, and its law is its own."""
    with handing():
        found = probe(
            [
                (0.9, lambda _: bool(random.random() < 0.25)),
                (0.1, lambda _: bool(random.random() < 0.5)),
            ],
            0.02,
            1e-6,
            1_000,
        )
    assert [law[True] for law in found.laws] == pytest.approx([0.25, 0.5])
    assert found.points == points_needed(0.02, risk_of_stage(1e-6, 1))

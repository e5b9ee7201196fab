"""Choices and their intervals, against candidates whose tokens and costs have known laws."""

from collections.abc import Callable

import numpy as np
import pytest

from deep import first_is_quick
from spectheory.simulation.choosing import Trial, by_speed, choose, is_faster, report
from spectheory.simulation.cost import median_interval, relative_costs, rounds_for
from spectheory.simulation.estimates import Tally, paired_gain

CALLS = 40
REPEATED = 300
"""With this many repetitions a share of 95 % has a standard deviation of 1.3 %."""


def trial(
    tokens: float, cost: float, draw: np.random.Generator, rows: int = 4, prompts: int = 24, rounds: int = 25
) -> Trial:
    """A candidate with these means: 40 calls behind every prompt, and rounds that are a tenth off."""
    tally = Tally.zeros(prompts, 4)
    tally.counted_lengths[:, 0] = CALLS
    tally.expected[:] = CALLS * (tokens + 0.3 * draw.standard_normal(prompts))
    return Trial(rows, tally, cost * np.exp(0.1 * draw.standard_normal(rounds)))


def holds(trials: list[Trial], confidence: float, tokens: float, cost: float) -> bool:
    """Whether every interval of a report has what it is of."""
    truth = tokens, cost, tokens / cost
    return all(
        low <= value <= high
        for found in report(trials, confidence)
        for (low, high), value in zip(found, truth, strict=True)
    )


@first_is_quick(("number", "confidence"), [(6, 0.9), (8, 0.95)])
def test_all_intervals_hold_together(number: int, confidence: float) -> None:
    """The partner: the intervals that each candidate would have alone do not."""
    draw, together, alone = np.random.default_rng(1), 0, 0
    for _ in range(REPEATED):
        trials = [trial(2.0, 1.25, draw) for _ in range(number)]
        together += holds(trials, confidence, 2.0, 1.25)
        alone += all(holds([one], confidence, 2.0, 1.25) for one in trials)
    assert together >= (confidence - 0.03) * REPEATED
    assert alone < (confidence - 0.06) * REPEATED


def test_the_half_that_chose_is_not_reported() -> None:
    """On other prompts the leader's mean is right.  The partner: where it was chosen, it is too large."""
    draw, same, other = np.random.default_rng(2), [], []
    for _ in range(REPEATED):
        chose, reports = ([trial(2.0, 1.25, draw) for _ in range(12)] for _ in range(2))
        leader = by_speed(chose)[0]
        same.append(chose[leader].speed_up)
        other.append(reports[leader].speed_up)
    error = np.std(other) / REPEATED**0.5
    assert abs(np.mean(other) - 1.6) < 4 * error
    assert np.mean(same) > 1.6 + 20 * error


def test_the_fastest_is_tied_with_the_leader() -> None:
    """In at least 90 % of choices among 15.  The partner: with 90 % for each comparison it is not."""
    draw, kept, alone = np.random.default_rng(3), 0, 0
    for _ in range(REPEATED):
        drawn = (trial(2.0, 1.25, draw) for _ in range(15))  # all are the fastest: number 0 too
        trials = [Trial(one.target_rows, one.tally, np.array([1.25])) for one in drawn]
        kept += 0 in choose(trials, 0.9)
        alone += not is_faster(trials[by_speed(trials)[0]], trials[0], 0.1)
    assert kept >= 0.9 * REPEATED
    assert alone < 0.8 * REPEATED


def test_ties_go_to_fewer_rows_and_leads_do_not() -> None:
    draw = np.random.default_rng(4)
    few, many = trial(2.0, 1.25, draw, rows=2), trial(2.1, 1.25, draw, rows=9)
    assert many.speed_up > few.speed_up
    assert choose([many, few], 0.95) == [1, 0]
    assert choose([trial(2.6, 1.25, draw, rows=9), few], 0.95) == [0]
    # As far ahead by its cost, and tied where the rounds do not agree.
    cheap = trial(2.0, 0.9, draw, rows=9)
    assert choose([cheap, few], 0.95) == [0]
    scattered = Trial(9, cheap.tally, cheap.costs * np.exp(2 * draw.standard_normal(25)))
    assert choose([scattered, few], 0.95) == [1, 0]
    # Between equal rows the faster one is taken.
    assert choose([few, trial(2.05, 1.25, draw, rows=2)], 0.95) == [1, 0]


def test_pairs_tell_what_separate_intervals_do_not() -> None:
    """What both have of a prompt or of a round cancels, if they are measured on the same ones."""
    draw = np.random.default_rng(5)
    base = trial(2.0, 1.25, draw)
    tally = Tally.zeros(24, 4)
    tally.counted_lengths[:, 0] = CALLS
    tally.expected[:] = base.tally.expected + 0.1 * CALLS
    better = Trial(9, tally, base.costs)
    (low, _), (_, high) = (report([one], 0.95)[0].speed_up for one in (better, base))
    assert low < high
    assert is_faster(better, base, 0.01)
    mixed = Trial(9, Tally(*(values[::-1] for values in vars(tally).values())), base.costs)
    assert not is_faster(mixed, base, 0.01)


LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda draw, size: draw.standard_normal(size),
    "heavy tails": lambda draw, size: np.exp(2 * draw.standard_normal(size)) - 1,
}


@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_a_median_covers_for_every_law(law: str) -> None:
    """The median is 0.  The partner: an interval one value shorter at each end misses it too often."""
    draw, level = np.random.default_rng(7), 0.1
    rounds = rounds_for(level)
    rows = LAWS[law](draw, 2_000 * rounds).reshape(2_000, rounds)
    ends = [median_interval(row, level) for row in rows]
    assert np.mean([low > 0 or high < 0 for low, high in ends]) <= level + 0.02
    ordered = np.sort(rows, axis=1)
    k = int(np.flatnonzero(ordered[0] == ends[0][0])[0])
    assert k == 2  # two slow rounds do not move it
    assert np.mean((ordered[:, k + 1] > 0) | (ordered[:, -k - 2] < 0)) > level + 0.02


def test_a_given_cost_has_no_spread() -> None:
    """All of the level goes to the tokens then."""
    draw = np.random.default_rng(6)
    one = trial(2.0, 1.25, draw)
    given = Trial(4, one.tally, np.array([1.25]))
    (exact,), (measured,) = report([given], 0.95), report([one], 0.95)
    assert exact.cost == (1.25, 1.25)
    assert exact.speed_up == tuple(end / 1.25 for end in exact.tokens)
    assert measured.tokens[0] < exact.tokens[0] < exact.tokens[1] < measured.tokens[1]


def test_too_few_rounds_decide_nothing() -> None:
    assert median_interval(np.array([1.0, 2.0, 3.0]), 0.05) == (0.0, float("inf"))
    draw = np.random.default_rng(8)
    fast, slow = trial(4.0, 1.0, draw, rounds=3), trial(1.0, 1.0, draw, rounds=3)
    assert not is_faster(fast, slow, 0.01)
    assert report([fast], 0.95)[0].speed_up == (0.0, float("inf"))


def test_costs_are_those_of_one_round() -> None:
    """A round in which everything takes twice as long has the same costs."""
    seconds = np.array([[[2.0, 1.0, 3.0], [2.0, 2.0, 4.0]], [[4.0, 2.0, 6.0], [4.0, 4.0, 8.0]]])
    assert relative_costs(seconds).tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_a_gain_with_a_factor_is_that_of_scaled_tokens() -> None:
    draw = np.random.default_rng(9)
    one, other = trial(2.0, 1.0, draw).tally, trial(2.0, 1.0, draw).tally
    gain, scaled = (paired_gain([one], [other], 0.95, factor) for factor in (1.0, 1.5))
    mean, base = one.expected.sum() / one.draws.sum(), other.expected.sum() / other.draws.sum()
    assert gain.value == pytest.approx(mean - base)
    assert scaled.value == pytest.approx(1.5 * mean - base)
    assert scaled.error == pytest.approx(
        np.std(1.5 * one.expected - other.expected, ddof=1) / (CALLS * 24**0.5)
    )

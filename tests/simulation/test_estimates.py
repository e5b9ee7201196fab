"""Means, errors and intervals from sums by stratum."""

from dataclasses import fields
from statistics import NormalDist

import numpy as np
import pytest

from later import Later
from spectheory import instances
from spectheory.simulation import simulate
from spectheory.simulation.estimates import (
    Tally,
    are_narrow,
    clustered,
    estimate,
    estimate_over_texts,
    paired_gain,
    stratified,
)
from spectheory.simulation.runs import FEWEST_PROMPTS

stats = Later("scipy.stats")


def test_a_higher_confidence_has_a_wider_interval() -> None:
    """By both ways of counting, around the estimate, wider than the normal interval by a tenth at most."""
    widths = []
    for confidence in (0.5, 0.95, 0.999):
        simulation = simulate(
            instances.two_token(2), verifiers=["block"], samples=2_000, confidence=confidence
        )
        (found,) = simulation.estimates
        normal = 2 * NormalDist().inv_cdf((1 + confidence) / 2)
        for value, error, (low, high) in (
            (found.block_efficiency, found.standard_error, found.interval),
            (found.counted, found.counted_standard_error, found.counted_interval),
        ):
            assert low < value < high
            assert normal * error < high - low < 1.1 * normal * error
        widths.append(found.interval[1] - found.interval[0])
    assert widths == sorted(widths)


def test_stratified_mean_and_error() -> None:
    """By numpy on the draws themselves: mean of stratum means, sqrt(Σ s²/n) / strata."""
    draws = np.random.default_rng(0).normal(size=(7, 3)) + np.array([0.0, 5.0, -2.0])
    mean, error = stratified(draws.sum(axis=0), (draws**2).sum(axis=0), len(draws))
    assert mean == pytest.approx(draws.mean(axis=0).mean())
    assert error == pytest.approx(np.sqrt((draws.var(axis=0, ddof=1) / 7).sum()) / 3)
    pooled = draws.std(ddof=1) / np.sqrt(draws.size)
    assert error < pooled / 2  # the spread between strata is no error of their mean


def simulated_coverage(prompts: int, repetitions: int = 2_000) -> tuple[dict[str, float], float]:
    """How often 90 % intervals over few prompts cover the ratio of means, 2.5 tokens per call.

    And how wide they are, over the width of Student's t intervals.

    A prompt has 6 to 14 calls, a level of its own, and calls that scatter around it.
    """
    rng, inside, widths = np.random.default_rng(0), {"found": 0, "t": 0, "normal": 0}, []
    for _ in range(repetitions):
        tally = Tally.zeros(prompts, 4)
        calls = rng.integers(6, 15, size=prompts)
        stratum = np.repeat(np.arange(prompts), calls)
        means = (2.5 + rng.normal(scale=0.4, size=prompts))[stratum] + rng.normal(scale=0.5, size=calls.sum())
        lengths = np.zeros(len(stratum), dtype=np.int64)
        tally.add_calls(stratum, means, lengths, np.ones((len(stratum), 5)) / 5)
        found = estimate_over_texts(("block", True, 1), [tally], 0.9)
        away, error = abs(found.block_efficiency - 2.5), found.standard_error
        t_width = stats.t.ppf(0.95, prompts - 1) * error
        inside["found"] += found.interval[0] < 2.5 < found.interval[1]
        inside["t"] += away < t_width
        inside["normal"] += away < NormalDist().inv_cdf(0.95) * error
        widths.append(((found.interval[1] - found.interval[0]) / 2, t_width))
    ours, of_t = np.mean(widths, axis=0)
    return {name: count / repetitions for name, count in inside.items()}, float(ours / of_t)


def test_intervals_over_few_prompts_cover() -> None:
    """90 % intervals over 4 prompts cover 90 % and more; the partner, normal intervals, 85 % and less.

    They are a quarter wider than Student's t intervals at most.  The standard error of a coverage over
    2 000 repetitions is 0.7 %.
    """
    coverage, ratio = simulated_coverage(prompts=4)
    assert coverage["found"] > 0.9
    assert 0.88 < coverage["t"] < 0.94
    assert coverage["normal"] < 0.85
    assert 1 < ratio < 1.25


def stopped_coverage(first: int, block: int, repetitions: int = 600) -> float:
    """How often 90 % intervals cover 2.5 where a run stops at a width of 0.4, from ``first`` prompts on."""
    rng, inside = np.random.default_rng(1), 0
    for _ in range(repetitions):
        tally = Tally.zeros(96, 3)
        means = 2.5 + np.clip(rng.normal(scale=0.7, size=96), -1.5, 1.5)
        calls = np.repeat(np.arange(96), 100)  # long texts: an unseen call counts for little
        tally.add_calls(calls, means[calls], np.zeros(9_600, dtype=np.int64), np.ones((9_600, 4)) / 4)
        for prompts in range(first, 97, block):
            part = Tally(*(getattr(tally, entry.name)[:prompts] for entry in fields(Tally)))
            found = estimate_over_texts(("block", True, 1), [part], 0.9)
            if are_narrow([found], 0.4):
                break
        inside += found.interval[0] < 2.5 < found.interval[1]
    return inside / repetitions


@pytest.mark.deep
def test_intervals_of_a_run_that_stops_cover() -> None:
    """From 16 prompts on, in blocks of 8, 87 % and more; the partner, from 2 prompts on one by one, does not.

    The standard error of a coverage over 600 repetitions is 1.2 %.
    """
    assert 0.87 < stopped_coverage(FEWEST_PROMPTS, 8) < 0.93
    assert stopped_coverage(2, 1) < 0.86


def two_verifiers(rng: np.random.Generator, prompts: int) -> tuple[Tally, Tally]:
    """Verifiers with means 2.6 and 2.5 that share what the prompts give, on texts that each writes."""
    shared, sides = rng.normal(scale=0.5, size=prompts), []
    for mean in (2.6, 2.5):
        calls = rng.integers(30, 60, size=prompts)
        stratum = np.repeat(np.arange(prompts), calls)
        own = rng.normal(scale=0.1, size=prompts)
        draws = mean + (shared + own)[stratum] + rng.normal(scale=0.5, size=calls.sum())
        lengths = np.zeros(len(draws), dtype=np.int64)
        sides.append(Tally.zeros(prompts, 4))
        sides[-1].add_calls(stratum, draws, lengths, np.ones((len(draws), 5)) / 5)
    return sides[0], sides[1]


def drawn_gains(prompts: int, repetitions: int) -> dict[str, float]:
    """Coverage of 0.1 by 90 % intervals of a gain, and its error over that without pairs."""
    rng, inside, ratios = np.random.default_rng(2), {"found": 0, "normal": 0}, []
    for _ in range(repetitions):
        sides = two_verifiers(rng, prompts)
        gain = paired_gain([sides[0]], [sides[1]], 0.9)
        inside["found"] += gain.interval[0] < 0.1 < gain.interval[1]
        inside["normal"] += abs(gain.value - 0.1) < NormalDist().inv_cdf(0.95) * gain.error
        ratios.append(gain.error / np.hypot(*(clustered(side.expected, side.draws)[1] for side in sides)))
    return {name: count / repetitions for name, count in inside.items()} | {"ratio": float(np.mean(ratios))}


def test_gains_are_paired_and_cover() -> None:
    """Over 5 prompts 90 % and more; the partners: normal intervals miss, unpaired ones are twice as wide."""
    found = drawn_gains(prompts=5, repetitions=500)
    assert found["found"] > 0.88
    assert found["normal"] < 0.86
    assert found["ratio"] < 0.5


@pytest.mark.deep
@pytest.mark.parametrize("prompts", [4, 8, 16, 64])
def test_gains_cover_over_more_prompts(prompts: int) -> None:
    """The standard error of a coverage over 4 000 repetitions is 0.5 %."""
    assert 0.885 < drawn_gains(prompts, repetitions=4_000)["found"] < 0.96


def test_a_gain_by_hand() -> None:
    """Two prompts with 2 and 1 calls of one verifier and 1 and 1 of the other: 8/3 - 2."""
    tally, other = Tally.zeros(2, 3), Tally.zeros(2, 3)
    for sums, stratum, tokens in ((tally, [0, 0, 1], [2.0, 2.0, 4.0]), (other, [0, 1], [1.0, 3.0])):
        wide = np.ones((len(tokens), 4)) / 4
        sums.add_calls(np.array(stratum), np.array(tokens), np.zeros(len(tokens), dtype=np.int64), wide)
    gain = paired_gain([tally], [other], 0.95)
    assert gain.value == pytest.approx(2 / 3)
    # Residuals (4 - 16/3)/3 - (1 - 2)/2 = 1/18 and its negative.
    assert gain.error == pytest.approx(np.sqrt(2 * 2 / 18**2))
    assert -3 <= gain.interval[0] < gain.value < gain.interval[1] <= 3
    same = paired_gain([tally], [tally], 0.95)
    assert same.value == same.error == 0
    assert same.interval[0] < 0 < same.interval[1]  # the next call may differ


def test_two_prompts_leave_one_degree_of_freedom() -> None:
    """With many calls the interval is that of Student's t."""
    tallies = [Tally.zeros(2, 3) for _ in range(2)]
    for tally, means in zip(tallies, ((2.0, 2.6), (2.0, 2.4)), strict=True):
        tally.add_calls(
            np.repeat([0, 1], 200), np.repeat(means, 200), np.zeros(400, dtype=int), np.ones((400, 4)) / 4
        )
    gain = paired_gain(tallies[:1], tallies[1:], 0.95)
    assert gain.interval[1] - gain.value == pytest.approx(stats.t(1).ppf(0.975) * gain.error, rel=0.02)


def test_calls_of_one_prompt_are_one_cluster() -> None:
    """By numpy on the calls themselves; calls that count as independent would give a smaller error."""
    rng = np.random.default_rng(1)
    calls = rng.integers(3, 9, size=12)
    stratum = np.repeat(np.arange(12), calls)
    lengths = np.minimum(rng.integers(0, 3, size=12)[stratum] + rng.integers(0, 2, size=len(stratum)), 3)
    tally = Tally.zeros(12, 3)
    probs = rng.dirichlet(np.ones(4), size=len(stratum))
    for part in np.array_split(np.arange(len(stratum)), 5):
        tally.add_calls(stratum[part], (probs @ np.arange(1, 5))[part], lengths[part], probs[part])
    assert (tally.draws == calls).all()
    assert tally.length_probs.sum(axis=0) == pytest.approx(probs.sum(axis=0))
    mean, error = clustered(tally.counted, tally.draws)
    assert mean == pytest.approx((lengths + 1).mean())
    residuals = np.array([(lengths[stratum == n] + 1 - mean).sum() for n in range(12)])
    assert error == pytest.approx(np.sqrt(12 / 11 * (residuals**2).sum()) / len(stratum))
    assert error > 1.2 * (lengths + 1).std(ddof=1) / np.sqrt(len(stratum))


def test_two_draws_of_two_strata_by_hand() -> None:
    """Stratum means 3/2 and 2, variances 1/2 and 0: a mean of 7/4 with the standard error 1/4, both ways."""
    tally = Tally.zeros(2, 1)
    lengths = np.array([[0, 1], [1, 1]])
    probs = np.stack([lengths == 0, lengths == 1], axis=-1).astype(float)
    tally.add(np.array([[1.0, 2.0], [2.0, 2.0]]), lengths, probs)
    found = estimate(("token", True, 1), [tally], 2, 0.95)
    assert (found.block_efficiency, found.standard_error) == (1.75, 0.25)
    assert (found.counted, found.counted_standard_error) == (1.75, 0.25)
    assert found.samples == 4
    assert found.length_probs == found.counted_length_probs == [0.25, 0.75]


def test_a_text_without_a_call_is_no_cluster() -> None:
    """It ended before the first call that counts: the same estimate and gain as without it."""

    def calls(prompts: list[int], most: float, of_all: int) -> list[Tally]:
        tally, tokens = Tally.zeros(of_all, 3), np.linspace(1.5, most, len(prompts))
        law = np.ones((len(prompts), 4)) / 4
        tally.add_calls(np.array(prompts), tokens, np.zeros(len(prompts), dtype=int), law)
        return [tally]

    prompts = [number // 3 for number in range(60)]
    found, other = ((calls(prompts, 3.0, of_all), calls(prompts, 2.5, of_all)) for of_all in (20, 21))
    subject = ("block", True, 1)
    first, second = (estimate_over_texts(subject, pair[0], 0.95) for pair in (found, other))
    assert (first.interval, first.standard_error) == (second.interval, second.standard_error)
    assert first.interval[1] < 4  # the partner: not all that is possible
    assert paired_gain(*found, 0.95) == paired_gain(*other, 0.95)


def stopped_gains(first: int, block: int, repetitions: int = 800) -> float:
    """How often 90 % intervals cover 0.1 where a run stops at a gain's width of 0.1."""
    rng, inside = np.random.default_rng(3), 0
    for _ in range(repetitions):
        sides = two_verifiers(rng, 96)
        for prompts in range(first, 97, block):
            parts = [
                Tally(*(getattr(side, entry.name)[:prompts] for entry in fields(Tally))) for side in sides
            ]
            low, high = paired_gain([parts[0]], [parts[1]], 0.9).interval
            if high - low <= 0.1:
                break
        inside += low < 0.1 < high
    return inside / repetitions


@pytest.mark.deep
def test_gains_of_a_run_that_stops_cover() -> None:
    """From 16 prompts on, in blocks of 8; the standard error of a coverage over 800 repetitions is 1 %."""
    assert 0.87 < stopped_gains(FEWEST_PROMPTS, 8) < 0.96


def test_results_are_short_to_print_and_equal() -> None:
    pair = instances.two_token(2)
    simulation = simulate(pair, verifiers=["token", "greedy_block"], samples=500)
    token, greedy = simulation.estimates
    low, high = token.interval
    assert (
        repr(token)
        == f"<token: {token.block_efficiency:.4f} ({low:.4f} to {high:.4f}) tokens per target call>"
    )
    assert repr(simulation) == "<block efficiency of token, greedy_block, 1 x 2 drafted tokens>"
    assert simulation == simulate(pair, verifiers=["token", "greedy_block"], samples=500)
    assert simulation != simulate(pair, verifiers=["token", "greedy_block"], samples=500, seed=1)
    assert token != greedy


def test_a_data_frame_has_a_row_per_verifier() -> None:
    simulation = simulate(instances.two_token(2), verifiers=["token", "block"], samples=500)
    frame = simulation.to_frame()
    assert frame["verifier"].tolist() == ["token", "block"]
    assert frame["block_efficiency"].tolist() == [e.block_efficiency for e in simulation.estimates]
    assert frame["low"].tolist() == [e.interval[0] for e in simulation.estimates]


def test_strata_with_equal_labels_are_one() -> None:
    tally = Tally.zeros(3, 1)
    tally.add_calls(
        np.array([0, 1, 2, 2]), np.array([1.0, 1.5, 2.0, 1.0]), np.array([0, 1, 1, 0]), np.ones((4, 2)) / 2
    )
    assert tally.summed_by([4, 5, 6]) is tally
    joined = tally.summed_by([4, 5, 4])
    assert joined.expected.tolist() == [4.0, 1.5]
    assert joined.draws.tolist() == [3, 1]
    assert joined.counted_lengths.tolist() == [[2, 1], [0, 1]]

"""Intervals for the mean of bounded draws: where rejections are rare, by strata, over few prompts."""

import math
from fractions import Fraction

import numpy as np
import pytest

from later import Later
from spectheory import certify
from spectheory.pairs.pair import ModelPair
from spectheory.simulation import simulate
from spectheory.simulation.estimates import (
    Estimate,
    Tally,
    clustered,
    estimate,
    estimate_over_texts,
    stratified,
    third_moment,
)
from spectheory.simulation.intervals import _LARGE_SHAPE, _reach, bounded_mean_interval

special = Later("scipy.special")
stats = Later("scipy.stats")

Z = float(special.ndtri(0.975))


def of_one_stratum(
    values: np.ndarray, bounds: tuple[float, float], confidence: float = 0.95
) -> tuple[float, float]:
    """The interval of independent draws, [n], by the formulas of ``estimate``."""
    count = np.array([len(values)])
    sums, squares, cubes = ((values**power).sum(keepdims=True) for power in (1, 2, 3))
    mean, error = stratified(sums, squares, count)
    third = third_moment(sums, squares, cubes, count, 1 / count)
    return bounded_mean_interval(mean, error, third, np.array([mean]), count, 1 / count, bounds, confidence)


@pytest.mark.parametrize(
    ("target", "draft", "draft_length", "samples", "runs"),
    [
        (("0.999", "0.001"), ("0.99", "0.01"), 2, 100, 100),
        (("0.999", "0.001"), ("0.99", "0.01"), 2, 1_000, 30),
        (("0.9999", "0.0001"), ("0.999", "0.001"), 1, 1_000, 30),
    ],
)
def test_rare_rejections_are_covered(
    target: tuple[str, str], draft: tuple[str, str], draft_length: int, samples: int, runs: int
) -> None:
    """95 % intervals around rejections with a probability of 1e-4 to 2e-3 contain the exact value.

    The partner, the normal interval of the same runs, misses it in half of the runs and more.
    """
    pair = ModelPair.context_free_pair(target, draft, draft_length)
    exact = certify("greedy_multipath", pair, drafts=2, with_optimum=False).block_efficiency
    assert isinstance(exact, Fraction)
    inside = {"interval": 0, "counted_interval": 0, "normal": 0, "normal counted": 0}
    for seed in range(runs):
        simulation = simulate(pair, verifiers=["greedy_multipath"], drafts=2, samples=samples, seed=seed)
        found = simulation.estimates[0]
        for low, high in (found.interval, found.counted_interval):
            assert 1 <= low < high <= draft_length + 1
        inside["interval"] += found.interval[0] <= exact <= found.interval[1]
        inside["counted_interval"] += found.counted_interval[0] <= exact <= found.counted_interval[1]
        inside["normal"] += abs(found.block_efficiency - exact) <= Z * found.standard_error
        inside["normal counted"] += abs(found.counted - exact) <= Z * found.counted_standard_error
    assert min(inside["interval"], inside["counted_interval"]) >= 0.95 * runs
    assert min(inside["normal"], inside["normal counted"]) <= 0.5 * runs


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("count", [2, 3, 10, 57, 1_000])
def test_draws_at_the_ends_contain_clopper_and_pearson(count: int, confidence: float) -> None:
    """P(no more draws at the upper end | mean = the upper limit) <= (1 - confidence) / 2.

    The lower limit is the mirror image.  The partner: under the upper limit of the normal interval the
    probability is larger.
    """
    tail, worst = (1 - confidence) / 2, 0.0
    for at_the_end in np.unique(np.linspace(0, count - 1, 40).astype(int)):
        values = np.repeat([3.0, 1.0], [at_the_end, count - at_the_end])
        low, high = of_one_stratum(values, (1, 3), confidence)
        mirrored = of_one_stratum(4 - values, (1, 3), confidence)
        assert (4 - mirrored[1], 4 - mirrored[0]) == pytest.approx((low, high))
        assert low <= values.mean() <= high
        assert high == 3 or special.bdtr(at_the_end, count, (high - 1) / 2) <= tail
        mean, error = stratified(values.sum(keepdims=True), (values**2).sum(keepdims=True), count)
        normal = min((mean - float(special.ndtri(tail)) * error - 1) / 2, 1.0)
        worst = max(worst, float(special.bdtr(at_the_end, count, normal)))
    assert worst == 1  # no draw at the end: the normal interval has width zero


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_equal_draws_rarely_hide_the_mean(confidence: float) -> None:
    """Mass m at v and the rest at an end: m^n <= 1 - confidence wherever the interval of n draws misses."""
    for count in (2, 3, 5, 20, 1_000):
        for value in (1.0, 1.5, 2.9, 3.0):
            low, high = of_one_stratum(np.full(count, value), (1, 3), confidence)
            assert 1 <= low <= value <= high <= 3
            assert low < high
            for mass in np.linspace(0, 1, 500):
                for end in (1, 3):
                    mean = mass * value + (1 - mass) * end
                    assert mass**count <= 1 - confidence or low - 1e-9 <= mean <= high + 1e-9


def test_strata_with_unequal_numbers_of_draws_are_covered() -> None:
    """Eight prompts with 2 to 400 draws, and rejections with a probability of up to 0.002 that cost L tokens.

    The partner, the normal interval, covers in less than two thirds of the runs.
    """
    draws = np.array([2, 5, 10, 30, 50, 100, 200, 400])
    rates, length, rng = np.linspace(0, 0.002, 8), 4, np.random.default_rng(0)
    exact, inside, normal = length + 1 - length * rates.mean(), 0, 0
    for _ in range(400):
        tally = Tally.zeros(8, length)
        stratum = np.repeat(np.arange(8), draws)
        lengths = np.where(rng.random(len(stratum)) < rates[stratum], 0, length)
        tally.add_calls(stratum, lengths + 1.0, lengths, np.eye(length + 1)[lengths])
        found = estimate(("token", True, 1), [tally], draws, 0.95)
        inside += found.interval[0] <= exact <= found.interval[1]
        normal += abs(found.block_efficiency - exact) <= Z * found.standard_error
    assert inside >= 0.95 * 400
    assert normal < 2 / 3 * 400


def test_few_of_the_strata_may_reject() -> None:
    """Of two prompts one accepts all eight tokens, the other none: an event costs eight tokens, not four.

    With half of n = 100 draws after the prompt that accepts all, no rejection is seen in 2.5 % of the runs
    at a rate of 3.69 / 50, which costs 8 x 3.69 / 100 in the mean.
    """
    means, draws = np.array([9.0, 1.0]), np.array([50, 50])
    low, high = bounded_mean_interval(5.0, 0.0, 0.0, means, draws, 0.01, (1, 9), 0.95)
    assert low == pytest.approx(5 - 8 * -math.log(0.025) / 100)
    assert high == pytest.approx(5 + 8 * -math.log(0.025) / 100)


def test_the_width_tends_to_that_of_the_normal_interval() -> None:
    """At most 1.5 times where √n s >= 1.1 (b - a), for every mean and skewness; 1.3 without the third moment.

    The partner: with a tenth of that it is more than twice as wide.
    """

    def ratios(spread: float, known: bool = True) -> list[float]:
        """``spread``: √n s / (b - a), for n = 10 000 draws between 0 and 1."""
        count, error, found = np.array([10_000]), spread / 10_000, []
        for mean in np.linspace(0.1, 0.9, 41):
            for third in error**2 * np.linspace(-mean, 1 - mean, 11) / 10_000 if known else [None]:
                low, high = bounded_mean_interval(
                    mean, error, third, np.array([mean]), count, 1e-4, (0, 1), 0.95
                )
                found.append((high - low) / (2 * Z * error))
        return found

    for spread, most in ((1.1, 1.5), (5, 1.11), (50, 1.011)):
        assert 1 < max(ratios(spread)) < most
    assert max(ratios(1.3, known=False)) < 1.5
    assert min(ratios(0.11)) > 2


def test_rare_events_have_the_exact_poisson_limits() -> None:
    """c of 10^7 draws lie at the lower end: both limits by P(Poisson <= c) and P(Poisson >= c) (Garwood)."""
    count = 10**7
    for events in (0, 1, 2, 5, 20):
        mean, share = 2 - events / count, events / count
        error = math.sqrt(share * (1 - share) / count)
        third = -share * (1 - share) * (1 - 2 * share) / count**2
        low, high = bounded_mean_interval(
            mean, error, third, np.array([mean]), np.array([count]), 1 / count, (1, 2), 0.95
        )
        most, fewest = (2 - low) * count, (2 - high) * count
        assert special.pdtr(events, most) == pytest.approx(0.025, rel=1e-4)
        if events:
            assert 1 - special.pdtr(events - 1, fewest) == pytest.approx(0.025, rel=1e-3)
        else:
            assert fewest == 0


def over_texts(sums: list[float], calls: list[int], draft_length: int, confidence: float = 0.95) -> Estimate:
    """The estimate from the sums of E[tau + 1] and the numbers of calls of all prompts."""
    tally = Tally.zeros(len(sums), draft_length)
    for stratum, (total, count) in enumerate(zip(sums, calls, strict=True)):
        mean, lengths = total / count, np.zeros(count, dtype=np.int64)
        probs = np.tile(np.eye(draft_length + 1)[0], (count, 1))
        tally.add_calls(np.full(count, stratum), np.full(count, mean), lengths, probs)
    return estimate_over_texts(("block", True, 1), [tally], confidence)


def test_two_prompts_stay_within_the_possible() -> None:
    """Within [1, L + 1], with a positive width.  The partner, Student's t, leaves it in half of the cases."""
    rng, outside = np.random.default_rng(0), 0
    for _ in range(200):
        draft_length = int(rng.integers(1, 9))
        calls = rng.integers(1, 20, size=2)
        sums = calls * rng.uniform(1, draft_length + 1, size=2)
        found = over_texts(sums.tolist(), calls.tolist(), draft_length)
        low, high = found.interval
        assert 1 <= low <= found.block_efficiency <= high <= draft_length + 1
        assert low < high
        mean, error = clustered(sums, calls)
        reach = stats.t.ppf(0.975, 1) * error
        outside += mean - reach < 1 or mean + reach > draft_length + 1
    assert outside > 100


def test_one_prompt_says_nothing_over_texts() -> None:
    """The spread over prompts is unknown: all of [1, L + 1].  The partner: two prompts have a shorter one."""
    assert over_texts([30.0], [10], 4).interval == (1, 5)
    low, high = over_texts([30.0, 30.1], [10, 10], 4).interval
    assert 1 < low < 3 < high < 5


def test_third_moment_of_few_draws() -> None:
    """Two draws of a prompt have none.  Three, by hand: 9 / 2 of the cubed deviations over 3^3."""
    draws, one = np.array([2, 2]), np.ones(2)
    assert third_moment(3 * one, 5 * one, 9 * one, draws, 0.25 * one) is None
    sums, squares, cubes = np.array([6.0]), np.array([18.0]), np.array([66.0])  # 1, 1 and 4
    third = third_moment(sums, squares, cubes, np.array([3]), np.array([1 / 3]))
    assert third == pytest.approx(9 / 2 * (2 * (-1) ** 3 + 2**3) / 27)


def test_large_shapes_are_expanded() -> None:
    """On either side of the switch the reach is the same function; without an event it is the normal one."""
    errors = [math.sqrt(_LARGE_SHAPE * (1 + sign * 1e-6)) for sign in (-1, 1)]
    below, above = (_reach(error, None, 1.0, 0.025) for error in errors)
    assert below == pytest.approx(above, abs=3e-3)
    below, above = (_reach(error, -(error**2), 1e-9, 0.025) for error in errors)
    assert below == pytest.approx(above, abs=3e-3)
    assert _reach(1.0, 0.0, 0.0, 0.025) == pytest.approx(Z)
    for third in (None, 0.0):
        assert _reach(0.0, third, 1.0, 0.025) == pytest.approx(-math.log(0.025))
        assert _reach(0.0, third, 0.0, 0.025) == 0


def test_skewness_moves_both_ends_to_its_side() -> None:
    """As for a gamma law: rare large draws above the mean leave more room above than below."""
    values = np.repeat([2.0, 3.0], [950, 50])
    low, high = of_one_stratum(values, (1, 9))
    symmetric = bounded_mean_interval(
        values.mean(), values.std(ddof=1) / math.sqrt(1_000), 0.0, values[:1] * 0 + values.mean(),
        np.array([1_000]), 1e-3, (1, 9), 0.95,
    )  # fmt: skip
    assert low > symmetric[0]
    assert high > symmetric[1]


def test_third_moments_are_at_most_the_cube_of_the_error() -> None:
    """As of a gamma law; between them the reach grows with the third moment."""
    for error in (0.5, 2.0):
        for sign in (-1, 1):
            assert _reach(error, sign * 100.0, 0.3, 0.025) == _reach(error, sign * error**3, 0.3, 0.025)
        reaches = [_reach(error, share * error**3, 0.3, 0.025) for share in (-1, 0, 1)]
        assert reaches == sorted(set(reaches))


def test_texts_that_accept_everything() -> None:
    """8 prompts of 5 calls each: 40 calls without an event.  The partner, Student's t, has width zero."""
    found = over_texts([15.0] * 8, [5] * 8, 2)
    assert found.standard_error == 0
    assert found.interval == pytest.approx((3 + 2 * math.log(0.025) / 40, 3))

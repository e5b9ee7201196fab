"""χ² tests of samplers: what they reject, their power, and the samples that they need."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spectheory import instances, sampled_verdict
from spectheory.auditing.verdicts.chi_squared import noncentrality, samples_needed
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.pairs.pair import ModelPair
from user_samplers import forgets_the_residual, token_sampler


@pytest.mark.deep
def test_a_sampler_that_cannot_be_enumerated_gets_a_test() -> None:
    """Right ones pass, wrong ones are rejected, and the power is that of the sample."""
    pair = instances.two_token(1)
    right = sampled_verdict(token_sampler, pair, samples=5_000, seed=1)
    assert not right.is_rejected
    assert right.p_value > 0.001
    wrong = sampled_verdict(forgets_the_residual, pair, samples=5_000, seed=1)
    assert wrong.is_rejected
    assert right.detectable < 1 / 9 < wrong.detectable * 4
    assert sampled_verdict(token_sampler, pair, samples=20_000).detectable == pytest.approx(
        right.detectable / 2
    )


@pytest.mark.deep
def test_the_stated_power_is_there() -> None:
    """A defect of exactly the detectable size is found in 99 of 100 runs at least, by simulation."""
    pair = instances.uniform_equal(1)
    size = sampled_verdict(token_sampler, pair, samples=400).detectable

    def tilted(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        # The draft decides nothing: half of the mass moved away from one outcome is moved to another.
        token = int(paths[0, 0])
        chance = 0.5 + 2 * size if token == 0 else 0.5
        return [token, int(generator.random() >= chance)]

    found = [sampled_verdict(tilted, pair, samples=400, seed=seed).is_rejected for seed in range(100)]
    assert sum(found) >= 95


def test_too_few_samples_are_refused() -> None:
    """The approximation of the test needs five expected counts everywhere."""
    with pytest.raises(InvalidInputError, match="samples are too few"):
        sampled_verdict(token_sampler, instances.two_token(3), samples=50)


@pytest.mark.parametrize("returned", [None, 3, ["a"], [0.5]])
def test_samplers_that_return_no_tokens(returned: Any) -> None:
    with pytest.raises(InvalidOutcomeError, match="expected token ids"):
        sampled_verdict(lambda *_: returned, instances.two_token(1), samples=100)


def test_samplers_that_raise() -> None:
    with pytest.raises(InvalidOutcomeError, match=r"ZeroDivisionError.*test_chi_squared.py, line"):
        sampled_verdict(lambda *_: 1 // 0, instances.two_token(1), samples=100)  # type: ignore[arg-type,return-value]


@pytest.mark.deep
def test_outputs_are_completed_with_the_targets_own_rows() -> None:
    """A right sampler passes where the rows depend on the context, and every path is an outcome."""
    right = sampled_verdict(token_sampler, instances.sticky_chain(2), samples=20_000, seed=2)
    assert not right.is_rejected
    assert right.degrees_of_freedom == 2**3 - 1


def test_an_output_that_the_target_never_makes_is_enough() -> None:
    """One such token in thousands moves no χ² over the possible outcomes."""
    pair = ModelPair.context_free_pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], draft_length=1)

    def rarely_impossible(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        return [int(paths[0, 0]), 2 if generator.random() < 1e-3 else int(generator.integers(2))]

    found = sampled_verdict(rarely_impossible, pair, samples=10_000, seed=1)
    assert found.is_rejected
    assert (found.statistic, found.p_value) == (float("inf"), 0.0)


def test_no_test_needs_fewer_samples_than_the_distance_allows() -> None:
    """The power of n samples is at most the level plus 1 - (1 - d)^n; the χ² formula alone promises more."""
    found = np.array([0.5 - 1e-7, 0.5, 1e-7])
    wanted = np.array([0.5 - 2e-12, 0.5, 2e-12])
    needed = samples_needed(found, wanted, Fraction(0))
    assert needed is not None
    assert 0.01 + 1 - (1 - 1e-7) ** needed >= 0.99
    assert noncentrality(2, 0.01, 0.99) / ((found - wanted) ** 2 / wanted).sum() < needed / 100

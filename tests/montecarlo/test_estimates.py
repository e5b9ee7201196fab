"""Means, errors and intervals from sums by stratum."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from spectheory import instances
from spectheory.montecarlo import simulate_enumerated
from spectheory.montecarlo.estimates import stratified


def test_interval_is_as_wide_as_its_confidence() -> None:
    """Half width = quantile x standard error, for both estimators."""
    for confidence in (0.5, 0.95, 0.999):
        simulation = simulate_enumerated(
            instances.two_token(2), ["block"], samples=500, confidence=confidence
        )
        estimate = simulation.estimates[0]
        width = NormalDist().inv_cdf((1 + confidence) / 2)
        low, high = estimate.interval
        assert high - estimate.block_efficiency == pytest.approx(width * estimate.standard_error)
        assert estimate.block_efficiency - low == pytest.approx(width * estimate.standard_error)
        low, high = estimate.counted_interval
        assert (high - low) / 2 == pytest.approx(width * estimate.counted_standard_error)


def test_stratified_mean_and_error() -> None:
    """By numpy on the draws themselves: mean of stratum means, sqrt(Σ s²/n) / strata."""
    draws = np.random.default_rng(0).normal(size=(7, 3)) + np.array([0.0, 5.0, -2.0])
    mean, error = stratified(draws.sum(axis=0), (draws**2).sum(axis=0), len(draws))
    assert mean == pytest.approx(draws.mean(axis=0).mean())
    assert error == pytest.approx(np.sqrt((draws.var(axis=0, ddof=1) / 7).sum()) / 3)
    pooled = draws.std(ddof=1) / np.sqrt(draws.size)
    assert error < pooled / 2  # the spread between strata is no error of their mean

"""The passes over pairs against the same formulas in whole arrays."""

from math import inf, nan

import numpy as np
import pytest

from spectheory.optima.interval import row_passes
from spectheory.optima.interval.row_passes import SlackDirection, Weights

BINS, SEGMENTS = 7, 13


class Case:
    """Random arrays of every kind that the passes read."""

    def __init__(self, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.pi, self.s = rng.uniform(0.1, 2.0, (2, BINS, SEGMENTS))
        self.targets = rng.normal(size=(BINS, SEGMENTS)).astype(np.float32)
        self.direction = SlackDirection(
            np.sort(rng.random(SEGMENTS))[::-1].copy(), *(rng.normal(size=n) for n in (BINS, SEGMENTS, BINS))
        )
        self.aim = Weights(rng.random(BINS), rng.random(SEGMENTS), 0.01)
        self.weights = np.outer(self.aim.bins, self.aim.widths) + self.aim.even
        self.rows, self.columns = rng.normal(size=(2, BINS)), rng.normal(size=(2, SEGMENTS))

    @property
    def delta_s(self) -> np.ndarray:
        slopes, alpha, beta, scores = self.direction
        return alpha[:, None] + beta - np.outer(scores, slopes)

    @property
    def sigma(self) -> np.ndarray:
        return self.delta_s / self.s


def same(found: np.ndarray, expected: np.ndarray, within: float = 1e-12) -> None:
    """Up to rounding; the partner is an entry that is off by a million times as much."""
    assert found.shape == expected.shape
    assert found == pytest.approx(expected, rel=within, abs=within)
    wrong = expected.copy()
    wrong.flat[-1] += 1e6 * within
    assert found != pytest.approx(wrong, rel=within, abs=within)


def test_row_moments() -> None:
    case = Case()
    scaled_theta, of_rows, of_columns = (
        np.empty((BINS, SEGMENTS)),
        np.empty((BINS, 5)),
        np.zeros((2, SEGMENTS)),
    )
    row_passes.row_moments(case.pi, case.s, case.direction.slopes, scaled_theta, of_rows, of_columns)
    ratio, slopes = case.pi / case.s, case.direction.slopes
    totals = ratio.sum(axis=1)
    means = ratio @ slopes / totals
    spread = ratio * (slopes - means[:, None])
    same(scaled_theta, ratio / np.sqrt(totals)[:, None])
    moments = (
        totals,
        means,
        (spread * (slopes - means[:, None])).sum(axis=1),
        case.pi.sum(axis=1),
        case.pi @ slopes,
    )
    same(of_rows, np.stack(moments, axis=1))
    same(of_columns, np.stack([ratio.sum(axis=0), case.pi.sum(axis=0)]))

    bins, places, spread_at = np.array([0, 1, 2, 4, 6]), np.array([0, 2, 3, 6, 4]), np.zeros((BINS, SEGMENTS))
    row_passes.spread_rows(scaled_theta, slopes, of_rows, bins, places, spread_at)
    same(spread_at[places], spread[bins])
    assert not spread_at[[1, 5]].any()


def check_targets(case: Case, written: tuple[np.ndarray, ...], expected: np.ndarray) -> None:
    targets, of_rows, of_columns = written
    same(targets, expected, 1e-6)  # which are kept in float32
    goals = case.pi * targets
    same(of_rows, np.stack([goals.sum(axis=1), goals @ case.direction.slopes], axis=1))
    same(of_columns, goals.sum(axis=0))


def test_corrected_targets() -> None:
    """(aim - π s - Δπ Δs) / (π s), with the predictor's Δπ = -π - θ Δs."""
    case = Case()
    written = np.empty((BINS, SEGMENTS), np.float32), np.empty((BINS, 2)), np.zeros(SEGMENTS)
    row_passes.corrected_targets(case.pi, case.s, case.direction, case.aim, *written)
    delta_pi, products = -case.pi - case.pi / case.s * case.delta_s, case.pi * case.s
    check_targets(case, written, (case.weights - products - delta_pi * case.delta_s) / products)


@pytest.mark.parametrize("rows", [BINS, 1])
def test_recentred_targets(rows: int) -> None:
    """Products of the trial point are pulled into [0.1, 10] times their aim, and down by at most 10."""
    case = Case()
    present = case.targets[:rows]
    written = np.empty((BINS, SEGMENTS), np.float32), np.empty((BINS, 2)), np.zeros(SEGMENTS)
    row_passes.recentred_targets(case.pi, case.s, case.direction, present, 0.4, 0.6, case.aim, *written)
    products = case.pi * case.s
    trial = (case.pi + 0.4 * case.pi * (present - case.sigma)) * (case.s + 0.6 * case.delta_s)
    pull = np.clip(trial, 0.1 * case.weights, 10 * case.weights) - trial
    limited = np.maximum(pull, -10 * case.weights)
    assert (limited > pull).any()  # every branch is met
    assert (pull > 0).any()
    assert (pull == 0).any()
    check_targets(case, written, present + limited / products)
    nodes = np.empty(SEGMENTS)  # as if the first bin's products were those of nodes
    row_passes.recentred_nodes(products[0], trial[0], case.weights[0], case.targets[0], nodes)
    same(nodes, (case.targets + limited / products)[0])


def test_least_ratios() -> None:
    """By segment; one row of targets stands for equal rows, and NaN is kept wherever it is."""
    case = Case()
    for targets in (case.targets, case.targets[:1]):
        least = np.full((2, SEGMENTS), inf)
        row_passes.least_ratios(case.s, case.direction, targets, least)
        same(least, np.stack([(targets - case.sigma).min(axis=0), case.sigma.min(axis=0)]))
    for row in (0, 3, BINS - 1):
        spoilt, least = case.s.copy(), np.full((2, SEGMENTS), inf)
        spoilt[row, 2] = nan
        row_passes.least_ratios(spoilt, case.direction, case.targets, least)
        assert np.isnan(least).sum(axis=1).tolist() == [1, 1]
        assert np.isnan(least[:, 2]).all()


@pytest.mark.parametrize("rows", [BINS, 1])
def test_move_pairs(rows: int) -> None:
    case = Case()
    targets = case.targets[:rows]
    expected = case.pi + 0.4 * case.pi * (targets - case.sigma), case.s + 0.6 * case.delta_s
    row_passes.move_pairs(case.direction, targets, 0.4, 0.6, case.pi, case.s)
    for new, numbers in zip((case.pi, case.s), expected, strict=True):
        same(new, numbers)


def test_products() -> None:
    case = Case()
    products = np.zeros((2, SEGMENTS))
    row_passes.column_products(case.pi, *case.rows, products)
    same(products, case.rows @ case.pi)
    products = np.empty((2, BINS))
    row_passes.row_products(case.pi, *case.columns, products)
    same(products, case.columns @ case.pi.T)

"""Couplings: every plan splits the law of the score, and the tilted cuts meet the levels."""

import numpy as np
import pytest
from hypothesis import given

from score_rules import node_of, nodes
from spectheory.verification.algorithms.path_selection import score_couplings
from spectheory.verification.algorithms.path_selection.coupling_loops import cut_and_tilt
from spectheory.verification.algorithms.path_selection.score_couplings import (
    RESOLUTION,
    Coupling,
    independent,
    intervals,
    tilted_cuts,
)
from spectheory.verification.algorithms.path_selection.score_levels import (
    ScoreNode,
    lazy_levels,
    proportional_levels,
)

COUPLINGS: dict[str, Coupling] = {"independent": independent, "intervals": intervals, "cuts": tilted_cuts}


def in_float(node: ScoreNode) -> ScoreNode:
    return ScoreNode(*(np.asarray(array, dtype=float) for array in node))


@pytest.mark.parametrize("name", COUPLINGS)
@given(node=nodes)
def test_every_plan_splits_the_law(name: str, node: ScoreNode) -> None:
    """Σ_x q_x μ_x = μ exactly, whatever the levels, and μ_x is a law; in float64 up to rounding."""
    mass = node.draft_masses > 0
    for levels in (lazy_levels(node), node.demands * 3 + 1):
        plan = COUPLINGS[name](node, levels)
        assert ((node.draft_masses[..., None] * plan).sum(1) == node.masses).all()
        assert (plan[mass] >= 0).all()
        assert (plan[mass].sum(-1) == 1).all()
        rounded = COUPLINGS[name](in_float(node), levels.astype(float))
        total = (node.draft_masses.astype(float)[..., None] * rounded).sum(1)
        np.testing.assert_allclose(total, node.masses.astype(float), rtol=0, atol=1e-12)
        assert (rounded[mass] >= 0).all()


@given(node=nodes)
def test_tilted_cuts_meet_feasible_levels(node: ScoreNode) -> None:
    """∫ φ dμ_x = R_x exactly, for both rules of levels."""
    mass = node.draft_masses > 0
    for levels in (lazy_levels(node), proportional_levels(node)):
        found = (tilted_cuts(node, levels) * node.win_rates[:, None]).sum(-1)
        assert (found[mass] == levels[mass]).all()


def random_node(seed: int, unevenness: float) -> ScoreNode:
    """64 contexts of 24 tokens and 32 cells, some tokens never drafted."""
    rng = np.random.default_rng(seed)
    drafted = rng.dirichlet(np.full(24, unevenness), size=64) * (rng.random((64, 24)) < 0.8)
    demands = -np.sort(-rng.gamma(0.5, 2, size=(64, 24)), axis=-1)
    edges = np.arange(33) / 32
    rates = np.broadcast_to((edges[1:] ** 4 - edges[:-1] ** 4) * 32, (64, 32))
    masses = rng.dirichlet(np.full(32, 2 * unevenness), size=64)
    return ScoreNode.of(drafted / drafted.sum(-1, keepdims=True), demands, masses, rates)


@pytest.mark.parametrize("unevenness", [0.1, 0.5, 2])
def test_the_loop_cuts_and_tilts_as_the_arrays_do(unevenness: float) -> None:
    """It splits the law, has the same means, and is as wide; single plans may differ where cuts tie."""
    for seed in range(3):
        node = random_node(seed, unevenness)
        levels = lazy_levels(node)
        plans = tilted_cuts(node, levels), cut_and_tilt(node, levels, RESOLUTION)
        weights, rates = node.draft_masses, node.win_rates[:, None]
        for plan in plans:
            assert plan.min() >= 0
            np.testing.assert_allclose((weights[..., None] * plan).sum(1), node.masses, rtol=0, atol=1e-13)
            np.testing.assert_allclose(weights * (plan * rates).sum(-1), weights * levels, rtol=0, atol=1e-11)
        squares = [(weights[..., None] * plan * rates**2).sum() for plan in plans]
        assert squares[1] == pytest.approx(squares[0], rel=1e-9)
        same = abs(weights[..., None] * (plans[0] - plans[1])).max(axis=(1, 2)) < 1e-6
        assert same.mean() > (0.9 if unevenness > 0.1 else 0.4)


def test_partner_a_loop_that_cuts_elsewhere_is_seen() -> None:
    node = random_node(1, 0.5)
    levels = lazy_levels(node)
    wrong = cut_and_tilt(node, levels, 0.5)  # where half of a block counts as rounding
    assert abs(node.draft_masses * ((wrong * node.win_rates[:, None]).sum(-1) - levels)).max() > 1e-3


@given(node=nodes)
def test_an_accelerator_goes_through_all_rounds_for_the_same_plan(node: ScoreNode) -> None:
    """Rounds after the last mass is placed add nothing, so that nobody need look when that is."""
    for levels in (lazy_levels(node), node.demands * 3 + 1):
        with pytest.MonkeyPatch.context() as patch:
            expected = tilted_cuts(node, levels)
            patch.setattr(score_couplings, "on_host", lambda array: False)
            assert (tilted_cuts(node, levels) == expected).all()


def test_partner_levels_that_cannot_be_met() -> None:
    """Above the limits of the scores the means stay behind; the law is split all the same."""
    node = node_of([3, 1], [2, 2], [1, 1, 1], 3, 1)
    levels = lazy_levels(node) * 2
    found = (tilted_cuts(node, levels) * node.win_rates[:, None]).sum(-1)
    assert (found < levels).any()


def test_tilted_cuts_keep_the_laws_wider_than_intervals() -> None:
    """Two tokens of one level keep all scores; intervals part them."""
    node = node_of([1, 1], [1, 1], [1, 1, 1], 3, 1)
    assert (tilted_cuts(node, lazy_levels(node)) == node.masses[:, None]).all()
    assert (intervals(node, lazy_levels(node)) != node.masses[:, None]).any()

"""Couplings: every plan splits the law of the score, and the tilted cuts meet the levels."""

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from audits.own_rounds import interpreted_kernels
from compiled_kernels import compiled_for, compiled_module
from deep import first_is_quick
from random_nodes import random_node
from score_rules import node_of, nodes
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.foundation.errors import NoKernelsNotice
from spectheory.foundation.kernels import choice
from spectheory.verification.algorithms import path_selection
from spectheory.verification.algorithms.path_selection import coupling_loops
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
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath

COUPLINGS: dict[str, Coupling] = {"independent": independent, "intervals": intervals, "cuts": tilted_cuts}


FEW = 2
"""Contexts for Triton's interpreter, which takes half a second for each."""


def in_float(node: ScoreNode) -> ScoreNode:
    return ScoreNode(*(np.asarray(array, dtype=float) for array in node))


@first_is_quick("name", COUPLINGS)
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


KERNEL = "spectheory.verification.algorithms.path_selection.coupling_kernel"
Cuts = Callable[[ScoreNode, np.ndarray, float], np.ndarray]


@pytest.fixture(params=["loop", "kernel"])
def cuts(request: pytest.FixtureRequest) -> Cuts:
    """``tilted_cuts`` as the compiled loop, and as the Triton kernel in Triton's interpreter."""
    if request.param == "loop":
        return coupling_loops.cut_and_tilt
    kernel = interpreted_kernels(KERNEL)

    def interpreted(node: ScoreNode, levels: np.ndarray, smallest: float) -> np.ndarray:
        few = [torch.from_numpy(array[:FEW].copy()) for array in (*node, levels)]
        with interpreting():
            return kernel.cut_and_tilt(ScoreNode(*few[:-1]), few[-1], smallest).numpy()

    return interpreted


@first_is_quick("unevenness", [0.5, 0.1, 2], quick=6)
def test_loop_and_kernel_cut_and_tilt_as_the_arrays_do(cuts: Cuts, unevenness: float) -> None:
    """They split the law, have the same means, and are as wide; single plans may differ where cuts tie."""
    for seed in range(3 if cuts is coupling_loops.cut_and_tilt else 1):
        node = random_node(seed, unevenness)
        levels = lazy_levels(node)
        found = cuts(node, levels, RESOLUTION)
        node, levels = ScoreNode(*(array[: len(found)] for array in node)), levels[: len(found)]
        plans = tilted_cuts(node, levels), found
        weights, rates = node.draft_masses, node.win_rates[:, None]
        for plan in plans:
            assert plan.min() >= 0
            np.testing.assert_allclose((weights[..., None] * plan).sum(1), node.masses, rtol=0, atol=1e-13)
            np.testing.assert_allclose(weights * (plan * rates).sum(-1), weights * levels, rtol=0, atol=1e-11)
        squares = [(weights[..., None] * plan * rates**2).sum() for plan in plans]
        assert squares[1] == pytest.approx(squares[0], rel=1e-9)
        same = abs(weights[..., None] * (plans[0] - plans[1])).max(axis=(1, 2)) < 1e-6
        assert same.mean() > (0.9 if unevenness > 0.1 else 0.4)


def test_partner_cuts_elsewhere_are_seen(cuts: Cuts) -> None:
    node = random_node(1, 0.5)
    levels = lazy_levels(node)
    wrong = cuts(node, levels, 0.5)  # where half of a block counts as rounding
    node, levels = ScoreNode(*(array[: len(wrong)] for array in node)), levels[: len(wrong)]
    assert abs(node.draft_masses * ((wrong * node.win_rates[:, None]).sum(-1) - levels)).max() > 1e-3


def test_the_kernel_compiles_for_a_device() -> None:
    """The interpreter takes what the compiler refuses."""
    node = node_of([3, 1], [2, 2], [1, 1, 1], 3, 1)
    given = [torch.from_numpy(array.astype(float)) for array in (*node, lazy_levels(node))]
    coupling_kernel = compiled_module(KERNEL)
    with compiled_for(coupling_kernel, capability=90) as compiled:
        coupling_kernel.cut_and_tilt(ScoreNode(*given[:-1]), given[-1], RESOLUTION)
    assert compiled == ["_plan_kernel"]


@pytest.mark.deep
def test_a_verifier_computes_with_the_kernel_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CUDA device; here in the interpreter, which is first held against what is known."""
    import_module(KERNEL)
    launched, kernel = [], interpreted_kernels(KERNEL)
    rows = torch.rand(2, 2, 2, 30, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    target_rows, draft_rows = rows[:, :1] / rows[:, :1].sum(-1, keepdim=True), rows[:, 1:, :1]
    given = torch.tensor([[[3], [7]], [[1], [1]]]), target_rows.expand(2, 2, 2, 30).contiguous()
    given = *given, (draft_rows / draft_rows.sum(-1, keepdim=True)).expand(2, 2, 1, 30).contiguous()
    expected = ScoredMultipath().outcome(*given).stop_probs

    def cut_and_tilt(*given: Any) -> torch.Tensor:
        launched.append(given)
        return kernel.cut_and_tilt(*given)

    seen = SimpleNamespace(fits=kernel.fits, cut_and_tilt=cut_and_tilt)
    monkeypatch.setattr(path_selection, "coupling_kernel", seen)
    monkeypatch.setattr(choice, "on_device_with_kernels", lambda *given: True)
    monkeypatch.setattr(choice, "plain_on_host", lambda *given: False)
    with interpreting():
        found = ScoredMultipath().outcome(*given).stop_probs
        monkeypatch.setattr(kernel, "cut_and_tilt", lambda *given: torch.ones(1, 2, 2))
        kernel._works_on.cache_clear()
        with pytest.warns(NoKernelsNotice, match="they give other numbers"):
            assert not kernel.fits(ScoreNode(*(array[:1] for array in launched[0][0])))
    assert len(launched) == 1
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_partner_levels_that_cannot_be_met() -> None:
    """Above the limits of the scores the means stay behind; the law is split all the same."""
    node = node_of([3, 1], [2, 2], [1, 1, 1], 3, 1)
    levels = lazy_levels(node) * 2
    found = (tilted_cuts(node, levels) * node.win_rates[:, None]).sum(-1)
    assert (found < levels).any()

"""The leaf law of an iterate is feasible and of sum 1, however inexact its transport is."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory import instances
from spectheory.bounds.context_tree import ContextTree
from spectheory.bounds.level_sets import LevelSets
from spectheory.programs.interval.breakpoints import first_breakpoints
from spectheory.programs.interval.interior_point import ChordProgram
from spectheory.programs.interval.live_tree import LiveTree


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("tilt", [False, True])
def test_the_transport_is_repaired(factor: float, tilt: bool) -> None:
    """Too little mass is made up for, too much is scaled down, row by row and column by column."""
    tree = ContextTree.of(instances.random_float(1, 3, 2, 1.0, 0.5))
    live = LiveTree.of(tree, 2, 1e-9)
    program = ChordProgram(live, 2, first_breakpoints(6, 2))
    pi = factor * program.point.pi
    if tilt:
        pi = pi * np.random.default_rng(0).uniform(0.2, 2.0, pi.shape)
    program.point = program.point._replace(pi=pi)
    law = live.leaf_law(program.bin_law)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    assert LevelSets.of(law, tree.draft_probs[-1], 2).is_feasible(1e-12)

"""A Newton step solves the equations that it linearises, one by one."""

import numpy as np
import pytest

from spectheory import instances
from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.interval.breakpoints import first_breakpoints
from spectheory.optima.interval.interior_point import ChordProgram
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.newton import NewtonSystem, Point, Step, Targets, Workspace
from spectheory.optima.interval.row_passes import SlackDirection


def residuals(program: ChordProgram, point: Point, targets: Targets, step: Step) -> dict[str, float]:
    """How far the step is from solving each of the linearised equations of ``newton``."""
    live, (slopes, alpha, beta, at_bins) = program.live, step.direction
    s = alpha[:, None] + beta - np.outer(at_bins, slopes)
    pi = point.pi * (targets.pairs - s / point.s)
    c = np.zeros(live.size + 1)
    z_of_children = np.zeros(live.size + 1)
    for node in range(1, live.size + 1):
        parent = live.parent[node - 1]
        c[node] = c[parent] + step.y[node - 1]
        z_of_children[parent] += live.target_conditionals[node - 1] * step.z[node - 1]
    r = np.zeros(live.size + 1)
    np.add.at(r, live.bin_node, pi @ slopes)
    for node in range(live.size, 0, -1):
        r[live.parent[node - 1]] += r[node]
    x = np.append(0.0, r[1:] - step.u)
    errors = {
        "u y": point.u * step.y + point.y * step.u - targets.u * point.u * point.y,
        "v z": point.v * step.z + point.z * step.v - targets.v * point.v * point.z,
        "path scores": at_bins - c[live.bin_node],
        "dual": step.y + step.z - z_of_children[1:],
        "rows": pi.sum(axis=1) - (live.bin_mass - point.pi.sum(axis=1)),
        "columns": pi.sum(axis=0) - (program.widths - point.pi.sum(axis=0)),
        "v": step.v - (live.target_conditionals * x[live.parent] - x[1:]),
    }
    return {name: float(abs(error).max()) for name, error in errors.items()}


BROKEN_BY = {
    "alpha": {"rows", "columns"},
    "beta": {"rows", "columns"},
    "scores": {"path scores", "rows", "columns"},
    "u": {"u y", "v"},
    "y": {"u y", "path scores", "dual"},
    "v": {"v z", "v"},
    "z": {"v z", "dual"},
}
"""The equations that a part of the step enters."""


@pytest.mark.parametrize("nodes", [3, 12, 2048])
@pytest.mark.parametrize("threshold", [1e-9, 0.02])
@pytest.mark.parametrize("segments", [1, 6])
def test_a_step_solves_its_equations(threshold: float, segments: int, nodes: int) -> None:
    """From a point whose marginals are off, in blocks of any size, for the predictor and random targets."""
    tree = ContextTree.of(instances.random_float(1, 3, 3, 1.0, 0.5))
    live, rng = LiveTree.of(tree, 2, threshold), np.random.default_rng(3)
    program = ChordProgram(live, 2, first_breakpoints(segments, 2))
    # both marginals still have one sum
    pi = program.point.pi * rng.uniform(0.9, 1.1, program.point.pi.shape)
    point = program.point._replace(pi=pi / pi.sum())
    system = NewtonSystem(live, program.slopes, program.widths, point, Workspace.of(live, segments, nodes))
    pairs, (u, v) = rng.normal(size=pi.shape).astype(np.float32), rng.normal(size=(2, live.size))
    goals = point.pi * pairs
    of_rows = np.stack([goals.sum(axis=1), goals @ program.slopes], axis=1)
    for targets in (system.predictor, Targets(pairs, of_rows, goals.sum(axis=0), u, v)):
        step = system.solve(targets)
        errors = residuals(program, point, targets, step)
        assert max(errors.values()) < 1e-10, errors
        for part, broken in BROKEN_BY.items():  # the partner
            of_turn = part in SlackDirection._fields
            spoilt = getattr(step.direction if of_turn else step, part).copy()
            spoilt[-1] += 1e-6
            direction = step.direction._replace(**{part: spoilt}) if of_turn else step.direction
            off = step._replace(direction=direction) if of_turn else step._replace(**{part: spoilt})
            errors = residuals(program, point, targets, off)
            assert {name for name, error in errors.items() if error > 1e-9} >= broken, part

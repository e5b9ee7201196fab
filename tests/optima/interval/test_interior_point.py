"""Iterates of the interior-point method: feasible however inexact, refined with room, finite or refused."""

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import SolverError
from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.interval.breakpoints import first_breakpoints
from spectheory.optima.interval.interior_point import ChordProgram
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.newton import NewtonSystem, Point, Step, Targets
from spectheory.pairs.pair import ModelPair


def small_program(draft_length: int = 2, num_drafts: int = 2, segments: int = 6) -> ChordProgram:
    tree = ContextTree.of(instances.random_float(1, 3, draft_length, 1.0, 0.5))
    live = LiveTree.of(tree, num_drafts, 1e-9)
    return ChordProgram(live, num_drafts, first_breakpoints(segments, num_drafts))


FAIR = ModelPair.context_free_pair([0.5, 0.5], [0.5, 0.5], 1)


def copied(point: Point) -> Point:
    return Point(*(array.copy() for array in point))


def same(one: Point, other: Point) -> bool:
    """To the last bit."""
    return all(np.array_equal(*arrays) for arrays in zip(one, other, strict=True))


def infeasibility(program: ChordProgram) -> dict[str, float]:
    """How far the iterate is from each of the equations of the two programs in ``ChordProgram``."""
    live, (pi, _, u, y, v, z) = program.live, program.point
    law, masses, of_children = np.zeros(live.size + 1), np.ones(live.size + 1), np.zeros(live.size + 1)
    np.add.at(law, live.bin_node, pi @ program.slopes)
    for node in range(live.size, 0, -1):
        law[live.parent[node - 1]] += law[node]
        of_children[live.parent[node - 1]] += live.target_conditionals[node - 1] * z[node - 1]
    for node in range(1, live.size + 1):
        masses[node] = live.target_conditionals[node - 1] * masses[live.parent[node - 1]] - v[node - 1]
    errors = {
        "rows": pi.sum(axis=1) - live.bin_mass,
        "columns": pi.sum(axis=0) - program.widths,
        "u": u - (law - masses)[1:],
        "dual": y + z - live.weights - of_children[1:],
    }
    return {name: float(abs(error).max()) for name, error in errors.items()}


@pytest.mark.parametrize("pair", [instances.random_float(1, 3, 3, 1.0, 0.5), FAIR])
def test_the_start_is_strictly_feasible(pair: ModelPair) -> None:
    """With room in every inequality, and also where no score differs from another."""
    live = LiveTree.of(ContextTree.of(pair), 2, 1e-9)
    program = ChordProgram(live, 2, first_breakpoints(6, 2))
    assert min(part.min() for part in program.point) > 1e-6
    assert max(infeasibility(program).values()) < 1e-12


def test_every_iterate_solves_the_equations_of_both_programs() -> None:
    """All to rounding, and s is of the form α + β - φ c; a spoilt iterate breaks those it is part of."""
    program = small_program(3, 3, 24)
    live = program.live
    for _ in range(12):
        program.step()
        errors = infeasibility(program)
        assert max(errors.values()) < 1e-12, errors
        scores = np.zeros(live.size + 1)
        for node in range(1, live.size + 1):
            scores[node] = scores[live.parent[node - 1]] + program.point.y[node - 1]
        additive = program.point.s + np.outer(scores[live.bin_node], program.slopes)  # α + β
        second_differences = additive - additive[:1] - additive[:, :1] + additive[0, 0]
        assert abs(second_differences).max() < 1e-12
    for part, broken in (
        ("pi", {"rows", "columns", "u"}),
        ("u", {"u"}),
        ("y", {"dual"}),
        ("v", {"u"}),
        ("z", {"dual"}),
    ):
        array = getattr(program.point, part)
        program.point = program.point._replace(**{part: array + 1e-6})
        assert {name for name, error in infeasibility(program).items() if error > 1e-9} == broken
        program.point = program.point._replace(**{part: array})


@pytest.mark.parametrize("part", ["pi", "s", "u", "y", "v", "z"])
def test_an_iterate_that_is_no_number_is_refused(part: str) -> None:
    program = small_program()
    array = getattr(program.point, part).copy()
    array.flat[0] = float("nan")
    program.point = program.point._replace(**{part: array})
    with pytest.raises(SolverError, match="not positive definite at machine precision"):
        program.step()


def test_a_step_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that could be factored may still have a solution out of float64's range."""
    program = small_program()
    solve = NewtonSystem.solve

    def no_number(system: NewtonSystem, targets: Targets) -> Step:
        return solve(system, targets)._replace(z=np.full(program.live.size, np.nan))

    monkeypatch.setattr(NewtonSystem, "solve", no_number)
    before = copied(program.point)
    with pytest.raises(SolverError, match="step is not finite"):
        program.step()
    assert same(program.point, before)

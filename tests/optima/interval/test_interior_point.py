"""Iterates of the interior-point method: feasible however inexact, refined with room, finite or refused."""

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import SolverError
from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.bounds.level_sets import LevelSets
from spectheory.optima.interval import interior_point
from spectheory.optima.interval.breakpoints import first_breakpoints
from spectheory.optima.interval.interior_point import ChordProgram, Pace, _predicted_gap
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.newton import NewtonSystem, Point, Step, Targets, Workspace
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


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("tilt", [False, True])
def test_the_transport_is_repaired(factor: float, tilt: bool) -> None:
    """Too little mass is made up for, too much is scaled down, row by row and column by column."""
    program = small_program()
    pi = factor * program.point.pi
    if tilt:
        pi = pi * np.random.default_rng(0).uniform(0.2, 2.0, pi.shape)
    program.point = program.point._replace(pi=pi)
    law = program.live.leaf_law(program.bin_law)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    assert LevelSets.of(law, program.live.tree.draft_probs[-1], 2).is_feasible(1e-12)


def test_more_breakpoints_keep_the_iterate_feasible_with_room() -> None:
    """Half of the tightest s of every segment stays, and π keeps its marginals and its law."""
    program = small_program(num_drafts=3)
    edges = program.edges
    for _ in range(6):
        program.step()
    assert program.restart is not program.point
    finer = np.sort(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])]))
    refined, start = program.refined(finer), program.restart
    kept = refined.point.s / np.repeat(start.s, 2, axis=1)
    assert kept.min(axis=0) == pytest.approx(0.5)  # no less, and in every segment no more than needed
    assert refined.point.pi.sum(axis=1) == pytest.approx(start.pi.sum(axis=1))
    program.point = start
    assert refined.bin_law == pytest.approx(program.bin_law)


def test_new_rows_are_made_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    program = small_program(num_drafts=3)
    for _ in range(6):
        program.step()
    finer = np.sort(np.concatenate([program.edges, 0.5 * (program.edges[1:] + program.edges[:-1])]))
    at_once = program.refined(finer).point
    monkeypatch.setattr(interior_point, "ROWS_AT_ONCE", 2)
    assert same(program.refined(finer).point, at_once)
    monkeypatch.setattr(interior_point, "ROWS_AT_ONCE", 0)
    with pytest.raises(ValueError, match="must not be zero"):  # the partner: it is read
        program.refined(finer)


@pytest.mark.parametrize("pace", [Pace.of(0), Pace.of(10**6)], ids=["small", "large"])
def test_new_breakpoints_start_from_an_iterate_of_a_larger_gap(
    pace: Pace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first from where the program started, then from a few times the gap before the latest step, in
    float32."""
    monkeypatch.setattr(interior_point, "LARGE", 10**9 if pace == Pace.of(0) else 0)
    program = small_program(3, 3, 24)
    assert program.pace == pace
    assert program.restart is program.point
    gaps, copies, numbers = [program.gap], [copied(program.point)], []
    for _ in range(16):
        program.step()
        restart = program.restart
        (number,) = (place for place, copy in enumerate(copies) if np.array_equal(copy.u, restart.u))
        numbers.append(number)
        for kept, was in zip(restart[:2], copies[number][:2], strict=True):
            assert kept.dtype == np.float32
            assert np.array_equal(kept, was.astype(np.float32))
        assert gaps[number] >= pace.retreat * gaps[-1] or number == 0
        assert gaps[number] <= 4 * pace.apart * pace.retreat * gaps[-1] or gaps[0] < pace.retreat * gaps[-1]
        gaps.append(program.gap)
        copies.append(copied(program.point))
    assert len(set(numbers)) > 2
    assert len(program._earlier) <= (5 if pace == Pace.of(0) else 3)


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


def test_the_predicted_gap_is_that_of_the_moved_point() -> None:
    """For any two lengths, also unequal ones, at a point with exact marginals."""
    program = small_program()
    for _ in range(3):
        program.step()
    point, workspace = program.point, Workspace.of(program.live, len(program.widths))
    system = NewtonSystem(program.live, program.slopes, program.widths, point, workspace)
    step = system.solve(system.predictor)
    _, alpha, beta, scores = step.direction
    by_s = alpha[:, None] + beta - np.outer(scores, program.slopes)
    by_pi = -point.pi * (1.0 + by_s / point.s)
    for primal, dual in ((0.3, 0.9), (0.9, 0.3), (0.5, 0.5), (1.0, 1.0)):
        u, v = point.u + primal * step.u, point.v + primal * step.v
        y, z = point.y + dual * step.y, point.z + dual * step.z
        moved = np.vdot(point.pi + primal * by_pi, point.s + dual * by_s) + u @ y + v @ z
        predicted = _predicted_gap(program.gap, point, step, primal, dual)
        assert predicted == pytest.approx(moved, rel=1e-10, abs=1e-13)


def test_the_weights_of_the_central_path_sum_to_the_total() -> None:
    """All products at their aims make a gap of aim times the total."""
    program = small_program()
    bins, widths, even = program._pair_aim(0.01)
    total = bins.sum() * widths.sum() + program.point.pi.size * even + 0.02 * program._node_weights.sum()
    assert total == pytest.approx(0.01 * program._total_weight, rel=1e-12)


def test_a_correction_that_is_no_number_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    program, uncorrected = small_program(), small_program()
    uncorrected.pace = uncorrected.pace._replace(corrections=0)
    uncorrected.step()
    solve, calls = NewtonSystem.solve, iter(range(99))

    def no_number_from_the_third(system: NewtonSystem, targets: Targets) -> Step:
        step = solve(system, targets)
        return step if next(calls) < 2 else step._replace(z=np.full_like(step.z, np.nan))

    monkeypatch.setattr(NewtonSystem, "solve", no_number_from_the_third)
    program.step()
    assert next(calls) == 3
    assert same(program.point, uncorrected.point)


def test_a_refined_program_starts_with_arrays_of_its_own() -> None:
    """Also where the iterate to start from is the one at hand."""
    program = small_program()
    for steps in (0, 6):
        for _ in range(steps):
            program.step()
        refined, content = program.refined(program.edges), copied(program.point)
        for _ in range(3):
            refined.step()
        assert same(program.point, content)


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

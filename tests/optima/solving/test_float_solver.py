"""Float solutions: statuses, signs of multipliers, bounds that hold for any multipliers."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from later import Later
from program_support import PAIRS, toy
from spectheory.foundation.errors import SolverError
from spectheory.optima import check_solution, multi_path_optimum, multi_path_program, solve, solve_exact
from spectheory.optima.solving.float_solver import UNKNOWN_STATUS, _run, certified_bounds
from spectheory.optima.solving.linear_program import CvxpyProgram
from spectheory.pairs.pair import ModelPair

cvxpy = Later("cvxpy")


def test_bounds_hold_for_bad_multipliers_and_points() -> None:
    """Any multipliers bound the optimum from above, any repaired point from below."""
    rng = np.random.default_rng(3)
    for pair in PAIRS[:60]:
        program = multi_path_program(pair.to_float(), 2)
        best = multi_path_optimum(pair, 2).value
        point = program.repair(program, rng.normal(0.5, 0.5, program.num_variables))
        lower, upper = certified_bounds(program, point, rng.normal(0.2, 0.5, program.num_constraints))
        assert Fraction(lower) <= best <= Fraction(upper)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_without_a_box_and_a_repair_nothing_is_bounded(direction: str) -> None:
    program = toy(direction, 1.0, [(1.0, "<=", 1.0)], exact=False)
    assert certified_bounds(program, np.ones(1), np.ones(1)) == (-math.inf, math.inf)


OTHER = "Problem data contains NaN or Inf."


@pytest.mark.parametrize("words", ["gave up", f"{UNKNOWN_STATUS}: Solution()", OTHER])
@pytest.mark.parametrize("without_presolve_too", [False, True])
def test_a_solver_that_fails(words: str, without_presolve_too: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again without presolve, then named; an error that is not of the solver stays what it is."""
    as_it_is = cvxpy.Problem.solve

    def solve_or_fail(problem: cvxpy.Problem, **options: Any) -> Any:
        if options["presolve"] == "on" or without_presolve_too:
            raise cvxpy.error.SolverError(words) if words == "gave up" else ValueError(words)
        return as_it_is(problem, **options)

    monkeypatch.setattr(cvxpy.Problem, "solve", solve_or_fail)
    program = toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False)
    if words == OTHER:
        with pytest.raises(ValueError, match="contains NaN"):
            solve(program)
    elif without_presolve_too:
        with pytest.raises(
            SolverError, match=rf"toy \(1 variables, 1 constraints\): HiGHS failed: {words[:6]}"
        ):
            solve(program)
    else:
        assert solve(program).value == pytest.approx(1)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize("sense", ["<=", ">=", "=="])
def test_multiplier_signs(direction: str, sense: str, exact: bool) -> None:
    """The multiplier is the rate of the optimum with the right-hand side, in every direction and sense."""
    objective = {"max": {"<=": 2.0, ">=": -2.0, "==": 2.0}, "min": {"<=": -2.0, ">=": 2.0, "==": 2.0}}
    program = toy(direction, objective[direction][sense], [(1.0, sense, 3.0)], exact)
    solution = solve_exact(program) if exact else solve(program)
    assert solution.value == pytest.approx(3 * objective[direction][sense])
    assert float(solution.dual["row 0"][0]) == pytest.approx(objective[direction][sense])
    check_solution(program, solution, 0 if exact else 1e-9)


def next_to_one() -> list[ModelPair]:
    """Models that agree on 10^-8 or so, next to nothing: the rounding of 1 + 10^-8 is no small part of it."""
    smalls = [Fraction(1 + 7 * number, 10**8) for number in range(30)]
    return [ModelPair.context_free_pair([1 - s, Fraction(0), s], [s, 1 - s, Fraction(0)], 1) for s in smalls]


@pytest.mark.parametrize("pairs", [next_to_one(), PAIRS[:24]], ids=["next to one", "random"])
def test_bounds_of_the_exact_solution_hold_to_the_last_bit(pairs: list[ModelPair]) -> None:
    """The exact point and multipliers as floats: the bounds lie around the exact value, and close to it."""
    for pair in pairs:
        exact, program = multi_path_optimum(pair, 2), multi_path_program(pair.to_float(), 2)
        point = program.repair(program, np.array(list(exact.primal.values()), dtype=float))
        multipliers = np.concatenate(list(exact.dual.values())).astype(float)
        lower, upper = certified_bounds(program, point, multipliers)
        assert Fraction(lower) <= exact.value <= Fraction(upper)
        assert upper - lower < 1e-10


def test_presolve_is_not_taken_at_its_word() -> None:
    tried = []

    def solve_stub(*, presolve: str, **settings: object) -> None:
        tried.append(presolve)
        problem.status = "infeasible" if presolve == "on" else "optimal"

    problem = SimpleNamespace(solve=solve_stub, status="")
    _run(toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False), CvxpyProgram(problem, None, {}))
    assert tried == ["on", "off"]


def test_what_a_variable_would_lose_pays_for_nothing() -> None:
    """max -x is 0: without multipliers the bound is 0, not -1, for x in [0, 1] may stay at 0."""
    program = replace(toy("max", -1.0, [(1.0, "<=", 1.0)], exact=False), box=1.0)
    upper = certified_bounds(program, np.zeros(1), np.zeros(1))[1]
    assert 0 <= upper < 1e-12

"""Float solutions: statuses, signs of multipliers, bounds that hold for any multipliers."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from later import Later
from program_support import PAIRS, toy
from spectheory import instances
from spectheory.foundation.errors import CertificationError, InvalidInputError, SolverError
from spectheory.optima import (
    block_transport_program,
    check_solution,
    lossy_program,
    multi_path_optimum,
    multi_path_program,
    on_path_program,
    optimum,
    otm_program,
    path_selection_program,
    single_path_program,
    solve,
    solve_exact,
)
from spectheory.optima.solving.float_solver import UNKNOWN_STATUS, certified_bounds
from spectheory.pairs.drafts import DraftProcess, PrefixTree, TopTree, WithoutReplacement
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


OTHER = "Problem data contains NaN or Inf."


@pytest.mark.parametrize("words", ["gave up", f"{UNKNOWN_STATUS}: Solution()", OTHER])
def test_a_solver_that_fails(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named; an error that is not of the solver stays what it is."""

    def fail(problem: cvxpy.Problem, **options: Any) -> None:
        raise cvxpy.error.SolverError(words) if words == "gave up" else ValueError(words)

    monkeypatch.setattr(cvxpy.Problem, "solve", fail)
    program = toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False)
    if words == OTHER:
        with pytest.raises(ValueError, match="contains NaN"):
            solve(program, solver="cvxpy")
    else:
        message = rf"toy \(1 variables, 1 constraints\): HiGHS failed: {words[:6]}"
        with pytest.raises(SolverError, match=message):
            solve(program, solver="cvxpy")


STATED = {
    "one path": single_path_program,
    "several paths": lambda pair: multi_path_program(pair, 2),
    "a tree": lambda pair: multi_path_program(pair, PrefixTree((2,) * pair.draft_length)),
    "path selection": lambda pair: path_selection_program(pair, 2),
    "lossy": lambda pair: lossy_program(pair, "1/10" if pair.is_exact else 0.1, 2),
    "block transport": block_transport_program,
    "optimal transport": lambda pair: otm_program(pair.target[0][0], pair.draft[0][0], 2),
    "on the path": lambda pair: on_path_program([pair], 2),
}


@pytest.mark.parametrize("name", STATED)
def test_cvxpy_and_highspy_agree_on_every_program(name: str) -> None:
    """The value, and multipliers that prove it; partner: another right-hand side has another value."""
    for seed in range(3):
        pair = instances.random_float([51, seed], 2, 1 + seed % 2)
        program = STATED[name](pair)
        own, other = solve(program), solve(program, solver="cvxpy")
        assert own.value == pytest.approx(other.value, abs=1e-8)
        for solution in (own, other):
            check_solution(program, solution, 1e-7)
    with pytest.raises(CertificationError):
        check_solution(program, replace(own, value=own.value + 1e-3), 1e-7)


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


def test_what_a_variable_would_lose_pays_for_nothing() -> None:
    """max -x is 0: without multipliers the bound is 0, not -1, for x in [0, 1] may stay at 0."""
    program = replace(toy("max", -1.0, [(1.0, "<=", 1.0)], exact=False), box=1.0)
    upper = certified_bounds(program, np.zeros(1), np.zeros(1))[1]
    assert 0 <= upper < 1e-12


def next_to_one() -> list[ModelPair]:
    """Models that agree on 10^-8 or so, next to nothing: the rounding of 1 + 10^-8 is no small part of it."""
    smalls = [Fraction(1 + 7 * number, 10**8) for number in range(30)]
    return [ModelPair.context_free_pair([1 - s, Fraction(0), s], [s, 1 - s, Fraction(0)], 1) for s in smalls]


@pytest.mark.parametrize("direction", ["max", "min"])
def test_without_a_box_and_a_repair_nothing_is_bounded(direction: str) -> None:
    program = toy(direction, 1.0, [(1.0, "<=", 1.0)], exact=False)
    assert certified_bounds(program, np.ones(1), np.ones(1)) == (-math.inf, math.inf)


def test_cvxpy_reports_another_status() -> None:
    with pytest.raises(SolverError, match="expected status optimal, got infeasible"):
        solve(toy("max", 1.0, [(1.0, "<=", 1.0), (1.0, ">=", 2.0)], exact=False), solver="cvxpy")
    with pytest.raises(InvalidInputError, match="solver must be one of highspy, cvxpy, got 'glpk'"):
        solve(toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False), solver="glpk")  # type: ignore[arg-type]


@pytest.mark.parametrize("drafts", [1, 2, PrefixTree((2, 1)), WithoutReplacement((2, 1)), TopTree((2, 1))])
def test_the_optimum_of_cvxpy_is_the_optimum(drafts: int | DraftProcess) -> None:
    """The program with all antichains, in floats, against closed forms and added antichains; of another
    number of drafts it is another number."""
    pair = instances.random_rational(5, 2, 2)
    stated, best = optimum(pair, drafts, solver="cvxpy"), optimum(pair, drafts)
    assert stated.lower <= best.value <= stated.upper
    assert stated.upper - stated.lower < 1e-7
    assert abs(optimum(pair, 5, solver="cvxpy").value - stated.value) > 1e-3


@pytest.mark.parametrize("pairs", [next_to_one(), PAIRS[:24]], ids=["next to one", "random"])
def test_bounds_of_the_exact_solution_hold_to_the_last_bit(pairs: list[ModelPair]) -> None:
    """The exact point and multipliers as floats: the bounds lie around the exact value, and close to it."""
    for pair in pairs:
        exact = multi_path_optimum(pair, 2)
        program = multi_path_program(pair.to_float(), 2, exact.members)
        point = program.repair(program, np.array(list(exact.primal.values()), dtype=float))
        multipliers = np.concatenate(list(exact.dual.values())).astype(float)
        lower, upper = certified_bounds(program, point, multipliers)
        assert Fraction(lower) <= exact.value <= Fraction(upper)
        assert upper - lower < 1e-10

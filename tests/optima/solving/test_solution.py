"""Solutions are checked against the statement."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from program_support import TWO_TOKENS, toy
from spectheory.foundation.errors import CertificationError, InvalidInputError
from spectheory.optima import (
    LinearProgram,
    Solution,
    check_solution,
    multi_path_optimum,
    multi_path_program,
    single_path_optimum,
    single_path_program,
)
from spectheory.optima.solving.solution import optimality_residuals
from spectheory.pairs.pair import ModelPair


def test_a_wrong_primal_is_rejected() -> None:
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 2)
    program, solution = single_path_program(pair), single_path_optimum(pair)
    lowered = {label: value if not label else value - value for label, value in solution.primal.items()}
    wrong = dataclasses.replace(solution, primal=lowered, value=Fraction(1))
    assert optimality_residuals(program, wrong).primal == 0
    with pytest.raises(CertificationError):
        check_solution(program, wrong)
    with pytest.raises(InvalidInputError, match="other variables or blocks"):
        check_solution(multi_path_program(ModelPair.context_free_pair(*TWO_TOKENS, 1), 2), solution)


def test_a_solution_on_some_antichains_belongs_to_the_program_with_these() -> None:
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 2)
    found = multi_path_optimum(pair, 2)
    check_solution(multi_path_program(pair, 2, members=found.members), found)
    with pytest.raises(InvalidInputError, match="members="):
        check_solution(multi_path_program(pair, 2), found)


def of_toy(
    program: LinearProgram, point: float, multipliers: list[float], value: float | None = None
) -> Solution:
    """A claim about a program in one variable: a point, one multiplier per row and a value."""
    number = Fraction if program.is_exact else float
    dual = [np.array([number(y)], dtype=object if program.is_exact else float) for y in multipliers]
    return Solution(
        program=program.name,
        method="by hand",
        value=number(program.objective[0] * number(point) if value is None else value),
        primal={"x": number(point)},
        dual=dict(zip([block.name for block in program.blocks], dual, strict=True)),
        gap=number(0),
        arithmetic=program.arithmetic,
        lower=0.0,
        upper=0.0,
    )


CLAIMS = [
    # direction, c, rows (a, sense, b), x, y, the value claimed, the residuals that are not 0
    ("max", 1, [(1, "<=", 1)], 1, [1], 1, {}),
    ("min", 1, [(1, ">=", 1)], 1, [1], 1, {}),
    ("max", 1, [(1, "==", 1)], 1, [1], 1, {}),
    ("max", -1, [(1, "<=", 0)], 0, [0], 0, {}),
    ("max", 1, [(1, "<=", 1)], 3, [1], 3, {"primal": 2, "complementarity": 2, "gap": 2}),
    ("min", 1, [(1, ">=", 3)], 1, [1], 1, {"primal": 2, "complementarity": 2, "gap": 2}),
    ("max", 0, [(1, "==", 1)], 3, [0], 0, {"primal": 2}),
    ("max", 0, [(1, "==", 3)], 1, [0], 0, {"primal": 2}),
    ("max", 0, [(1, "<=", 1)], -2, [0], 0, {"primal": 2}),
    ("max", -1, [(1, "<=", 0)], 0, [-1], 0, {"dual": 1}),
    ("min", 1, [(1, ">=", 0)], 0, [-1], 0, {"dual": 1}),
    ("max", 1, [(1, "<=", 0)], 0, [0], 0, {"dual": 1}),
    ("min", -1, [(1, ">=", 0)], 0, [0], 0, {"dual": 1}),
    ("max", 1, [(1, "<=", 1)], 0, [1], 0, {"complementarity": 1, "gap": 1}),
    ("max", 1, [(1, "<=", 1)], 1, [2], 1, {"complementarity": 1, "gap": 1}),
    ("max", 1, [(1, "<=", 1)], 1, [1], 2, {"value": 1}),
]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("direction", "objective", "rows", "point", "multipliers", "value", "wrong"), CLAIMS)
def test_each_residual_is_seen(
    direction: str,
    objective: float,
    rows: list[tuple[float, str, float]],
    point: float,
    multipliers: list[float],
    value: float,
    wrong: dict[str, float],
    exact: bool,
) -> None:
    """Of programs in one variable: x ≥ 0, rows of every sense, signs of multipliers, c - Ay, products, gap
    and value, each broken as alone as it can be; the first four claims are right."""
    program = toy(direction, objective, rows, exact)
    solution = of_toy(program, point, multipliers, value)
    residuals = vars(optimality_residuals(program, solution))
    assert {kind: size for kind, size in residuals.items() if size > 0} == wrong
    if wrong:
        with pytest.raises(CertificationError, match=f"the {next(iter(wrong))} residual"):
            check_solution(program, solution)
        check_solution(program, solution, max(wrong.values()))
    else:
        check_solution(program, solution)


@pytest.mark.parametrize("place", ["point", "multiplier", "value"])
def test_a_nan_is_refused(place: str) -> None:
    program = toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False)
    nan = float("nan")
    claim = {"point": (nan, [1.0], 1.0), "multiplier": (1.0, [nan], 1.0), "value": (1.0, [1.0], nan)}[place]
    with pytest.raises(CertificationError, match="residual is nan"):
        check_solution(program, of_toy(program, *claim), tolerance=10.0)

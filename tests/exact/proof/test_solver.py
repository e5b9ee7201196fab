"""Questions to the solver, in a process of its own, and certificates without it."""

from typing import Any

import pytest

from spectheory.exact.proof.certificates import certificate
from spectheory.exact.proof.rational_functions import NEGATIVE, POSITIVE, ZERO, RationalFunctions
from spectheory.exact.proof.solver import RealSolver

FIELD = RationalFunctions(["x", "y", "z"])
x, y, z = (function.numerator for function in FIELD.variables)


def condition(polynomial: Any, mask: int) -> tuple[Any, int]:
    return FIELD.factor(polynomial), mask


INSIDE = [condition(x, POSITIVE), condition(y, POSITIVE), condition(1 - x - y, NEGATIVE)]
"""x, y > 0 and x + y < 1: the factor has a positive leading coefficient."""
EMPTY = [*INSIDE, condition(2 * x * y - 1, ZERO)]
THIN = [*INSIDE, condition(5 * x * y - 1, ZERO)]


def test_answers() -> None:
    solver = RealSolver(1)
    assert solver.decide(EMPTY) == ("unsat", {})
    assert solver.smallest_core(solver.core([condition(z, POSITIVE), *EMPTY]))[-1] == EMPTY[-1]
    answer, values = solver.decide(THIN)
    assert answer == "sat"
    assert 5 * values[0] * values[1] == 1
    assert solver.core(THIN) == []


def test_a_solver_that_ends_is_started_again() -> None:
    """The question that it was asked is not answered, and the next one is."""
    solver = RealSolver(1)
    assert solver.decide(EMPTY)[0] == "unsat"
    assert solver._process is not None
    solver._process.kill()
    solver._process.wait()
    assert solver.decide(EMPTY) == ("unknown", {})
    assert solver.decide(EMPTY)[0] == "unsat"


def test_a_limit_of_steps() -> None:
    """Whatever the machine does besides; the partner has more steps."""
    hard = [*INSIDE, condition(z * z - x * y, ZERO), condition(x * x * z - y * z * z - 7 * x + y, ZERO)]
    hard.append(condition(z, POSITIVE))
    assert RealSolver(1e-6).decide(hard)[0] == "unknown"
    assert RealSolver(10).decide(hard)[0] != "unknown"


@pytest.mark.parametrize("power", [2, 3, 4])
def test_certificates_have_products_of_a_total_degree(power: int) -> None:
    """(x + y)^k ≥ 1 is false below x + y = 1, by a product of k conditions; ≥ 0 is not."""
    polynomial = (x + y) ** power + x * y**3
    false = [*INSIDE, condition(polynomial - 2, POSITIVE)]
    assert certificate(false, None) is None
    assert certificate(false, 4) is not None
    assert certificate([*INSIDE, condition(polynomial - z, POSITIVE)], 4) is None

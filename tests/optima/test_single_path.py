"""The single-path program: golden values, and its closed form against the solver."""

from dataclasses import replace
from fractions import Fraction

import pytest

from program_support import TWO_TOKENS
from spectheory import instances
from spectheory.foundation.errors import CertificationError
from spectheory.optima import optimum, single_path_optimum, single_path_program, solve_exact
from spectheory.optima.solving.solution import check_solution
from spectheory.pairs.pair import ModelPair


@pytest.mark.parametrize(
    ("draft_length", "value"),
    [(1, "5/3"), (2, "20/9"), (3, "8/3"), (4, "247/81"), (8, "26945/6561")],
)
def test_single_path_two_tokens(draft_length: int, value: str) -> None:
    """theory.md §4: E[τ] of block verification is 11/9, 5/3, 166/81, 20384/6561 at L = 2, 3, 4, 8."""
    solution = optimum(ModelPair.context_free_pair(*TWO_TOKENS, draft_length))
    assert solution.value == Fraction(value)
    assert solution.method == "single-path LP"
    assert Fraction(solution.lower) <= solution.value <= Fraction(solution.upper)
    assert solution.upper - solution.lower <= 1e-15
    assert (solution.status, solution.gap, solution.arithmetic) == ("optimal", 0, "exact")


@pytest.mark.parametrize("seed", range(6))
def test_the_closed_form_is_what_the_solver_finds(seed: int) -> None:
    """Random pairs, with zeros and ties: the same value, from points that prove each other optimal."""
    pair = instances.random_rational(seed, 2 + seed % 2, 3)
    solution, program = single_path_optimum(pair), single_path_program(pair)
    assert solution.value == solve_exact(program).value
    check_solution(program, solution)


def test_closed_form_partner_a_moved_budget_proves_nothing() -> None:
    """One budget a little lower, or one multiplier moved from one side to the other, is refused."""
    pair = instances.random_rational(1, 2, 2)
    solution, program = single_path_optimum(pair), single_path_program(pair)
    lowered = dict(solution.primal)
    lowered[(0, 1)] -= Fraction(1, 1000)
    moved = {name: values.copy() for name, values in solution.dual.items()}
    moved["prefix matching"][3] += Fraction(1, 1000)
    for wrong in (replace(solution, primal=lowered), replace(solution, dual=moved)):
        with pytest.raises(CertificationError):
            check_solution(program, wrong)

"""Statements of programs: what they refuse, and the cvxpy problem they become."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from program_support import TWO_TOKENS, toy
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import flint_if_exact
from spectheory.optima import ConstraintBlock, LinearProgram, multi_path_program, solve_exact
from spectheory.pairs.pair import ModelPair


def test_solve_exact_refuses_floats_and_statements_refuse_nonsense() -> None:
    with pytest.raises(InvalidInputError, match="holds floats"):
        solve_exact(toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False))
    with pytest.raises(InvalidInputError, match="sense must be"):
        toy("max", 1.0, [(1.0, "<", 1.0)], exact=False)
    with pytest.raises(InvalidInputError, match="direction must be"):
        toy("up", 1.0, [(1.0, "<=", 1.0)], exact=False)
    program = toy("max", 1.0, [(1.0, "<=", 1.0)], exact=True)
    with pytest.raises(InvalidInputError, match="mixed"):
        dataclasses.replace(program, objective=np.ones(1))
    with pytest.raises(InvalidInputError, match="no block"):
        program.block("nothing")


def test_cvxpy_problem_is_the_stated_program() -> None:
    program = multi_path_program(ModelPair.context_free_pair(*TWO_TOKENS, 2), 2)
    stated = program.to_cvxpy()
    assert list(stated.constraints) == [block.name for block in program.blocks]
    assert [c.size for c in stated.problem.constraints] == [block.size for block in program.blocks]
    assert [block.equation for block in program.blocks] == [
        "greedy2026 Eq. 11",
        "greedy2026 Eq. 11",
        "greedy2026 Eq. 12",
    ]
    A, senses, b, c = program.matrices
    assert A.shape == (program.num_constraints, program.num_variables)
    assert len(senses) == len(b) == program.num_constraints
    assert len(c) == program.num_variables


def test_rows_variables_and_names_that_are_none() -> None:
    """One past the last row, one past the last variable, and two blocks of one name."""
    program = toy("max", 1.0, [(1.0, "<=", 1.0), (1.0, ">=", 0.0)], exact=False)
    first, second = program.blocks
    with pytest.raises(ValueError, match="read-only"):  # a solver cannot change what it is asked
        first.rhs[0] = 2
    beyond = np.ones(1, dtype=int)
    with pytest.raises(InvalidInputError, match=r"row index is outside 0\.\.0"):
        dataclasses.replace(first, rows=beyond)
    with pytest.raises(InvalidInputError, match="names an unknown variable"):
        dataclasses.replace(program, blocks=(dataclasses.replace(first, columns=beyond), second))
    with pytest.raises(InvalidInputError, match="share a name"):
        dataclasses.replace(program, blocks=(first, first))


@pytest.mark.parametrize(("direction", "up"), [("max", 1), ("min", -1)])
def test_signs_of_multipliers(direction: str, up: int) -> None:
    """Of a maximum at least 0 for <=, at most 0 for >=, either for ==; of a minimum the other way."""
    program = toy(direction, 1.0, [(1.0, "<=", 1.0), (1.0, ">=", 0.0), (1.0, "==", 1.0)], exact=False)
    assert program.dual_signs().tolist() == [up, -up, 0]


def test_the_entries_of_a_row_are_added() -> None:
    """2 x + 3 x at x = 1, in floats and in rationals; the second block has the row below the first."""
    place = np.zeros(2, dtype=int)
    for one in (np.ones(2), np.array([Fraction(1)] * 2, dtype=object)):
        coefficients = one * 2
        coefficients[1] += 1
        block = ConstraintBlock("first", "-", "<=", place, place, coefficients, one[:1])
        assert block.activity(flint_if_exact(one[:1])).tolist() == [5]
        two = LinearProgram("toy", "-", "max", ("x",), one[:1], (block, dataclasses.replace(block, name="b")))
        assert two.matrices.A.toarray().tolist() == [[5.0], [5.0]]


def test_a_program_is_written_as_the_paper_displays_it() -> None:
    """The multi-path program of thirds, by hand: p = (1/3, 2/3), and two drafts of q = (2/3, 1/3)."""
    assert str(multi_path_program(instances.two_token(1), drafts=2)).splitlines() == [
        "multi-path antichain LP (3 variables, 7 constraints)",
        "max x() + 1/3 x(0,) + 2/3 x(1,)",
        "root budget, greedy2026 Eq. 11:",
        "    x() == 1",
        "monotone budgets, greedy2026 Eq. 11:",
        "    x() - x(0,) >= 0",
        "    x() - x(1,) >= 0",
        "prefix matching, greedy2026 Eq. 12:",
        "    x() <= 1",
        "    1/3 x(0,) <= 8/9",
        "    2/3 x(1,) <= 5/9",
        "    1/3 x(0,) + 2/3 x(1,) <= 1",
        "and all variables >= 0",
    ]


def test_the_text_of_a_large_program_is_cut() -> None:
    """It says how many rows and terms are left out; an objective of zeros is 0."""
    size = 14
    every, ones = np.arange(size), np.ones(size)
    apart = ConstraintBlock("apart", "-", ">=", every, every, -ones / 4, 0 * ones)
    together = ConstraintBlock("together", "-", "==", 0 * every, every, ones, np.ones(1))
    program = LinearProgram("many", "-", "min", tuple(range(size)), 0 * ones, (apart, together))
    _, objective, _, first, *_, left_out, _, row, _ = str(program).splitlines()
    assert (objective, first, left_out) == ("min 0", "    -0.25 x0 >= 0", "    .. and 2 more")
    assert row.startswith("    x0 + x1 + ")
    assert row.endswith(" + x11 + .. 2 more == 1")

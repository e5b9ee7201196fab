"""Rational solutions: tiny coefficients, singular bases and warm starts."""

from fractions import Fraction

import numpy as np
import pytest

from program_support import block_verification_value
from spectheory import instances
from spectheory.foundation.errors import CertificationError
from spectheory.optima import (
    ConstraintBlock,
    LinearProgram,
    multi_path_optimum,
    single_path_optimum,
    solve_exact,
)
from spectheory.optima.path_selection import path_selection_program
from spectheory.optima.solving.exact_solver import exact_solution, solve_exact_after
from spectheory.optima.solving.simplex import Simplex
from spectheory.pairs.pair import ModelPair


def rows_in_one_block(direction: str, sense: str, limits: list[Fraction]) -> LinearProgram:
    """The largest (smallest) x between 0 and every limit, a limit a row."""
    numbers, one = np.arange(len(limits)), np.array([Fraction(1)] * len(limits), dtype=object)
    rows = ConstraintBlock("limits", "-", sense, numbers, 0 * numbers, one, np.array(limits, dtype=object))
    return LinearProgram("toy", "-", direction, ("x",), one[:1], (rows,))


def test_points_that_prove_nothing_are_refused() -> None:
    """A feasible point and feasible multipliers of another value; the optimal ones pass."""
    program = rows_in_one_block("max", "<=", [Fraction(1)])
    assert exact_solution(program, [Fraction(1)], [Fraction(1)]).value == 1
    for point, multiplier in ((0, 1), (1, 2), (2, 1), (-1, 1), (1, -1)):
        with pytest.raises(CertificationError, match="residual"):
            exact_solution(program, [Fraction(point)], [Fraction(multiplier)])


def test_a_basis_that_is_singular_in_rationals_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    one, place = np.array([Fraction(1)] * 2, dtype=object), np.arange(2)
    rows = ConstraintBlock.of_terms(
        "rows", "-", "<=", one, (place, 0 * place, one), (place, 0 * place + 1, one)
    )
    program = LinearProgram("toy", "-", "max", ("x", "y"), one, (rows,))
    monkeypatch.setattr(Simplex, "basis", lambda _, program: [0, 1])
    assert solve_exact(program).value == 1


def test_tiny_probabilities_are_solved_by_exact_pivots() -> None:
    """HiGHS drops coefficients below 1e-9; the rational pivots put them back."""
    tiny = Fraction(1, 10**14)
    rng = np.random.default_rng(11)
    for _ in range(4):
        rows = []
        for _ in range(2):
            weights = [Fraction(int(w)) * (tiny if rng.random() < 0.5 else 1) for w in rng.integers(1, 9, 3)]
            rows.append([weight / sum(weights) for weight in weights])
        pair = ModelPair.context_free_pair(rows[0], rows[1], draft_length=2)
        assert single_path_optimum(pair).value == block_verification_value(pair)
        exact, floating = multi_path_optimum(pair, 2), multi_path_optimum(pair.to_float(), 2)
        assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)


def test_rows_added_at_the_end_start_from_the_last_basis() -> None:
    """The same optimum as from scratch, and another basis than without the rows."""
    pair = instances.random_rational(5, 2, 2)
    every = [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 3), (0, 1, 2), (1, 2, 3)]
    few, all_sets = (path_selection_program(pair, 2, every[:size]) for size in (4, 9))
    first, basis = solve_exact_after(few, None)
    then, last = solve_exact_after(all_sets, basis)
    assert then.value == solve_exact(all_sets).value < first.value
    assert sorted(last) == last != basis

"""Exact simplex pivots on their own."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq

from program_support import PAIRS, toy
from spectheory.foundation.errors import CertificationError, SolverError
from spectheory.optima import (
    ConstraintBlock,
    LinearProgram,
    otm_program,
    single_path_program,
    solve_exact,
)
from spectheory.optima.solving import exact_basis
from spectheory.optima.solving.exact_basis import ExactBasis, StandardForm, optimise, standard_form


def test_exact_simplex_from_the_slack_basis() -> None:
    """The pivots alone, without HiGHS, reach the same optimum; too few of them are refused."""
    for pair in PAIRS[:12]:
        for program in (single_path_program(pair), otm_program(pair.target[0][0], pair.draft[0][0], 2)):
            form = standard_form(program)
            slacks = ExactBasis(form, range(program.num_variables, sum(program.size)))
            basis, pivots = optimise(slacks, max_pivots=10_000)
            value = sum(form.cost[v] * x for v, x in basis.solve(form.rhs).items())
            assert Fraction(str(form.direction * value)) == solve_exact(program).value
            assert pivots > 0
            with pytest.raises(CertificationError, match="raise max_pivots"):
                optimise(slacks, max_pivots=0)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([(1.0, "<=", 1.0), (1.0, ">=", 2.0)], "infeasible"),
        ([(1.0, "==", 1.0), (1.0, "==", 2.0)], "infeasible"),
        ([(1.0, ">=", 2.0)], "unbounded"),
    ],
)
def test_exact_pivots_recognise_infeasible_and_unbounded(
    rows: list[tuple[float, str, float]], status: str
) -> None:
    form = standard_form(toy("max", 1.0, rows, exact=True))
    with pytest.raises(SolverError, match=status):
        optimise(ExactBasis(form, range(1, 1 + len(rows))), max_pivots=10)


def test_dual_pivots_keep_the_reduced_costs_at_most_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the slack basis, where costs are lowered first; the ratio test relies on it."""
    step, seen = exact_basis._dual_step, []

    def watched(basis: ExactBasis, cost: list[fmpq], lowest: bool) -> tuple[int, int] | None:
        if exact_basis._infeasible(basis):
            free = {v: c for v, c in basis.reduced_costs(cost).items() if not basis.form.fixed[v]}
            seen.append(max(free.values(), default=fmpq(0)))
        return step(basis, cost, lowest)

    monkeypatch.setattr(exact_basis, "_dual_step", watched)
    for pair in PAIRS[:12]:
        for direction in ("min", "max"):
            program = replace(otm_program(pair.draft[0][0], pair.target[0][0], 2), direction=direction)
            slacks = range(program.num_variables, sum(program.size))
            optimise(ExactBasis(standard_form(program), slacks), max_pivots=10_000)
    assert len(seen) > 24
    assert max(seen) <= 0


def random_form(seed: int, size: int) -> StandardForm:
    """As many columns as rows, with a diagonal, so that few bases are singular, and some other entries."""
    rng = np.random.default_rng(seed)
    columns = tuple({row: fmpq(int(rng.integers(1, 9)))} for row in range(size))
    for row, column in rng.integers(0, size, (3 * size // 2, 2)):
        columns[column][int(row)] = fmpq(int(rng.integers(1, 9)), 7)
    right, cost = ([fmpq(int(value), 3) for value in rng.integers(-9, 9, n)] for n in (size, 2 * size))
    return StandardForm("random", columns, right, cost, (False,) * len(cost), (1,) * size, 1)


def test_the_systems_of_a_basis_are_solved() -> None:
    """B z = b and Bᵀ y = c by multiplication, with slacks, pivots of both kinds and a rest in the basis."""
    size, seen = 9, np.zeros(4, dtype=int)
    for seed in range(60):
        form = random_form(seed, size)
        slacks = np.random.default_rng(seed).permutation(size)[: seed % 4].tolist()
        basis = ExactBasis(form, [size + v if v in slacks else v for v in range(size)])
        try:
            values, multipliers = basis.values, basis.multipliers
        except ZeroDivisionError:
            continue
        columns = {v: form.column(v) for v in basis.variables}
        assert form.rhs == [sum(values[v] * columns[v][row] for v in columns) for row in range(size)]
        for v, column in columns.items():
            assert sum(y * entry for y, entry in zip(multipliers, column, strict=True)) == form.cost[v]
        seen += [len(part) > 1 for part in (basis.slack_rows, basis._first, basis._last, basis._rows)]
    assert min(seen) >= 5, seen


def numbers(*values: int) -> np.ndarray:
    return np.array([Fraction(value) for value in values], dtype=object)


def test_the_slack_of_an_equality_stays_at_zero() -> None:
    """max x with y - x = 0, x <= 1: the slack of y - x could only grow, and blocks all the same."""
    columns = np.array([0, 1])
    equal = ConstraintBlock("equal", "-", "==", 0 * columns, columns, numbers(-1, 1), numbers(0))
    limit = ConstraintBlock("limit", "-", "<=", 0 * columns[:1], columns[:1], numbers(1), numbers(1))
    program = LinearProgram("toy", "-", "max", ("x", "y"), numbers(1, 0), (equal, limit))
    form = standard_form(program)
    basis, _ = optimise(ExactBasis(form, [2, 3]), max_pivots=10)
    values = basis.solve(form.rhs)
    assert (values.get(0, 0), values.get(1, 0)) == (1, 1)


def test_entries_of_one_place_are_added() -> None:
    """x + x <= 1, stated as two entries of one row and column."""
    place = np.zeros(2, dtype=int)
    rows = ConstraintBlock("rows", "-", "<=", place, place, numbers(1, 1), numbers(1))
    program = LinearProgram("toy", "-", "max", ("x",), numbers(1), (rows,))
    assert standard_form(program).columns == ({0: fmpq(2)},)
    assert solve_exact(program).value == Fraction(1, 2)


def test_the_systems_partner_a_singular_basis_is_refused() -> None:
    form = random_form(0, 4)
    twice = replace(form, columns=(form.columns[0], form.columns[0], *form.columns[2:]))
    with pytest.raises(ZeroDivisionError):
        _ = ExactBasis(twice, range(4)).values

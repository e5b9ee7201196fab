"""Exact simplex method in rationals: the linear systems of a basis, and pivots to an optimal basis.

Standard form: max c·x over x ≥ 0 with A x + s = b.  A slack s_i is ≥ 0; for an equality it is fixed at 0.
Variables are numbered 0..n-1 (structural) and n..n+m-1 (slacks).  A basis is a set of m variables, and B is
the matrix of their columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import fmpq, fmpq_mat

from spectheory.foundation.errors import CertificationError, SolverError
from spectheory.foundation.exact_numbers import to_flint
from spectheory.optima.solving.linear_program import LinearProgram

Vector = list[fmpq]
ZERO = fmpq(0)
FREE_PIVOTS = 200
"""Number of pivots that choose the largest violation.  Later pivots choose the lowest index: no cycles."""


@dataclass(frozen=True, eq=False)
class StandardForm:
    """A program as max c·x, A x + s = b, in python-flint rationals.

    Attributes:
        label: name and size of the program, for messages.
        columns: the nonzeros {row: coefficient} of every structural variable, [n].
        rhs: b, [m].
        cost: c and zeros for the slacks, [n + m].
        fixed: True if the variable is the slack of an equality and so fixed at 0, [n + m].
        row_signs: -1 for ``>=`` rows, which were multiplied by -1, else 1, [m].
        direction: 1 for a maximum; -1 for a minimum, whose objective was multiplied by -1.
    """

    label: str
    columns: tuple[dict[int, fmpq], ...]
    rhs: Vector
    cost: Vector
    fixed: tuple[bool, ...]
    row_signs: tuple[int, ...]
    direction: int

    @property
    def num_rows(self) -> int:
        return len(self.rhs)

    @property
    def num_structural(self) -> int:
        return len(self.columns)

    def column(self, variable: int) -> Vector:
        """Return the column of a structural or slack variable, [m]."""
        dense = [ZERO] * self.num_rows
        if variable >= self.num_structural:
            dense[variable - self.num_structural] = fmpq(1)
            return dense
        for row, entry in self.columns[variable].items():
            dense[row] = entry
        return dense


def standard_form(program: LinearProgram) -> StandardForm:
    direction = 1 if program.direction == "max" else -1
    columns: list[dict[int, fmpq]] = [{} for _ in program.variables]
    rhs: Vector = []
    fixed: list[bool] = [False] * program.num_variables
    row_signs: list[int] = []
    for block in program.blocks:
        sign = -1 if block.sense == ">=" else 1
        rows = (block.rows + len(rhs)).tolist()
        for row, column, entry in zip(
            rows, block.columns.tolist(), to_flint(block.coefficients), strict=True
        ):
            columns[column][row] = columns[column].get(row, ZERO) + sign * entry
        rhs += [sign * value for value in to_flint(block.rhs)]
        fixed += [block.sense == "=="] * block.size
        row_signs += [sign] * block.size
    cost = [direction * value for value in to_flint(program.objective)] + [ZERO] * len(rhs)
    return StandardForm(
        program.describe(), tuple(columns), rhs, cost, tuple(fixed), tuple(row_signs), direction
    )


class ExactBasis:
    """The linear systems of one basis.

    A row is tight if its slack is not basic.  The structural columns of the basis on the tight rows form a
    square system, which is nearly triangular in sparse programs.  Substitution solves rows with one unknown
    first, and variables that occur in one row last.  python-flint solves the system in between.

    Raises:
        ZeroDivisionError: the system is not square, or singular when it is solved.
    """

    def __init__(self, form: StandardForm, variables: Sequence[int]) -> None:
        n = form.num_structural
        self.form = form
        self.variables = sorted(variables)
        self.members = frozenset(variables)
        structural = [v for v in self.variables if v < n]
        self.slack_rows = [v - n for v in self.variables if v >= n]
        slack = set(self.slack_rows)
        self.tight_rows = [row for row in range(form.num_rows) if row not in slack]
        if len(structural) != len(self.tight_rows):
            raise ZeroDivisionError("a basis needs as many variables as there are rows")
        on_tight = {v: form.columns[v].keys() - slack for v in structural}
        self._first, self._last = _peel(on_tight, self.tight_rows)
        peeled = [*self._first, *self._last]
        peeled_rows, peeled_variables = {row for row, _ in peeled}, {variable for _, variable in peeled}
        self._rows = [row for row in self.tight_rows if row not in peeled_rows]
        self._inner = [variable for variable in structural if variable not in peeled_variables]
        entries = [[form.columns[v].get(row, ZERO) for v in self._inner] for row in self._rows]
        self._kernel = fmpq_mat(entries) if entries else None
        self._transposed = None if self._kernel is None else self._kernel.transpose()

    @cached_property
    def values(self) -> dict[int, fmpq]:
        """The values {variable: z} of the basic variables, with B z = b."""
        return self.solve(self.form.rhs)

    @cached_property
    def multipliers(self) -> Vector:
        """The dual solution y of the basis, with Bᵀ y = c, [m]."""
        return self.solve_transposed({v: self.form.cost[v] for v in self.variables})

    def solve(self, vector: Vector) -> dict[int, fmpq]:
        """Solve B z = vector, [m].  Returns {variable: z}."""
        columns, rest, z = self.form.columns, list(vector), {}

        def put(variable: int, value: fmpq) -> None:
            z[variable] = value
            if value != 0:
                for row, entry in columns[variable].items():
                    rest[row] -= entry * value

        for row, variable in self._first:
            put(variable, rest[row] / columns[variable][row])
        inner = _solve(self._kernel, [rest[row] for row in self._rows])
        for variable, value in zip(self._inner, inner, strict=True):
            put(variable, value)
        for row, variable in reversed(self._last):
            put(variable, rest[row] / columns[variable][row])
        n = self.form.num_structural
        return z | {n + row: rest[row] for row in self.slack_rows}

    def solve_transposed(self, weights: dict[int, fmpq]) -> Vector:
        """Solve Bᵀ y = weights, given by basic variable (0 if missing).  Returns y, [m]."""
        columns, n = self.form.columns, self.form.num_structural
        y = [ZERO] * self.form.num_rows

        def missing(variable: int) -> fmpq:
            known = sum((entry * y[row] for row, entry in columns[variable].items() if y[row] != 0), ZERO)
            return weights.get(variable, ZERO) - known

        for row in self.slack_rows:
            y[row] = weights.get(n + row, ZERO)
        for row, variable in self._last:
            y[row] = missing(variable) / columns[variable][row]
        inner = _solve(self._transposed, [missing(variable) for variable in self._inner])
        for row, value in zip(self._rows, inner, strict=True):
            y[row] = value
        for row, variable in reversed(self._first):
            y[row] = missing(variable) / columns[variable][row]
        return y

    def combine(self, y: Vector) -> dict[int, fmpq]:
        """Compute {v: y·(column of v)} for every variable v outside the basis."""
        n = self.form.num_structural
        result = {}
        for variable, column in enumerate(self.form.columns):
            if variable not in self.members:
                result[variable] = sum((entry * y[row] for row, entry in column.items() if y[row] != 0), ZERO)
        return result | {n + row: y[row] for row in self.tight_rows}

    def reduced_costs(self, cost: Vector) -> dict[int, fmpq]:
        """Compute {v: c_v - y·(column of v)} for every v outside the basis, where Bᵀ y = c on the basis."""
        own = cost is self.form.cost
        y = self.multipliers if own else self.solve_transposed({v: cost[v] for v in self.variables})
        return {v: cost[v] - value for v, value in self.combine(y).items()}

    def exchange(self, leaving: int, entering: int) -> ExactBasis:
        return ExactBasis(self.form, [v for v in self.variables if v != leaving] + [entering])


def _peel(
    columns: Mapping[int, Collection[int]], rows: Sequence[int]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Find the pivots of a sparse square system that substitution can solve.

    Args:
        columns: the rows in which every variable occurs.
        rows: all rows.

    Returns:
        Two lists of pivots (row, variable).  The first list is solved in order: each row has one unknown
        left.  The second list is solved last, in reverse order: each variable is in one row only.
    """
    by_variable = {variable: set(members) for variable, members in columns.items()}
    by_row: dict[int, set[int]] = {row: set() for row in rows}
    for variable, members in columns.items():
        for row in members:
            by_row[row].add(variable)
    first: list[tuple[int, int]] = []
    last: list[tuple[int, int]] = []
    variables = [variable for variable, members in by_variable.items() if len(members) == 1]
    lone_rows = [row for row, members in by_row.items() if len(members) == 1]
    while variables or lone_rows:
        # a listed row or variable may be gone, or have no single entry any more
        if variables:
            variable = variables.pop()
            if len(by_variable.get(variable, ())) != 1:
                continue
            (row,) = by_variable[variable]
            last.append((row, variable))
        else:
            row = lone_rows.pop()
            if len(by_row.get(row, ())) != 1:
                continue
            (variable,) = by_row[row]
            first.append((row, variable))
        for other in by_row.pop(row):
            by_variable[other].discard(row)
            if len(by_variable[other]) == 1:
                variables.append(other)
        for other in by_variable.pop(variable):
            by_row[other].discard(variable)
            if len(by_row[other]) == 1:
                lone_rows.append(other)
    return first, last


def optimise(basis: ExactBasis, max_pivots: int) -> tuple[ExactBasis, int]:
    """Pivot exactly from ``basis`` to an optimal basis.  Returns (optimal basis, number of pivots).

    After ``FREE_PIVOTS`` pivots Bland's rule (the lowest index) excludes cycles.

    1. If the basis is primal infeasible, subtract each reduced cost of the wrong sign from its variable's
       cost.  The basis is then dual feasible.
    2. Apply the dual simplex method with the shifted costs until the basis is primal feasible.
    3. Apply the primal simplex method with the true costs until the basis is optimal.
    """
    cost = basis.form.cost
    if _infeasible(basis):
        reduced, cost = basis.reduced_costs(cost), list(cost)
        for variable, value in reduced.items():
            if value > 0 and not basis.form.fixed[variable]:
                cost[variable] -= value
    pivots = 0
    for step, costs in ((_dual_step, cost), (_primal_step, basis.form.cost)):
        while (pair := step(basis, costs, pivots >= FREE_PIVOTS)) is not None:
            if pivots == max_pivots:
                raise CertificationError(
                    f"{basis.form.label}: not exactly optimal after {max_pivots} pivots; raise max_pivots"
                )
            basis, pivots = basis.exchange(*pair), pivots + 1
    return basis, pivots


def _infeasible(basis: ExactBasis) -> list[tuple[int, fmpq]]:
    """List (index, value) of every basic variable with an infeasible value, by ascending index."""
    values, fixed = basis.values, basis.form.fixed
    return [(v, values[v]) for v in basis.variables if values[v] < 0 or (fixed[v] and values[v] != 0)]


def _dual_step(basis: ExactBasis, cost: Vector, lowest: bool) -> tuple[int, int] | None:
    """Find (leaving, entering) of one dual simplex pivot, or None if the basis is primal feasible."""
    broken = _infeasible(basis)
    if not broken:
        return None
    leaving, value = broken[0] if lowest else max(broken, key=lambda found: abs(found[1]))
    side = -1 if value < 0 else 1
    row = basis.combine(basis.solve_transposed({leaving: fmpq(side)}))
    reduced = basis.reduced_costs(cost)
    # the ratios are ≥ 0, because reduced costs are ≤ 0 and only row entries > 0 are used
    ratios = [(-reduced[v] / row[v], v) for v in row if row[v] > 0 and not basis.form.fixed[v]]
    if not ratios:
        raise SolverError(f"{basis.form.label}: expected status optimal, got infeasible (exact)")
    return leaving, min(ratios)[1]


def _primal_step(basis: ExactBasis, cost: Vector, lowest: bool) -> tuple[int, int] | None:
    """Find (leaving, entering) of one primal simplex pivot, or None if the basis is dual feasible."""
    reduced = basis.reduced_costs(cost)
    improving = [v for v in reduced if reduced[v] > 0 and not basis.form.fixed[v]]
    if not improving:
        return None
    entering = min(improving) if lowest else max(improving, key=lambda variable: reduced[variable])
    direction = basis.solve(basis.form.column(entering))
    values, fixed = basis.values, basis.form.fixed
    # a fixed variable may not change in either direction, so its ratio is 0
    ratios = [
        (ZERO if fixed[v] else values[v] / direction[v], v)
        for v in basis.variables
        if direction[v] > 0 or (fixed[v] and direction[v] != 0)
    ]
    if not ratios:
        raise SolverError(f"{basis.form.label}: expected status optimal, got unbounded (exact)")
    return min(ratios)[1], entering


def _solve(matrix: fmpq_mat | None, right: Vector) -> Vector:
    if matrix is None:
        return []
    solution = matrix.solve(fmpq_mat(len(right), 1, right), algorithm="dixon")  # type: ignore[call-arg]
    return [solution[i, 0] for i in range(len(right))]


def as_objects(values: Sequence[object]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

"""Exact simplex in rationals: linear systems of a basis, and pivots from a nearly optimal one.

Standard form: max c·x over x ≥ 0 with A x + s = b, where a slack s_i is ≥ 0, or fixed at 0 for an
equality.  Variables are numbered 0..n-1 (structural) and n..n+m-1 (slacks).  A basis is a set of
m of them.  Only the structural columns of the basis on its tight rows (those whose slack is not
basic) form a linear system: k × k with k ≤ min(m, n), solved by python-flint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import fmpq, fmpq_mat

from spectheory.arrays import to_flint
from spectheory.errors import CertificationError, SolverError
from spectheory.programs.solving.linear_program import LinearProgram

Vector = list[fmpq]
ZERO = fmpq(0)


@dataclass(frozen=True, eq=False)
class StandardForm:
    """A program as max c·x, A x + s = b, in python-flint rationals.

    Attributes:
        label: name and size of the program, for messages.
        columns: per structural variable its nonzeros {row: coefficient}.
        rhs: b, [m].
        cost: c and zeros for the slacks, [n + m].
        fixed: whether a variable is fixed at 0 (the slack of an equality), [n + m].
        row_signs: -1 where a row of the program was multiplied by -1 (``>=`` rows), [m].
        direction: 1 for a maximum, -1 where the objective was multiplied by -1.
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
        """m."""
        return len(self.rhs)

    @property
    def num_structural(self) -> int:
        """n."""
        return len(self.columns)

    def column(self, variable: int) -> Vector:
        """The column of a structural or slack variable, [m]."""
        dense = [ZERO] * self.num_rows
        if variable >= self.num_structural:
            dense[variable - self.num_structural] = fmpq(1)
            return dense
        for row, entry in self.columns[variable].items():
            dense[row] = entry
        return dense


def standard_form(program: LinearProgram) -> StandardForm:
    """The standard form of an exact program."""
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

    Raises:
        ZeroDivisionError: when a system of a singular basis is solved.
    """

    def __init__(self, form: StandardForm, variables: Sequence[int]) -> None:
        n = form.num_structural
        self.form = form
        self.variables = sorted(variables)
        self.members = frozenset(variables)
        self.structural = [v for v in self.variables if v < n]
        self.slack_rows = [v - n for v in self.variables if v >= n]
        slack = set(self.slack_rows)
        self.tight_rows = [row for row in range(form.num_rows) if row not in slack]
        if len(self.structural) != len(self.tight_rows):
            raise ZeroDivisionError("a basis needs as many variables as there are rows")
        place = {row: i for i, row in enumerate(self.tight_rows)}
        size = len(self.tight_rows)
        entries = [[ZERO] * size for _ in range(size)]
        for j, variable in enumerate(self.structural):
            for row, entry in form.columns[variable].items():
                if row in place:
                    entries[place[row]][j] = entry
        self._kernel = fmpq_mat(entries) if size else None
        self._transposed = None if self._kernel is None else self._kernel.transpose()

    def solve(self, vector: Vector) -> dict[int, fmpq]:
        """z with B z = vector, by variable."""
        inner = _solve(self._kernel, [vector[row] for row in self.tight_rows])
        rest = list(vector)
        for variable, value in zip(self.structural, inner, strict=True):
            if value != 0:
                for row, entry in self.form.columns[variable].items():
                    rest[row] -= entry * value
        result = dict(zip(self.structural, inner, strict=True))
        n = self.form.num_structural
        return result | {n + row: rest[row] for row in self.slack_rows}

    def solve_transposed(self, weights: dict[int, fmpq]) -> Vector:
        """y with Bᵀ y = weights (by basic variable), [m]."""
        n = self.form.num_structural
        y = [ZERO] * self.form.num_rows
        for row in self.slack_rows:
            y[row] = weights.get(n + row, ZERO)
        right = [
            weights.get(variable, ZERO)
            - sum((entry * y[row] for row, entry in self.form.columns[variable].items()), ZERO)
            for variable in self.structural
        ]
        for row, value in zip(self.tight_rows, _solve(self._transposed, right), strict=True):
            y[row] = value
        return y

    def combine(self, y: Vector) -> dict[int, fmpq]:
        """y·(column of v) for every variable v outside the basis."""
        n = self.form.num_structural
        result = {}
        for variable, column in enumerate(self.form.columns):
            if variable not in self.members:
                result[variable] = sum((entry * y[row] for row, entry in column.items()), ZERO)
        return result | {n + row: y[row] for row in self.tight_rows}

    def reduced_costs(self, cost: Vector) -> dict[int, fmpq]:
        """c_v - y·(column of v) for every variable v outside the basis."""
        y = self.solve_transposed({v: cost[v] for v in self.variables})
        return {v: cost[v] - value for v, value in self.combine(y).items()}

    def exchange(self, leaving: int, entering: int) -> ExactBasis:
        """The neighbouring basis."""
        return ExactBasis(self.form, [v for v in self.variables if v != leaving] + [entering])


def optimise(basis: ExactBasis, max_pivots: int) -> tuple[ExactBasis, int]:
    """Exact simplex pivots (Bland's rule) from ``basis`` to an optimal one.

    1. Where reduced costs have the wrong sign, shift those costs so that the basis is dual feasible.
    2. Dual simplex on the shifted costs until the basis is primal feasible.
    3. Primal simplex on the true costs until it is optimal.

    A basis that is optimal already passes all three steps without a pivot.

    Returns:
        The optimal basis and the number of pivots.

    Raises:
        SolverError: the program is infeasible or unbounded.
        CertificationError: ``max_pivots`` pivots were not enough.
    """
    cost = list(basis.form.cost)
    if _infeasible(basis):
        for variable, reduced in basis.reduced_costs(cost).items():
            if reduced > 0 and not basis.form.fixed[variable]:
                cost[variable] -= reduced
    pivots = 0
    for step, costs in ((_dual_step, cost), (_primal_step, basis.form.cost)):
        while (pair := step(basis, costs)) is not None:
            if pivots == max_pivots:
                raise CertificationError(
                    f"{basis.form.label}: not exactly optimal after {max_pivots} pivots; raise max_pivots"
                )
            basis, pivots = basis.exchange(*pair), pivots + 1
    return basis, pivots


def _infeasible(basis: ExactBasis) -> list[tuple[int, fmpq]]:
    """Basic variables with a value they may not have, lowest number first."""
    values = basis.solve(basis.form.rhs)
    fixed = basis.form.fixed
    return [(v, values[v]) for v in basis.variables if values[v] < 0 or (fixed[v] and values[v] != 0)]


def _dual_step(basis: ExactBasis, cost: Vector) -> tuple[int, int] | None:
    """(leaving, entering) of one dual simplex pivot, or None when primal feasible."""
    broken = _infeasible(basis)
    if not broken:
        return None
    leaving, value = broken[0]
    side = -1 if value < 0 else 1
    row = basis.combine(basis.solve_transposed({leaving: fmpq(side)}))
    reduced = basis.reduced_costs(cost)
    # ratios are ≥ 0: reduced costs are ≤ 0 and the chosen row entries > 0
    ratios = [(-reduced[v] / row[v], v) for v in row if row[v] > 0 and not basis.form.fixed[v]]
    if not ratios:
        raise SolverError(f"{basis.form.label}: expected status optimal, got infeasible (exact)")
    return leaving, min(ratios)[1]


def _primal_step(basis: ExactBasis, cost: Vector) -> tuple[int, int] | None:
    """(leaving, entering) of one primal simplex pivot, or None when dual feasible."""
    reduced = basis.reduced_costs(cost)
    improving = [v for v in reduced if reduced[v] > 0 and not basis.form.fixed[v]]
    if not improving:
        return None
    entering = min(improving)
    direction = basis.solve(basis.form.column(entering))
    values = basis.solve(basis.form.rhs)
    fixed = basis.form.fixed
    # a fixed variable may not move either way, so it blocks at once
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
    """A list of rationals as an object array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

"""LinearProgram: one linear program of a paper, stated once.

The statement keeps the order of the paper: variables, objective, then one named block per displayed
constraint, with its equation number.  We derive the cvxpy problem, the sparse matrices, the float solution
and the exact certificate from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from flint import fmpq

from spectheory.foundation.documents import number_text
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import to_flint

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Sense = Literal["<=", ">=", "=="]
Direction = Literal["max", "min"]
MOST_SHOWN = 12
"""The most rows of a block, and terms of a row, in the text of a program."""
Repair = Callable[["LinearProgram", np.ndarray], np.ndarray]
"""(program, nearly feasible float point [n]) -> feasible float point [n]."""


@dataclass(frozen=True, eq=False)
class ConstraintBlock:
    """One displayed constraint of a paper: rows Σ_j a_ij x_j (sense) b_i in coordinate form.

    Attributes:
        name: the constraint in words; the key of its dual multipliers.
        equation: its source, for example ``"greedy2026 Eq. 9"``.
        sense: ``"<="``, ``">="`` or ``"=="``, the same for all rows of the block.
        rows: row index of every coefficient, [nnz], in 0..M-1.
        columns: variable index of every coefficient, [nnz].
        coefficients: the coefficients, [nnz], all Fractions or all float64.
        rhs: right-hand sides, [M].
    """

    name: str
    equation: str
    sense: Sense
    rows: np.ndarray
    columns: np.ndarray
    coefficients: np.ndarray
    rhs: np.ndarray

    def __post_init__(self) -> None:
        if self.sense not in ("<=", ">=", "=="):
            raise InvalidInputError(f"block {self.name!r}: sense must be <=, >= or ==, got {self.sense!r}")
        if not self.rows.shape == self.columns.shape == self.coefficients.shape:
            raise InvalidInputError(
                f"block {self.name!r}: {len(self.rows)} row indices, {len(self.columns)} column indices and "
                f"{len(self.coefficients)} coefficients; give one of each per nonzero"
            )
        if self.rows.size and not (self.rows.min() >= 0 and self.rows.max() < len(self.rhs)):
            raise InvalidInputError(f"block {self.name!r}: a row index is outside 0..{len(self.rhs) - 1}")
        for array in (self.rows, self.columns, self.coefficients, self.rhs):
            array.setflags(write=False)

    @staticmethod
    def of_terms(
        name: str,
        equation: str,
        sense: Sense,
        rhs: np.ndarray,
        *terms: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> ConstraintBlock:
        """Build a block whose rows are sums of terms.  A term is (rows, columns, coefficients)."""
        rows, columns, coefficients = (np.concatenate(parts) for parts in zip(*terms, strict=True))
        return ConstraintBlock(name, equation, sense, rows, columns, coefficients, rhs)

    @property
    def size(self) -> int:
        """M, the number of constraints in the block."""
        return len(self.rhs)

    def activity(self, point: np.ndarray) -> np.ndarray:
        """Compute Σ_j a_ij x_j of every row, [M], at a point [n] of floats or python-flint rationals."""
        if point.dtype != object:
            weights = self.coefficients.astype(float) * point[self.columns]
            return np.bincount(self.rows, weights=weights, minlength=self.size)
        sums = np.full(self.size, fmpq(0), dtype=object)
        np.add.at(sums, self.rows, to_flint(self.coefficients) * point[self.columns])
        return sums


class SparseMatrices(NamedTuple):
    """The program in float64: ``direction`` c·x subject to A x (senses) b, x ≥ 0."""

    A: csr_array
    senses: np.ndarray
    b: np.ndarray
    c: np.ndarray


class CvxpyProgram(NamedTuple):
    """A cvxpy problem, its single vector variable, and its constraints by block name."""

    problem: Any
    variable: Any
    constraints: dict[str, Any]


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """max or min c·x over x ≥ 0, subject to named blocks of constraints.

    Attributes:
        name: the program in words, for error messages.
        source: paper and theorem.
        direction: ``"max"`` or ``"min"``.
        variables: one label per variable, in the paper's order.
        objective: c, [n], Fractions (exact) or float64.
        blocks: the constraints in the paper's order.
        box: an upper bound on every variable that the constraints imply, or None.  With it, even
            inexact dual multipliers give a true bound on the optimum.
        repair: a function that turns a nearly feasible float point into a feasible one, or None.

    Raises:
        InvalidInputError: sizes differ, a block name occurs twice, or exact and float entries are mixed.

    Example:
        >>> import numpy as np
        >>> row = ConstraintBlock("row", "-", "<=", np.array([0, 0, 1]), np.array([0, 1, 0]),
        ...                       np.array([1.0, 2.0, 1.0]), np.array([4.0, 3.0]))
        >>> program = LinearProgram("toy", "-", "max", ("x", "y"), np.array([1.0, 1.0]), (row,))
        >>> program.size, program.arithmetic
        ((2, 2), 'float64')
        >>> print(program)
        toy (2 variables, 2 constraints)
        max x + y
        row, -:
            x + 2 y <= 4
            x <= 3
        and all variables >= 0
    """

    name: str
    source: str
    direction: Direction
    variables: tuple[Hashable, ...]
    objective: np.ndarray
    blocks: tuple[ConstraintBlock, ...]
    box: float | None = None
    repair: Repair | None = None

    def __post_init__(self) -> None:
        if self.direction not in ("max", "min"):
            raise InvalidInputError(f"{self.name}: direction must be max or min, got {self.direction!r}")
        if len(self.objective) != len(self.variables):
            raise InvalidInputError(
                f"{self.name}: {len(self.variables)} variables but {len(self.objective)} objective entries"
            )
        names = [block.name for block in self.blocks]
        if len(set(names)) != len(names):
            raise InvalidInputError(f"{self.name}: constraint blocks share a name: {names}")
        for block in self.blocks:
            if (
                block.columns.size
                and not 0 <= block.columns.min() <= block.columns.max() < self.num_variables
            ):
                raise InvalidInputError(f"{self.name}: block {block.name!r} names an unknown variable")
            for array in (block.coefficients, block.rhs):
                if (array.dtype == object) != self.is_exact:
                    raise InvalidInputError(f"{self.name}: exact and float entries are mixed; use one kind")
        self.objective.setflags(write=False)

    @property
    def num_variables(self) -> int:
        """n, the number of variables."""
        return len(self.variables)

    @property
    def num_constraints(self) -> int:
        """m, the number of constraints in all blocks, without x ≥ 0."""
        return sum(block.size for block in self.blocks)

    @property
    def size(self) -> tuple[int, int]:
        """(number of variables, number of constraints)."""
        return self.num_variables, self.num_constraints

    @property
    def is_exact(self) -> bool:
        """True if the entries are exact rationals."""
        return self.objective.dtype == object

    @property
    def arithmetic(self) -> str:
        """The arithmetic of the entries, ``"exact"`` or ``"float64"``."""
        return "exact" if self.is_exact else "float64"

    def describe(self) -> str:
        """Write the program's name and size as text, for messages."""
        return f"{self.name} ({self.num_variables} variables, {self.num_constraints} constraints)"

    def __str__(self) -> str:
        """Write the program as the paper displays it: the objective, and the rows of every block.

        Of a block with more than ``MOST_SHOWN`` rows, and of a row with more terms, the first ones are shown.
        """
        every = np.arange(self.num_variables)
        lines = [self.describe(), f"{self.direction} {self._sum(every, self.objective)}"]
        for block in self.blocks:
            lines.append(f"{block.name}, {block.equation}:")
            for row, bound in enumerate(block.rhs[:MOST_SHOWN]):
                of_row = block.rows == row
                left = self._sum(block.columns[of_row], block.coefficients[of_row])
                lines.append(f"    {left} {block.sense} {number_text(bound, decimal=False)}")
            if block.size > MOST_SHOWN:
                lines.append(f"    .. and {block.size - MOST_SHOWN} more")
        return "\n".join([*lines, "and all variables >= 0"])

    def _sum(self, columns: np.ndarray, coefficients: np.ndarray) -> str:
        terms = [(columns[place], coefficients[place]) for place in np.flatnonzero(coefficients)]
        text = ""
        for column, coefficient in terms[:MOST_SHOWN]:
            size = abs(coefficient)
            factor = "" if size == 1 else f"{number_text(size, decimal=False)} "
            label = self.variables[column]
            variable = label if isinstance(label, str) else f"x{label}"
            text += f" {'-' if coefficient < 0 else '+'} {factor}{variable}"
        if len(terms) > MOST_SHOWN:
            text += f" + .. {len(terms) - MOST_SHOWN} more"
        return f"-{text[3:]}" if text.startswith(" - ") else text[3:] or "0"

    def block(self, name: str) -> ConstraintBlock:
        """Return the block with this name.

        Raises:
            InvalidInputError: no block has this name.
        """
        for block in self.blocks:
            if block.name == name:
                return block
        raise InvalidInputError(
            f"{self.name} has no block {name!r}; its blocks are {[block.name for block in self.blocks]}"
        )

    def dual_signs(self) -> np.ndarray:
        """Return the sign that each multiplier must have, [m]: 1, -1, or 0 if it is free.

        A multiplier is the rate at which the optimum grows with the right-hand side.
        """
        sign = {"<=": 1, ">=": -1, "==": 0}
        up = 1 if self.direction == "max" else -1
        signs = [np.full(block.size, up * sign[block.sense]) for block in self.blocks]
        return np.concatenate([np.zeros(0, dtype=int), *signs])

    def split_by_block(self, multipliers: Sequence[Any] | np.ndarray) -> dict[str, np.ndarray]:
        """Split multipliers [m], in the program's order, into one array per block name."""
        stacked = np.asarray(multipliers, dtype=object if self.is_exact else float)
        ends = np.cumsum([block.size for block in self.blocks])[:-1]
        parts = np.split(stacked, ends)
        return {block.name: part for block, part in zip(self.blocks, parts, strict=True)}

    @property
    def senses(self) -> np.ndarray:
        """The sense of every row, [m]."""
        return np.repeat([block.sense for block in self.blocks], [block.size for block in self.blocks])

    @cached_property
    def matrices(self) -> SparseMatrices:
        """The program as scipy matrices in float64, blocks stacked in order."""
        from scipy.sparse import csr_array

        offsets = np.cumsum([0, *(block.size for block in self.blocks)])
        none = np.zeros(0, dtype=int)
        starts = offsets[:-1]
        rows = [block.rows + start for block, start in zip(self.blocks, starts, strict=True)]
        coefficients = [block.coefficients.astype(float) for block in self.blocks]
        entries = np.concatenate([none.astype(float), *coefficients])
        columns = np.concatenate([none, *(block.columns for block in self.blocks)])
        matrix = csr_array((entries, (np.concatenate([none, *rows]), columns)), shape=self.size[::-1])
        return SparseMatrices(
            A=matrix,
            senses=self.senses,
            b=np.concatenate([none.astype(float), *(block.rhs.astype(float) for block in self.blocks)]),
            c=self.objective.astype(float),
        )

    def to_cvxpy(self) -> CvxpyProgram:
        """Build the cvxpy problem: one variable vector, one constraint per block, in the paper's order.

        Example:
            >>> from spectheory.pairs.pair import ModelPair
            >>> from spectheory.optima import single_path_program
            >>> pair = ModelPair.context_free_pair([0.25, 0.75], [0.75, 0.25], draft_length=1)
            >>> list(single_path_program(pair).to_cvxpy().constraints)
            ['root budget', 'monotone budgets', 'prefix matching']
        """
        import cvxpy

        A, _, b, c = self.matrices
        variable = cvxpy.Variable(self.num_variables, nonneg=True, name="x")
        objective = cvxpy.Maximize(c @ variable) if self.direction == "max" else cvxpy.Minimize(c @ variable)
        constraints, start = {}, 0
        for block in self.blocks:
            part = slice(start, start + block.size)
            left, right = A[part] @ variable, b[part]
            constraints[block.name] = {"<=": left <= right, ">=": left >= right, "==": left == right}[
                block.sense
            ]
            start += block.size
        return CvxpyProgram(cvxpy.Problem(objective, list(constraints.values())), variable, constraints)


def ones(count: int, exact: bool) -> np.ndarray:
    return np.full(count, Fraction(1), dtype=object) if exact else np.ones(count)

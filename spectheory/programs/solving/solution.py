"""Solution of a linear program, and an independent check of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from spectheory.arrays import to_flint, to_fraction
from spectheory.documents import exact_text
from spectheory.errors import CertificationError, InvalidInputError
from spectheory.programs.solving.linear_program import LinearProgram


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimal solution with its proof.

    Attributes:
        program: the program's name.
        method: how the value was found, in words.
        value: the optimum, a Fraction (exact) or a float.
        primal: value of every variable, by its label.
        dual: multipliers, one array per block.  A multiplier is the rate at which the optimum
            grows with the right-hand side: for a maximum it is ≥ 0 on ``<=`` rows.
        gap: |primal objective - dual objective|; 0 when exact.
        arithmetic: ``"exact"`` or ``"float64"``.
        lower, upper: floats that certify the optimum from both sides; infinite where the program
            gives no means to certify that side.
    """

    program: str
    method: str
    value: Any
    primal: Mapping[Hashable, Any]
    dual: Mapping[str, np.ndarray]
    gap: Any
    arithmetic: str
    lower: float
    upper: float

    status: ClassVar[str] = "optimal"
    """Nothing else is ever returned."""

    @property
    def value_float(self) -> float:
        """The optimum as a float."""
        return float(self.value)

    @property
    def reached(self) -> bool:
        """Always: there is no precision to be reached."""
        return True

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory optimum --json``: ``value`` is null where it is a float."""
        return {
            "value": exact_text(self.value),
            "value_float": self.value_float,
            "lower": self.lower,
            "upper": self.upper,
            "method": self.method,
            "status": self.status,
        }


@dataclass(frozen=True)
class OptimalityResiduals:
    """How far a primal and a dual point are from proving each other optimal (each ≥ 0, 0 is exact).

    Attributes:
        primal: largest violation of a constraint or of a variable's sign.
        dual: largest violation of a multiplier's sign or of stationarity, which for x ≥ 0 reads
            Aᵀy ≥ c (maximum) or Aᵀy ≤ c (minimum).
        complementarity: largest |multiplier × slack| and |variable × reduced cost|.
        gap: |c·x - b·y|.
        value: |c·x - the value the solution states|.
    """

    primal: Any
    dual: Any
    complementarity: Any
    gap: Any
    value: Any


def outward(value: Fraction) -> tuple[float, float]:
    """The nearest floats around a rational from below and from above.

    Example:
        >>> outward(Fraction(1, 2))
        (0.5, 0.5)
        >>> low, high = outward(Fraction(1, 3))
        >>> Fraction(low) < Fraction(1, 3) < Fraction(high)
        True
    """
    near = float(value)
    low = near if Fraction(near) <= value else math.nextafter(near, -math.inf)
    high = near if Fraction(near) >= value else math.nextafter(near, math.inf)
    return low, high


def optimality_residuals(program: LinearProgram, solution: Solution) -> OptimalityResiduals:
    """The Karush-Kuhn-Tucker residuals of a solution, from the statement of the program alone.

    Feasibility, signs, stationarity and complementary slackness, recomputed in the arithmetic of
    the program (rationals through python-flint), independently of any solver.

    Raises:
        InvalidInputError: the solution has other variables or blocks than the program.
    """
    if list(solution.primal) != list(program.variables) or list(solution.dual) != [
        block.name for block in program.blocks
    ]:
        raise InvalidInputError(
            f"the solution of {solution.program!r} has other variables or blocks than {program.describe()}"
        )
    point = _numbers(program, np.array(list(solution.primal.values()), dtype=object))
    zero = point[:1].sum() * 0
    multipliers = _numbers(program, np.concatenate([np.zeros(0, dtype=object), *solution.dual.values()]))
    activity, weighted, rhs = _products(program, point, multipliers, zero)
    cost = _numbers(program, program.objective)

    up = 1 if program.direction == "max" else -1
    slack = rhs - activity
    reduced = up * (cost - weighted)
    signs = program.dual_signs()
    senses = program.matrices.senses
    broken = np.where(senses == "<=", -slack, np.where(senses == ">=", slack, abs(slack)))
    objective = (cost * point).sum() + zero
    stated = _numbers(program, np.array([solution.value], dtype=object))[0]
    return OptimalityResiduals(
        primal=_largest(broken, -point, zero=zero),
        dual=_largest(-signs * multipliers, reduced, zero=zero),
        complementarity=_largest(abs(multipliers * slack), abs(point * reduced), zero=zero),
        gap=_plain(abs(objective - (rhs * multipliers).sum() - zero)),
        value=_plain(abs(objective - stated)),
    )


def check_solution(program: LinearProgram, solution: Solution, tolerance: float = 0.0) -> None:
    """Raise unless the solution's primal and dual prove each other optimal.

    Args:
        program: the program, as stated.
        solution: what a solver returned.
        tolerance: largest residual allowed; 0 for exact solutions.

    Raises:
        CertificationError: a residual is larger; the text says which and by how much.
    """
    residuals = optimality_residuals(program, solution)
    for kind, size in vars(residuals).items():
        # written so that a NaN is refused too
        if not size <= tolerance:
            raise CertificationError(
                f"{program.describe()}: the {kind} residual is {float(size):.3e}, allowed {tolerance:.3e}"
            )


def _numbers(program: LinearProgram, array: np.ndarray) -> np.ndarray:
    return to_flint(array) if program.is_exact else array.astype(float)


def _products(
    program: LinearProgram, point: np.ndarray, multipliers: np.ndarray, zero: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A x [m], Aᵀ y [n] and b [m] in the program's arithmetic."""
    if not program.is_exact:
        A, _, b, _ = program.matrices
        return A @ point, A.T @ multipliers, b
    activity = [zero] * program.num_constraints
    weighted = [zero] * program.num_variables
    start = 0
    for block in program.blocks:
        coefficients = to_flint(block.coefficients)
        rows = (block.rows + start).tolist()
        for row, column, entry in zip(rows, block.columns.tolist(), coefficients, strict=True):
            activity[row] += entry * point[column]
            if multipliers[row] != 0:
                weighted[column] += entry * multipliers[row]
        start += block.size
    rhs = to_flint(np.concatenate([np.zeros(0, dtype=object), *(block.rhs for block in program.blocks)]))
    return np.array(activity, dtype=object), np.array(weighted, dtype=object), rhs


def _largest(*violations: np.ndarray, zero: Any) -> Any:
    """The largest entry, at least 0; a NaN stays a NaN."""
    stacked = np.concatenate([[zero], *violations])
    return _plain(np.max(stacked))


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, (float, np.floating)) else to_fraction(value)

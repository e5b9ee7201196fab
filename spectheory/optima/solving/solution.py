"""Solutions of linear programs, and a check of a solution that uses no solver."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.documents import both, exact_text, number_text
from spectheory.foundation.errors import CertificationError, InvalidInputError
from spectheory.foundation.exact_numbers import Number, plain_number, to_flint
from spectheory.foundation.results import Result, Templates, no_verdict
from spectheory.optima.solving.linear_program import LinearProgram


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Optimum(Result):
    """An optimum with a certified lower and upper bound.  ``Solution`` and ``CertifiedInterval`` add proofs.

    Attributes:
        program: the program's name.
        method: the method that found the value, in words.
        value: the optimum, a Fraction (exact) or a float.  For an interval it is the lower end, which a
            verifier attains.
        lower, upper: certified bounds on the optimum, floats.  A bound is infinite if the program has no
            ``repair`` or no ``box`` to certify it.
        gap: |primal objective - dual objective|, 0 when exact; for an interval upper - lower.
        status: ``"optimal"`` if the requested gap was reached, else ``"time limit"``, ``"interrupted"``, or
            ``"stalled"`` when float64 or the size limit allows no further progress.  The bounds are
            certified in every case.
        is_interval: True if only the two bounds are known.
    """

    program: str
    method: str
    value: Number
    lower: float
    upper: float
    gap: Number
    status: str = "optimal"
    is_interval: bool = False

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")

    @property
    def reached(self) -> bool:
        """True if the requested gap was reached."""
        return self.status == "optimal"

    @property
    def relative_gap(self) -> float:
        """The gap divided by ``lower``."""
        return float(self.gap) / self.lower

    facts: ClassVar[Templates] = {
        "block efficiency": "{value} tokens per target call",
        # All digits: a rounded bound would no longer be certified.
        "certified between": "{lower!r} and {upper!r}",
        "method": "{method}",
        "status": "{status}: the gap asked for was not reached",
    }

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of ``spectheory optimum --json``.

        If the value is a float, ``value`` is null.
        """
        return {
            **both("value", self.value),
            "lower": self.lower,
            "upper": self.upper,
            "method": self.method,
            "status": self.status,
        }

    def headline(self) -> str:
        value = number_text(self.value) if exact_text(self.value) else f"{self.lower!r} to {self.upper!r}"
        return f"{self.program}: {value}" + ("" if self.status == "optimal" else f" ({self.status})")

    def shown(self) -> dict[str, Any]:
        """Write the value and its bounds, and the status if the requested gap was not reached."""
        status = None if self.status == "optimal" else self.status
        return {
            "value": self.value,
            "lower": float(self.lower),
            "upper": float(self.upper),
            "status": status,
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solution(Optimum):
    """An optimal solution with its proof.

    Attributes:
        primal: value of every variable, by its label.
        dual: multipliers, one array per block name.  A multiplier is the rate at which the optimum
            grows with the right-hand side: for a maximum it is ≥ 0 on ``<=`` rows.
        arithmetic: ``"exact"`` or ``"float64"``.
    """

    primal: Mapping[Hashable, Any]
    dual: Mapping[str, np.ndarray]
    arithmetic: str


class Deferred(Mapping[Any, Any]):
    """A mapping that is computed when it is first read."""

    def __init__(self, compute: Callable[[], Mapping[Any, Any]]) -> None:
        self._compute = compute

    @cached_property
    def _computed(self) -> Mapping[Any, Any]:
        return self._compute()

    def __getitem__(self, key: Any) -> Any:
        return self._computed[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._computed)

    def __len__(self) -> int:
        return len(self._computed)


@dataclass(frozen=True)
class OptimalityResiduals:
    """Violations of the optimality conditions by a primal point x and a dual point y; all 0 is a proof.

    Attributes:
        primal: largest violation of a constraint or of a variable's sign.
        dual: largest violation of a multiplier's sign or of stationarity, which for x ≥ 0 reads
            Aᵀy ≥ c (maximum) or Aᵀy ≤ c (minimum).
        complementarity: largest |multiplier × slack| or |variable × reduced cost|.
        gap: |c·x - b·y|.
        value: |c·x - the ``value`` of the solution|.
    """

    primal: Any
    dual: Any
    complementarity: Any
    gap: Any
    value: Any

    def __bool__(self) -> bool:
        raise no_verdict(self, ".gap, or check_solution(...)")


def optimality_residuals(program: LinearProgram, solution: Solution) -> OptimalityResiduals:
    """Compute the Karush-Kuhn-Tucker residuals of a solution from the statement of the program only.

    We recompute feasibility, signs, stationarity and complementary slackness in the arithmetic of the
    program (rationals through python-flint), without any solver.

    Raises:
        InvalidInputError: the solution has other variables or blocks than the program.
    """
    sizes = [(name, len(values)) for name, values in solution.dual.items()]
    blocks = [(block.name, block.size) for block in program.blocks]
    if list(solution.primal) != list(program.variables) or sizes != blocks:
        raise InvalidInputError(
            f"the solution of {solution.program!r} has other variables or blocks than {program.describe()}; "
            "one on some antichains belongs to the program with these (members=)"
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
    senses = program.senses
    broken = np.where(senses == "<=", -slack, np.where(senses == ">=", slack, abs(slack)))
    objective = (cost * point).sum() + zero
    stated = _numbers(program, np.array([solution.value], dtype=object))[0]
    return OptimalityResiduals(
        primal=_largest(broken, -point, zero=zero),
        dual=_largest(-signs * multipliers, reduced, zero=zero),
        complementarity=_largest(abs(multipliers * slack), abs(point * reduced), zero=zero),
        gap=plain_number(abs(objective - (rhs * multipliers).sum() - zero)),
        value=plain_number(abs(objective - stated)),
    )


def check_solution(program: LinearProgram, solution: Solution, tolerance: float = 0.0) -> None:
    """Raise unless the solution's primal and dual prove each other optimal.

    Args:
        program: the program, as stated.
        solution: a solution of this program.
        tolerance: largest residual allowed; 0 for exact solutions.

    Raises:
        CertificationError: a residual is above the tolerance; the text gives its name and size.
    """
    residuals = optimality_residuals(program, solution)
    for kind, size in vars(residuals).items():
        # a NaN is refused too
        if not size <= tolerance:
            raise CertificationError(
                f"{program.describe()}: the {kind} residual is {float(size):.3e}, allowed {tolerance:.3e}"
            )


def _numbers(program: LinearProgram, array: np.ndarray) -> np.ndarray:
    return to_flint(array) if program.is_exact else array.astype(float)


def _products(
    program: LinearProgram, point: np.ndarray, multipliers: np.ndarray, zero: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute A x [m], Aᵀ y [n] and b [m] for the point x and multipliers y, in the program's arithmetic."""
    if not program.is_exact:
        A, _, b, _ = program.matrices
        return A @ point, A.T @ multipliers, b
    weighted = np.array([zero] * program.num_variables, dtype=object)
    start = 0
    for block in program.blocks:
        used = np.flatnonzero(multipliers[block.rows + start] != 0)
        terms = to_flint(block.coefficients[used]) * multipliers[block.rows[used] + start]
        np.add.at(weighted, block.columns[used], terms)
        start += block.size
    none = np.zeros(0, dtype=object)
    activity = np.concatenate([none, *(block.activity(point) for block in program.blocks)])
    return activity, weighted, to_flint(np.concatenate([none, *(block.rhs for block in program.blocks)]))


def _largest(*violations: np.ndarray, zero: Any) -> Any:
    """Find the largest entry, at least 0.  If an entry is NaN, the result is NaN."""
    stacked = np.concatenate([[zero], *violations])
    return plain_number(np.max(stacked))

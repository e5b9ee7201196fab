"""The extra ``proof``: z3 looks for a point of a region, or for a small set of conditions without one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import Constraint
from spectheory.exact.proof.rational_functions import (
    ANY_SIGN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    sign_mask,
)
from spectheory.exact.proof.substitution import solve, solved_form

try:
    import z3
except ImportError:  # an extra
    z3 = None

_RELATIONS = {
    NEGATIVE: lambda x: x < 0,
    ZERO: lambda x: x == 0,
    POSITIVE: lambda x: x > 0,
    NEGATIVE | ZERO: lambda x: x <= 0,
    ZERO | POSITIVE: lambda x: x >= 0,
    NEGATIVE | POSITIVE: lambda x: x != 0,
    ANY_SIGN: lambda x: True,
}


class RealSolver:
    """Questions about sign conditions, with a limit of time for each.

    Attributes:
        milliseconds: the limit.
    """

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds
        self._made: dict[Factor, Any] = {}

    @staticmethod
    def is_there() -> bool:
        """Whether z3 is installed."""
        return z3 is not None

    def _condition(self, constraint: Constraint) -> Any:
        factor, mask = constraint
        expression = self._made.get(factor)
        if expression is None:
            total = []
            for exponents, coefficient in factor.terms.items():
                product = z3.RealVal(coefficient)
                for variable, power in enumerate(exponents):
                    for _ in range(power):
                        product = product * z3.Real(f"x{variable}")
                total.append(product)
            expression = self._made[factor] = z3.Sum(total)
        return _RELATIONS[mask](expression)

    def _asked(self, conditions: Sequence[Any], milliseconds: int | None = None) -> tuple[str, Any]:
        """The answer, with a model or with the numbers of conditions that have no solution."""
        solver = z3.Tactic("qfnra-nlsat").solver()
        solver.set("timeout", milliseconds or self.milliseconds)
        solver.set("unsat_core", True)
        for number, condition in enumerate(conditions):
            solver.assert_and_track(condition, f"c{number}")
        answer = str(solver.check())
        if answer == "unsat":
            return answer, sorted(int(str(name)[1:]) for name in solver.unsat_core())
        return answer, solver.model() if answer == "sat" else None

    def decide(self, constraints: Sequence[Constraint]) -> tuple[str, dict[int, fmpq]]:
        """``"unsat"``, ``"unknown"``, or ``"sat"`` with values of the variables, simple ones where possible.

        Values are empty where no rational point was found.
        """
        conditions = [self._condition(constraint) for constraint in constraints]
        answer, model = self._asked(conditions)
        if answer != "sat":
            return answer, {}
        variables = sorted({variable for factor, _ in constraints for variable in factor.variables})
        size = len(next(iter(constraints[0][0].terms)))

        def value(found: Any, variable: int) -> Fraction:
            number = found.eval(z3.Real(f"x{variable}"), model_completion=True)
            number = number.approx(30) if z3.is_algebraic_value(number) else number
            return Fraction(number.numerator_as_long(), number.denominator_as_long())

        def point(values: dict[int, Fraction]) -> list[fmpq]:
            found = [fmpq(0)] * size
            for variable, number in values.items():
                found[variable] = fmpq(number.numerator, number.denominator)
            return found

        def holds(values: list[fmpq]) -> bool:
            return all(sign_mask(factor.at(values)) & mask for factor, mask in constraints)

        near = {variable: value(model, variable) for variable in variables}
        form = solved_form([factor for factor, mask in constraints if mask == ZERO], point(near))
        for largest in (2, 4, 8, 16, 60, 200, 1000, 10**5, 10**9):
            values = point({variable: x.limit_denominator(largest) for variable, x in near.items()})
            if solve(form, values) and holds(values):
                return answer, {variable: values[variable] for variable in variables}
        # Conditions with equality: one variable after the other gets a simple value that leaves a solution.
        fixed: dict[int, Fraction] = {}
        for variable in variables:
            for largest in (2, 8, 60, 10**4):
                number = value(model, variable).limit_denominator(largest)
                equal = z3.Real(f"x{variable}") == z3.RealVal(str(number))
                answer, found = self._asked([*conditions, equal], 500)
                if answer == "sat":
                    conditions.append(equal)
                    fixed[variable], model = number, found
                    break
            else:
                return "sat", {}
        values = point(fixed)
        return "sat", {variable: values[variable] for variable in variables} if holds(values) else {}

    def core(self, constraints: Sequence[Constraint]) -> list[Constraint]:
        """Some of the conditions that have no solution, from which none can be left out; [] if unknown.

        The first conditions are left out first.
        """
        answer, numbers = self._asked([self._condition(constraint) for constraint in constraints])
        if answer != "unsat":
            return []
        kept = [constraints[number] for number in numbers]
        for constraint in list(kept):
            fewer = [other for other in kept if other is not constraint]
            if fewer and self._asked([self._condition(other) for other in fewer], 1000)[0] == "unsat":
                kept = fewer
        return kept

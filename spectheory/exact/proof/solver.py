"""The extra ``proof``: z3 names a point of a region, or a small set of conditions without one.

No proof rests on its word: points are tried, and a set of conditions needs a lemma.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import Constraint
from spectheory.exact.proof.numbers import NEGATIVE, POSITIVE, ZERO

STEPS = 2_000_000
"""Of z3 in about a second: with a number of steps, other work on the machine changes no answer."""
DIGITS = 20
"""Of an algebraic number that is made rational."""


def point_or_core(
    constraints: Sequence[Constraint], seconds: float
) -> dict[int, fmpq] | list[Constraint] | None:
    """Values of the variables, or a few conditions without a solution; ``None`` if z3 does not say."""
    if find_spec("z3") is None:
        return None
    import z3

    variables: dict[int, Any] = {}
    solver = z3.Solver()
    solver.set("rlimit", int(STEPS * seconds))
    for number, (factor, mask) in enumerate(constraints):
        total: Any = z3.RealVal(0)
        for coefficient, powers in factor.sparse_terms:
            term: Any = z3.RealVal(coefficient)
            for variable, exponent in powers:
                symbol = variables.setdefault(variable, z3.Real(f"x{variable}"))
                for _ in range(exponent):
                    term = term * symbol
            total = total + term
        relation = {
            NEGATIVE: total < 0,
            ZERO: total == 0,
            POSITIVE: total > 0,
            NEGATIVE | ZERO: total <= 0,
            POSITIVE | ZERO: total >= 0,
            NEGATIVE | POSITIVE: total != 0,
        }[mask]
        solver.assert_and_track(relation, f"c{number}")
    answer = str(solver.check())
    if answer == "unsat":
        return [constraints[int(str(name)[1:])] for name in solver.unsat_core()]
    if answer != "sat":
        return None
    model, values = solver.model(), {}
    for variable, symbol in variables.items():
        value = model.eval(symbol, model_completion=True)
        value = value.approx(DIGITS) if z3.is_algebraic_value(value) else value
        values[variable] = fmpq(value.numerator_as_long(), value.denominator_as_long())
    return values

"""The extra ``proof``: z3 looks for a point of a region, or for a small set of conditions without one.

z3 runs in a process of its own (``solver_process.py``), and is started again where it ends.  Its limits are a
number of steps, and seconds of its processor, so that what else the machine does has no part in an answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import Constraint
from spectheory.exact.proof.rational_functions import ZERO, Factor, sign_mask
from spectheory.exact.proof.substitution import solve, solved_form

PROGRAM = Path(__file__).with_name("solver_process.py")
STEPS = 2_000_000
"""Of z3, in about a second."""


class RealSolver:
    """Questions about sign conditions, with a limit of steps for each.

    Attributes:
        seconds: the limit; what z3 does without counting steps may take one more.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._process: Popen[str] | None = None
        self._sent: set[Factor] = set()

    @staticmethod
    def is_there() -> bool:
        """Whether z3 is installed."""
        return find_spec("z3") is not None

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        self._sent = set()
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # of a question that was not sent
                    pipe.close()  # type: ignore[union-attr]

    def _asked(
        self,
        constraints: Sequence[Constraint],
        seconds: float | None = None,
        equal: Sequence[tuple[int, Fraction]] = (),
    ) -> tuple[str, Any]:
        """The answer, with the values of the variables, or with the places of conditions without a solution.

        Where the process ends, the answer is ``"unknown"``.
        """
        seconds = seconds or self.seconds
        if self._process is None:
            self._process = Popen([sys.executable, str(PROGRAM)], stdin=PIPE, stdout=PIPE, text=True)
        new = {factor: factor.terms for factor, _ in constraints if factor not in self._sent}
        question = {
            "polynomials": [
                (factor.number, [(exponents, hex(number)) for exponents, number in terms.items()])
                for factor, terms in new.items()
            ],
            "conditions": [(factor.number, mask) for factor, mask in constraints],
            "equal": [(variable, hex(x.numerator), hex(x.denominator)) for variable, x in equal],
            "variables": sorted({v for factor, _ in constraints for v in factor.variables}),
            "steps": int(STEPS * seconds),
            "seconds": seconds + 1,
        }
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        try:
            into.write(json.dumps(question) + "\n")
            into.flush()
            self._sent |= {*new}
            answer, found = json.loads(out.readline())
        except (OSError, json.JSONDecodeError):  # a line that is not whole
            self._end()
            return "unknown", None
        except BaseException:  # Ctrl-C in the middle of an answer
            self._end()
            raise
        if answer == "sat":
            found = {variable: Fraction(int(n, 16), int(d, 16)) for variable, n, d in found}
        return answer, found

    def decide(self, constraints: Sequence[Constraint]) -> tuple[str, dict[int, fmpq]]:
        """``"unsat"``, ``"unknown"``, or ``"sat"`` with values of the variables, simple ones where possible.

        Values are empty where no rational point was found.
        """
        answer, near = self._asked(constraints)
        if answer != "sat":
            return answer, {}
        size = len(next(iter(constraints[0][0].terms)))

        def point(values: dict[int, Fraction]) -> list[fmpq]:
            found = [fmpq(0)] * size
            for variable, number in values.items():
                found[variable] = fmpq(number.numerator, number.denominator)
            return found

        def holds(values: list[fmpq]) -> bool:
            return all(sign_mask(factor.at(values)) & mask for factor, mask in constraints)

        form = solved_form([factor for factor, mask in constraints if mask == ZERO], point(near))
        for largest in (2, 4, 8, 16, 60, 200, 1000, 10**5, 10**9):
            values = point({variable: x.limit_denominator(largest) for variable, x in near.items()})
            if solve(form, values) and holds(values):
                return answer, {variable: values[variable] for variable in near}
        # Conditions with equality: one variable after the other gets a simple value that leaves a solution.
        fixed: dict[int, Fraction] = {}
        for variable in near:
            for largest in (2, 8, 60, 10**4):
                number = near[variable].limit_denominator(largest)
                answer, found = self._asked(constraints, 0.5, [*fixed.items(), (variable, number)])
                if answer == "sat":
                    fixed[variable], near = number, found
                    break
            else:
                return "sat", {}
        values = point(fixed)
        return "sat", {variable: values[variable] for variable in near} if holds(values) else {}

    def core(self, constraints: Sequence[Constraint]) -> list[Constraint]:
        """Some of the conditions that have no solution; [] if that is unknown."""
        answer, numbers = self._asked(constraints)
        return [constraints[number] for number in numbers] if answer == "unsat" else []

    def smallest_core(self, core: Sequence[Constraint]) -> list[Constraint]:
        """Those of a core from which none can be left out; the first conditions are left out first."""
        kept = list(core)
        for constraint in core:
            fewer = [other for other in kept if other is not constraint]
            if fewer and self._asked(fewer, 1)[0] == "unsat":
                kept = fewer
        return kept

"""The process in which z3 answers, run as a file: a search outlives a solver that ends.

It imports nothing of the package.  A question is a line of JSON on the standard input, with whole numbers in
hexadecimal, which have no limit of digits:

- ``polynomials``: (number, [(exponents, coefficient), ...]) of those that have not been sent yet;
- ``conditions``: (number, mask), and ``equal``: (variable, numerator, denominator);
- ``variables``: whose values are asked for;
- ``steps``: the limit of z3, and ``seconds`` of the processor, after which the process is ended, because not
  everything counts as a step.

The answer is a line, too: ``"unsat"`` with the places of conditions that have no solution, ``"sat"`` with
(variable, numerator, denominator), or ``"unknown"``.
"""

import json
import os
import signal
import sys
from typing import Any

import z3

RELATIONS = {
    1: lambda x: x < 0,
    2: lambda x: x == 0,
    4: lambda x: x > 0,
    3: lambda x: x <= 0,
    6: lambda x: x >= 0,
    5: lambda x: x != 0,
    7: lambda x: x == x,
}
MEGABYTES = 2000


def expression(terms: list[tuple[list[int], str]]) -> Any:
    """A polynomial of z3."""
    total = []
    for exponents, coefficient in terms:
        product = z3.RealVal(int(coefficient, 16))
        for variable, power in enumerate(exponents):
            for _ in range(power):
                product = product * z3.Real(f"x{variable}")
        total.append(product)
    return z3.Sum(total)


def answer(question: dict[str, Any], made: dict[int, Any]) -> tuple[str, Any]:
    """The answer to one question; ``made`` has the polynomials."""
    made |= {number: expression(terms) for number, terms in question["polynomials"]}
    conditions = [RELATIONS[mask](made[number]) for number, mask in question["conditions"]]
    for variable, numerator, denominator in question["equal"]:
        conditions.append(z3.Real(f"x{variable}") == z3.Q(int(numerator, 16), int(denominator, 16)))
    solver = z3.Tactic("qfnra-nlsat").solver()
    solver.set("rlimit", question["steps"])
    solver.set("unsat_core", True)
    for number, condition in enumerate(conditions):
        solver.assert_and_track(condition, f"c{number}")
    found = str(solver.check())
    if found == "unsat":
        return found, sorted(int(str(name)[1:]) for name in solver.unsat_core())
    if found != "sat":
        return found, None
    model, values = solver.model(), []
    for variable in question["variables"]:
        number = model.eval(z3.Real(f"x{variable}"), model_completion=True)
        number = number.approx(30) if z3.is_algebraic_value(number) else number
        values.append((variable, hex(number.numerator_as_long()), hex(number.denominator_as_long())))
    return found, values


def main() -> None:
    """Answer until the input ends; Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    z3.set_param("memory_max_size", MEGABYTES)
    made: dict[int, Any] = {}
    for line in sys.stdin:
        question = json.loads(line)
        _end_after(question["seconds"])
        try:
            found = answer(question, made)
        except z3.Z3Exception:
            found = "unknown", None
        _end_after(0)
        print(json.dumps(found), file=out, flush=True)


def _end_after(seconds: float) -> None:
    """End the process after so much time of the processor; 0 for never."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main()

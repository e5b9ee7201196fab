"""Exact solutions: HiGHS (highs2018) finds a basis, python-flint solves and certifies it in rationals."""

from collections.abc import Iterable, Sequence

from flint import fmpq

from spectheory.foundation.errors import CertificationError, InvalidInputError, SolverError
from spectheory.foundation.exact_numbers import to_fraction, to_fractions
from spectheory.optima.bounds.tolerances import outward
from spectheory.optima.solving.exact_basis import ExactBasis, as_objects, optimise, standard_form
from spectheory.optima.solving.float_solver import solve
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.simplex import Simplex
from spectheory.optima.solving.solution import Solution, check_solution

MAX_PIVOTS = 1000
"""Largest number of exact pivots from the basis of HiGHS.  Few programs need any pivot."""
FROM_SLACKS = 20
"""From the basis of the slacks, ``FROM_SLACKS`` times ``MAX_PIVOTS`` pivots are allowed."""


def solve_exact(program: LinearProgram) -> Solution:
    """Solve a program in rational arithmetic.

    1. HiGHS finds an optimal basis in floats.
    2. We compute the primal and dual points of this basis exactly.
    3. If they are not exactly optimal (degeneracy, tolerances), we continue with exact simplex pivots.
    4. We check the result against the program: feasible, dual feasible, complementary, no gap.

    Args:
        program: an exact program.

    Returns:
        The solution in Fractions.  ``lower`` and ``upper`` are the nearest floats around the value.

    Raises:
        InvalidInputError: the program holds floats.
        SolverError: the program is infeasible or unbounded; the text names program, size and status.
        CertificationError: the basis is not optimal after 1000 pivots (20 000 from the basis of slacks).

    Example:
        >>> from spectheory.pairs.pair import ModelPair
        >>> from spectheory.optima import single_path_program
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> print(solve_exact(single_path_program(pair)).value)
        20/9
    """
    return solve_exact_after(program, None)[0]


def solve_in_its_arithmetic(program: LinearProgram) -> Solution:
    """Solve an exact program with ``solve_exact``, a program in floats with ``solve``."""
    return solve_exact(program) if program.is_exact else solve(program)


def solve_exact_after(program: LinearProgram, last: Sequence[int] | None) -> tuple[Solution, list[int]]:
    """Do the same as ``solve_exact`` with a warm start, for a program that got more rows at its end.

    Args:
        program: an exact program.
        last: the optimal basis without the new rows.  The slacks of the new rows complete it.  If it is None,
            HiGHS finds the first basis.

    Returns:
        The solution and its basis.
    """
    if not program.is_exact:
        raise InvalidInputError(
            f"{program.describe()} holds floats; solve it with solve(), or state it exactly"
        )
    form = standard_form(program)
    slacks = list(range(program.num_variables, sum(program.size)))
    try:
        first = Simplex().basis(program) if last is None else [*last, *slacks[len(last) :]]
        starts = [(first, MAX_PIVOTS), (slacks, FROM_SLACKS * MAX_PIVOTS)]
    except SolverError:  # HiGHS can report a feasible program as infeasible, so we decide in rationals
        starts = [(slacks, FROM_SLACKS * MAX_PIVOTS)]
    for start, most in starts:
        try:
            # a float basis can be singular in rationals; the slack basis never is
            basis, _ = optimise(ExactBasis(form, start), most)
            break
        except ZeroDivisionError:
            continue
    else:
        raise CertificationError(f"{program.describe()}: every starting basis is singular in rationals")
    point = [basis.values.get(j, fmpq(0)) for j in range(program.num_variables)]
    signs = zip(form.row_signs, basis.multipliers, strict=True)
    multipliers = [form.direction * sign * value for sign, value in signs]
    return exact_solution(program, point, multipliers), basis.variables


def exact_solution(
    program: LinearProgram, point: Iterable[object], multipliers: Iterable[object]
) -> Solution:
    """Check that a primal [n] and a dual [m] point are exactly optimal, and return them as a Solution."""
    primal = to_fractions(as_objects(list(point)))
    dual = to_fractions(as_objects(list(multipliers)))
    value = to_fraction(sum(c * x for c, x in zip(program.objective, primal, strict=True)))
    lower, upper = outward(value)
    solution = Solution(
        program=program.name,
        method=program.name,
        value=value,
        primal=dict(zip(program.variables, primal, strict=True)),
        dual=program.split_by_block(dual),
        gap=value - value,
        arithmetic="exact",
        lower=lower,
        upper=upper,
    )
    check_solution(program, solution)
    return solution

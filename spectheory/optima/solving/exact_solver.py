"""Exact solutions: HiGHS (highs2018) finds a basis, python-flint solves and certifies it in rationals."""

from collections.abc import Iterable, Sequence

import numpy as np
from flint import fmpq

from spectheory.foundation.errors import CertificationError, InvalidInputError, SolverError
from spectheory.foundation.exact_numbers import to_flint, to_fraction, to_fractions
from spectheory.optima.bounds.tolerances import ROW_TOLERANCE, outward
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


def solve_exact_by_rows(
    program: LinearProgram,
    block_name: str,
    initial_rows: Iterable[int],
    rows_per_round: int = 200,
    max_rounds: int = 1000,
) -> Solution:
    """Do the same as ``solve_exact`` by row generation, for a block of many rows of which few bind.

    Solve with some rows of the block, add the rows that the solution violates most, and repeat.  The last
    point satisfies all rows exactly.  Its multipliers, with 0 on the rows that were never added, are feasible
    for the full dual.  So the result is certified for the whole program.

    Args:
        program: an exact program.
        block_name: the block whose rows are generated.
        initial_rows: row indices of the block to start with.
        rows_per_round: the largest number of rows added per round.
        max_rounds: the largest number of rounds.

    Raises:
        SolverError: a relaxation is not solved to optimality.
        CertificationError: rows are still violated after ``max_rounds`` rounds.
    """
    block = program.block(block_name)
    kept = np.unique(np.asarray(list(initial_rows), dtype=int))
    for _ in range(max_rounds):
        solution = solve_exact(program.with_rows(block_name, kept))
        added = _violated_rows(program, block_name, solution, rows_per_round)
        if not added.size:
            multipliers = np.full(block.size, fmpq(0), dtype=object)
            multipliers[kept] = solution.dual[block_name]
            parts = [multipliers if b.name == block_name else solution.dual[b.name] for b in program.blocks]
            return exact_solution(program, list(solution.primal.values()), np.concatenate(parts))
        kept = np.union1d(kept, added)
    raise CertificationError(
        f"{program.describe()}: rows were still violated after {max_rounds} rounds; raise max_rounds"
    )


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


def _violated_rows(program: LinearProgram, block_name: str, solution: Solution, most: int) -> np.ndarray:
    """List at most ``most`` rows of the block that the primal violates.

    If floats show clear violations, the worst come first.  Otherwise all rows are checked in rationals.
    """
    block = program.block(block_name)
    up = 1 if block.sense == "<=" else -1
    point = np.array(list(solution.primal.values()), dtype=object)
    excess = up * (block.activity(point.astype(float)) - block.rhs.astype(float))
    worst = np.argsort(-excess)[:most]
    # these violations are far above rounding errors
    clear = worst[excess[worst] > ROW_TOLERANCE]
    if clear.size:
        return clear
    return np.flatnonzero(up * (block.activity(to_flint(point)) - to_flint(block.rhs)) > 0)[:most]

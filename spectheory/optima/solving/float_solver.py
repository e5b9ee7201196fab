"""Solutions in float64 with certified bounds, by HiGHS."""

import math
from typing import Literal, get_args

import numpy as np

from spectheory.foundation.errors import InvalidInputError, SolverError
from spectheory.optima.bounds.tolerances import GAP_TOLERANCE, SOLVER_TOLERANCE, rounding_allowance
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.simplex import Simplex
from spectheory.optima.solving.solution import Solution

Solver = Literal["highspy", "cvxpy"]
"""The package through which HiGHS gets a program: its own, or cvxpy with cvxpy's reductions."""
UNKNOWN_STATUS = "Cannot unpack invalid solution"
"""The beginning of cvxpy's ``ValueError`` for a status of HiGHS that cvxpy does not know."""


def check_solver(solver: str) -> None:
    if solver not in get_args(Solver):
        raise InvalidInputError(f"solver must be one of {', '.join(get_args(Solver))}, got {solver!r}")


def solve(
    program: LinearProgram, gap_tolerance: float = GAP_TOLERANCE, *, solver: Solver = "highspy"
) -> Solution:
    """Solve a program in float64 with HiGHS (highs2018).

    Args:
        program: the program.
        gap_tolerance: largest |primal - dual objective| accepted, relative to max(1, |value|).
        solver: ``"highspy"`` hands HiGHS the sparse matrices of the program.  ``"cvxpy"`` hands it the cvxpy
            problem, for a second opinion that shares no code with the first.

    Returns:
        The solution.  If the program has a ``repair``, the primal is the repaired, feasible point.

    Raises:
        InvalidInputError: an unknown solver.
        SolverError: the status is not optimal, or the duality gap is above the tolerance.  The text names
            the program, its size and the status.

    Example:
        >>> from spectheory.pairs.pair import ModelPair
        >>> from spectheory.optima import single_path_program
        >>> pair = ModelPair.context_free_pair([0.25, 0.75], [0.75, 0.25], draft_length=1)
        >>> round(solve(single_path_program(pair)).value, 9)
        1.5
    """
    check_solver(solver)
    point, multipliers = _by_cvxpy(program) if solver == "cvxpy" else Simplex().solve(program)
    return float_solution(program, point, multipliers, gap_tolerance)


def float_solution(
    program: LinearProgram, point: np.ndarray, multipliers: np.ndarray, gap_tolerance: float = GAP_TOLERANCE
) -> Solution:
    """Certify a point [n] and multipliers [m] of a float solver, as ``solve`` does."""
    if program.repair is not None:
        point = program.repair(program, point)
    _, _, b, c = program.matrices
    value, dual_value = math.fsum(c * point), math.fsum(b * multipliers)
    gap = abs(value - dual_value)
    if not gap <= gap_tolerance * max(1.0, abs(value)):
        raise SolverError(
            f"{program.describe()}: HiGHS says optimal, but the primal and dual objectives "
            f"{value!r} and {dual_value!r} differ by {gap:.3e}, more than the tolerance {gap_tolerance:.1e}"
        )
    lower, upper = certified_bounds(program, point, multipliers)
    return Solution(
        program=program.name,
        method=program.name,
        value=value,
        primal=dict(zip(program.variables, point.tolist(), strict=True)),
        dual=program.split_by_block(multipliers),
        gap=gap,
        arithmetic="float64",
        lower=lower,
        upper=upper,
    )


def certified_bounds(
    program: LinearProgram, point: np.ndarray, multipliers: np.ndarray
) -> tuple[float, float]:
    """Lower and upper bounds on the optimum, which hold for every tolerance of the solver.

    For a maximum, with y the multipliers clipped to their signs, u the box (0 ≤ x ≤ u) and x feasible:

        c·x ≤ optimum ≤ b·y + u Σ_j max(0, c_j - (Aᵀy)_j).

    For a minimum the two sides change places.  We widen both by the rounding allowance of N terms times
    Σ|terms|, with N the number of variables and nonzero multipliers.  This covers the rounding of the sums
    and of the coefficients.  Without a repair c·x is infinite.  Without a box the other bound is infinite.

    Args:
        program: the program.
        point: a feasible point, [n].  It is used only if the program has a ``repair``.
        multipliers: any multipliers, [m], in the program's sign convention.

    Returns:
        (lower, upper).
    """
    A, _, b, c = program.matrices
    up = 1.0 if program.direction == "max" else -1.0
    signs = program.dual_signs()
    y = up * np.where(signs * multipliers < 0, 0.0, multipliers)
    unit = rounding_allowance(program.num_variables + int(np.count_nonzero(y)))

    below, above = -math.inf, math.inf
    if program.repair is not None:
        terms = up * c * point
        below = math.fsum(terms) - unit * math.fsum(abs(terms))
    if program.box is not None:
        excess = np.maximum(0.0, up * c - A.T @ y)
        size = math.fsum(abs(b * y)) + program.box * math.fsum(abs(c) + abs(A).T @ abs(y))
        above = math.fsum(b * y) + program.box * math.fsum(excess) + unit * size
    return (below, above) if up > 0 else (-above, -below)


def _by_cvxpy(program: LinearProgram) -> tuple[np.ndarray, np.ndarray]:
    """Compute the same as ``Simplex.solve`` through cvxpy.

    cvxpy minimises, and its multipliers enter the Lagrangian as λ (left - right), with λ ≥ 0 for both
    directions of an inequality.
    """
    import cvxpy

    stated = program.to_cvxpy()
    tolerances = dict.fromkeys(
        ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), SOLVER_TOLERANCE
    )
    try:
        stated.problem.solve(solver=cvxpy.HIGHS, presolve="off", threads=1, **tolerances)  # see ``Simplex``
    except (cvxpy.error.SolverError, ValueError) as error:
        if not isinstance(error, cvxpy.error.SolverError) and UNKNOWN_STATUS not in str(error):
            raise
        raise SolverError(f"{program.describe()}: HiGHS failed: {error}") from error
    if stated.problem.status != cvxpy.OPTIMAL:
        raise SolverError(f"{program.describe()}: expected status optimal, got {stated.problem.status}")
    up = 1.0 if program.direction == "max" else -1.0
    orient = {"<=": up, ">=": -up, "==": up}
    parts = [
        orient[block.sense] * np.asarray(stated.constraints[block.name].dual_value, dtype=float).reshape(-1)
        for block in program.blocks
    ]
    return np.asarray(stated.variable.value, dtype=float), np.concatenate([np.zeros(0), *parts])

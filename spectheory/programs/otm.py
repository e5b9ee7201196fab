"""Optimal transport with membership cost at one position (spectr Eq. 4), as printed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import product
from typing import Any

import numpy as np

from spectheory.errors import EnumerationTooLargeError
from spectheory.programs.budgets import check_num_drafts
from spectheory.programs.exact_solver import solve_exact
from spectheory.programs.float_solver import solve
from spectheory.programs.linear_program import ConstraintBlock, LinearProgram, ones
from spectheory.programs.min_cut import (
    MinCut,
    bernoulli_acceptance,
    check_rows,
    optimal_acceptance,
    uniform_acceptance,
)
from spectheory.programs.solution import Solution

__all__ = [
    "MinCut",
    "bernoulli_acceptance",
    "optimal_acceptance",
    "otm_optimum",
    "otm_program",
    "uniform_acceptance",
]

MAX_VARIABLES = 20_000


def otm_program(
    target_probs: Sequence[Any] | np.ndarray,
    draft_probs: Sequence[Any] | np.ndarray,
    num_drafts: int,
    max_variables: int = MAX_VARIABLES,
) -> LinearProgram:
    """The linear program of optimal transport with membership cost.

    Source: spectr Eq. 4 (its p is our draft, its q our target).  Variables: the transport plan
    π(x, y), x ∈ V^K the drafts and y ∈ V the output.

        min  Σ_{x ∈ V^K} Σ_{y ∈ V} π(x, y) 1{y ∉ S(x)}                             (4)
        s.t. Σ_y π(x, y) = Π_k draft(x_k)   for all x     (couplings, Definition 1)
             Σ_x π(x, y) = target(y)        for all y
             π ≥ 0

    The optimum is the rejection probability; the optimal acceptance is 1 minus it.

    Args:
        target_probs, draft_probs: one row each, [V]; strings and Fractions are exact.
        num_drafts: K.
        max_variables: refuse programs with more than this many of the V^{K+1} variables.

    Returns:
        The program; variables are labelled (drafts, output).

    Raises:
        InvalidInputError: rows that are not probabilities over one vocabulary, or a bad num_drafts.
        EnumerationTooLargeError: V^{K+1} is above the limit.

    Example:
        >>> otm_program(["1/3", "2/3"], ["2/3", "1/3"], num_drafts=2).size
        (8, 6)
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_rows(target_probs, draft_probs)
    V = len(target)
    count = V ** (num_drafts + 1)
    if count > max_variables:
        raise EnumerationTooLargeError(
            f"optimal transport of {num_drafts} drafts over {V} tokens has {count} variables, the limit is "
            f"{max_variables}; use optimal_acceptance (the min cut), or raise max_variables"
        )
    exact = draft.dtype == object
    drafts = list(product(range(V), repeat=num_drafts))
    variables = tuple((x, y) for x in drafts for y in range(V))
    one = ones(count, exact)
    rejected = np.array([y not in x for x, y in variables])
    number = np.arange(count)

    def marginal(name: str, rows: np.ndarray, rhs: np.ndarray) -> ConstraintBlock:
        return ConstraintBlock(name, "spectr Eq. 4", "==", rows, number, one, rhs)

    draft_law = reduce(lambda law, row: np.multiply.outer(law, row).ravel(), [draft] * num_drafts)
    repair = partial(_as_coupling, draft_law=draft_law.astype(float), target_probs=target.astype(float))
    return LinearProgram(
        name="optimal transport LP",
        source="spectr Eq. 4",
        direction="min",
        variables=variables,
        objective=np.where(rejected, one, one - one),
        blocks=(
            marginal("draft marginal", number // V, draft_law),
            marginal("target marginal", number % V, target),
        ),
        box=1.0,
        repair=repair,
    )


def otm_optimum(
    target_probs: Sequence[Any] | np.ndarray,
    draft_probs: Sequence[Any] | np.ndarray,
    num_drafts: int,
    max_variables: int = MAX_VARIABLES,
) -> Solution:
    """The least rejection probability at one position, with an optimal transport plan.

    Args:
        target_probs, draft_probs: one row each, [V]; strings and Fractions are exact.
        num_drafts: K.
        max_variables: refuse programs with more variables.

    Returns:
        The solution of ``otm_program``: ``value`` is the rejection probability (acceptance is
        1 - value) and ``primal`` the plan, {(drafts, output): probability}.

    Raises:
        InvalidInputError, EnumerationTooLargeError: as ``otm_program``.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> solution = otm_optimum(["1/3", "2/3"], ["2/3", "1/3"], num_drafts=2)
        >>> print(solution.value, solution.primal[(1, 1), 1])
        1/9 1/9
    """
    program = otm_program(target_probs, draft_probs, num_drafts, max_variables)
    return solve_exact(program) if program.is_exact else solve(program)


def _as_coupling(
    program: LinearProgram, point: np.ndarray, draft_law: np.ndarray, target_probs: np.ndarray
) -> np.ndarray:
    """A coupling next to a plan that nearly is one: scale rows, then columns, down to their
    marginals, and spread what is missing independently."""
    plan = np.maximum(point, 0.0).reshape(len(draft_law), len(target_probs))
    for axis, law in ((1, draft_law), (0, target_probs)):
        sums = plan.sum(axis=axis)
        factor = np.minimum(1.0, law / np.where(sums > 0, sums, 1.0))
        plan = plan * (factor[:, None] if axis == 1 else factor)
    missing_rows = np.maximum(draft_law - plan.sum(axis=1), 0.0)
    missing_columns = np.maximum(target_probs - plan.sum(axis=0), 0.0)
    total = missing_columns.sum()
    if total > 0:
        plan = plan + np.multiply.outer(missing_rows, missing_columns / total)
    return plan.ravel()

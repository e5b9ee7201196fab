"""Optimal transport with membership cost at one position (spectr2023 Eq. 3-4), for any draft distribution."""

from collections.abc import Sequence
from functools import partial, reduce
from itertools import product
from typing import Any

import numpy as np

from spectheory.foundation.arrays import positive_part
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.optima.one_position.min_cut import (
    DraftLaw,
    check_draft_law,
    check_single_rows,
)
from spectheory.optima.solving.builder import ProgramBuilder
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.optima.solving.linear_program import LinearProgram, Repair
from spectheory.optima.solving.solution import Solution

# A program of this size takes seconds.  The minimum cut needs no plan and has no limit.
MAX_VARIABLES = 20_000


def otm_program(
    target_probs: Sequence[Any] | np.ndarray,
    draft_probs: Sequence[Any] | np.ndarray | None = None,
    drafts: int | None = None,
    max_variables: int = MAX_VARIABLES,
    *,
    draft_law: DraftLaw | None = None,
) -> LinearProgram:
    """State the linear program of optimal transport with membership cost.

    Source: spectr2023 Eq. 4 (p there is our draft, q our target).  Variables: the transport plan
    π(x, y), x ∈ V^K the drafts and y ∈ V the output.  S(x) is the set of tokens in x.

        min  Σ_{x ∈ V^K} Σ_{y ∈ V} π(x, y) 1{y ∉ S(x)}                             (4)
        s.t. Σ_y π(x, y) = Π_k draft(x_k)   for all x     (couplings, Definition 1)
             Σ_x π(x, y) = target(y)        for all y
             π ≥ 0

    The optimum is the rejection probability.  The optimal acceptance is 1 minus the optimum.  An arbitrary
    joint law of the K drafts may replace Π_k draft(x_k).

    Args:
        target_probs: one row, [V]; strings and Fractions are exact.
        draft_probs: the row of K i.i.d. drafts, [V].
        drafts: K.
        max_variables: largest number of variables, V times the number of draft tuples.
        draft_law: instead of ``draft_probs`` and ``drafts``, {(x_1, .., x_K): probability}; missing
            tuples have probability 0.

    Returns:
        The program; variables are labelled (drafts, output).

    Raises:
        InvalidInputError: the drafts are given in neither or both ways, the rows are not distributions over
            one vocabulary, the draft law is not a distribution over tuples of its tokens, or drafts is not
            an integer of at least 1.
        EnumerationTooLargeError: there are more than ``max_variables`` variables.

    Example:
        >>> otm_program(["1/3", "2/3"], ["2/3", "1/3"], drafts=2).size
        (8, 6)
        >>> otm_program(["1/2", "1/4", "1/4"], draft_law={(0, 1): "1/2", (1, 2): "1/2"}).size
        (6, 5)
    """
    if draft_law is not None:
        if draft_probs is not None or drafts is not None:
            raise InvalidInputError("draft_law stands instead of draft_probs and drafts; give one of the two")
        target, tuples, law = check_draft_law(target_probs, draft_law)
        _check_count(len(target), len(tuples), len(tuples[0]), max_variables, "use min_cut_of_law")
        return _program(target, tuples, law)
    if draft_probs is None:
        raise InvalidInputError("the drafts are missing; give draft_probs and drafts, or draft_law")
    num_drafts = check_count("drafts", drafts)
    target, draft = check_single_rows(target_probs, draft_probs)
    V = len(target)
    _check_count(V, V**num_drafts, num_drafts, max_variables, "use optimal_acceptance (the min cut)")
    law = reduce(lambda law, row: np.multiply.outer(law, row).ravel(), [draft] * num_drafts)
    return _program(target, list(product(range(V), repeat=num_drafts)), law)


def otm_optimum(
    target_probs: Sequence[Any] | np.ndarray,
    draft_probs: Sequence[Any] | np.ndarray | None = None,
    drafts: int | None = None,
    max_variables: int = MAX_VARIABLES,
    *,
    draft_law: DraftLaw | None = None,
) -> Solution:
    """Compute the least rejection probability at one position, with an optimal transport plan.

    It takes the arguments of ``otm_program`` and raises the same errors.

    Returns:
        The solution of ``otm_program``: ``value`` is the rejection probability (acceptance is
        1 - value) and ``primal`` the plan, {(drafts, output): probability}.

    Raises:
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> solution = otm_optimum(["1/3", "2/3"], ["2/3", "1/3"], drafts=2)
        >>> print(solution.value, solution.primal[(1, 1), 1])
        1/9 1/9
        >>> print(otm_optimum(["1/2", "1/4", "1/4"], draft_law={(0, 1): "1/3", (1, 2): "2/3"}).value)
        1/6
    """
    program = otm_program(target_probs, draft_probs, drafts, max_variables, draft_law=draft_law)
    return solve_in_its_arithmetic(program)


def _check_count(vocab_size: int, tuples: int, num_drafts: int, max_variables: int, advice: str) -> None:
    count = tuples * vocab_size
    if count > max_variables:
        raise EnumerationTooLargeError(
            f"optimal transport of {num_drafts} drafts over {vocab_size} tokens has {count} variables, the "
            f"limit is {max_variables}; {advice}, or raise max_variables"
        )


def _program(target: np.ndarray, drafts: list[tuple[int, ...]], draft_probs: np.ndarray) -> LinearProgram:
    V = len(target)
    rejected = np.array([[y not in x for y in range(V)] for x in drafts])
    model = ProgramBuilder("optimal transport LP", "spectr2023 Eq. 4")
    plan = model.variables([(x, y) for x in drafts for y in range(V)]).reshape(len(drafts), V)
    model.minimise((plan * rejected).sum())
    model.add("draft marginal", plan.sum(axis=1) == draft_probs, "spectr2023 Eq. 4")
    model.add("target marginal", plan.sum(axis=0) == target, "spectr2023 Eq. 4")
    return model.program(box=1.0, repair=coupling_repair(draft_probs, target))


def coupling_repair(row_law: np.ndarray, column_law: np.ndarray) -> Repair:
    """Build a repair that turns a near coupling of two distributions into an exact coupling."""
    return partial(_as_coupling, draft_law=row_law.astype(float), target_probs=column_law.astype(float))


def _as_coupling(
    program: LinearProgram, point: np.ndarray, draft_law: np.ndarray, target_probs: np.ndarray
) -> np.ndarray:
    """Repair a near coupling of the drafts and the output.

    We scale rows, then columns, down to their marginals, and spread the missing mass independently.
    """
    plan = positive_part(point).reshape(len(draft_law), len(target_probs))
    for axis, law in ((1, draft_law), (0, target_probs)):
        sums = plan.sum(axis=axis)
        factor = np.minimum(1.0, law / np.where(sums > 0, sums, 1.0))
        plan = plan * (factor[:, None] if axis == 1 else factor)
    missing_rows = positive_part(draft_law - plan.sum(axis=1))
    missing_columns = positive_part(target_probs - plan.sum(axis=0))
    total = missing_columns.sum()
    if total > 0:
        plan = plan + np.multiply.outer(missing_rows, missing_columns / total)
    return plan.ravel()

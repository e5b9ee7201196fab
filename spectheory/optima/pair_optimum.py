"""The best block efficiency of any valid verifier on a pair."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

from spectheory.foundation.errors import EnumerationTooLargeError, SolverError
from spectheory.optima.context_free.merged_weights import context_free_path_optimum
from spectheory.optima.context_free.promises import context_free_interval
from spectheory.optima.cutting_planes import multi_path_optimum
from spectheory.optima.deterministic_drafts import deterministic_optimum
from spectheory.optima.interval.interval import Progress, multi_path_interval
from spectheory.optima.multi_path import multi_path_program
from spectheory.optima.single_path import single_path_optimum
from spectheory.optima.solving.float_solver import Solver, check_solver, solve
from spectheory.optima.solving.solution import Optimum, Solution
from spectheory.pairs.drafts import Deterministic, DraftProcess, Iid
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair, check_pair

MAX_EXACT_DRAFTS = 1_000
"""For more i.i.d. drafts the optimum is an interval: exact rationals would have too many digits."""
MAX_LEAVES = 100
"""For more leaves V^L the optimum of i.i.d. drafts is an interval: the program takes longer from here on."""
MAX_LEAVES_OF_SYMMETRIC_TREES = 400_000
"""A context-free pair with more leaves V^L is solved without its tree (``context_free_interval``)."""


class _Question(NamedTuple):
    """The arguments of ``optimum``.  ``limits`` are the keyword arguments for ``multi_path_interval``."""

    pair: ModelPair
    process: DraftProcess
    limits: dict[str, Any]


def optimum(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    *,
    relative_gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
    solver: Solver = "highspy",
) -> Optimum:
    """Compute the largest block efficiency E[τ+1] of any valid verifier, with its proof.

    Source: greedy2026 Theorem 3.3 for one path, Theorem 4.3 for several.  The value is exact for an exact
    pair whose program is small enough.  For i.i.d. drafts and more than 100 leaves V^L it is the lower bound
    of an interval that ``multi_path_interval`` certifies.  If the tree of a context-free pair is too large,
    we solve it without the tree: exactly for one path (``context_free_path_optimum``), as an interval for
    several paths (``context_free_interval``).

    Args:
        pair: the models.
        drafts: K, for i.i.d. drafted paths, or another draft process.
        relative_gap, time_limit, progress: as in ``multi_path_interval``; used only for an interval.  The
            gap 0 asks for the program, which takes seconds for 1 000 leaves.
        solver: ``"cvxpy"`` states the program with all its antichains in floats and solves it through cvxpy:
            a second opinion, for small pairs.

    Returns:
        The optimum in tokens per target call, at most L + 1; it depends on the pair and the process only.
        With its proof it is a ``Solution`` or a ``CertifiedInterval``; without the tree it is an ``Optimum``.

    Raises:
        InvalidInputError: ``drafts`` is neither an integer of at least 1 nor a draft process, or the solver
            is unknown.
        EnumerationTooLargeError: the pair is too large for the program.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> best = optimum(pair)
        >>> print(best.value, best.method)
        20/9 single-path LP
    """
    check_solver(solver)
    pair, process = check_pair(pair).normalised(), draft_process(drafts).normalised()
    if solver == "cvxpy":
        stated = multi_path_program(pair.to_float(), process.to_float())
        return _at_most(solve(stated, solver=solver), pair.draft_length + 1)
    limits = {"relative_gap": relative_gap, "time_limit": time_limit, "progress": progress}
    asked = _Question(pair, process, limits)
    solve_program = next(solve for applies, solve in PROGRAMS if applies(asked))
    try:
        return _at_most(solve_program(asked), pair.draft_length + 1)
    except (EnumerationTooLargeError, SolverError):
        # The tree is too large for the program, or the duality gap of HiGHS is above the tolerance, as can
        # happen for probabilities near 1e-7.  A search does not have these limits.
        if relative_gap == 0 or not isinstance(process, Iid):
            raise
    search = next(search for applies, search in SEARCHES if applies(asked))
    return search(asked)


def _is_large(asked: _Question) -> bool:
    """True if an interval of i.i.d. drafts takes less time than the program."""
    leaves = asked.pair.vocab_size**asked.pair.draft_length
    return isinstance(asked.process, Iid) and leaves > MAX_LEAVES and asked.limits["relative_gap"] > 0


def _refuse(asked: _Question) -> Solution:
    raise EnumerationTooLargeError(
        f"the program of {asked.process.num_drafts} drafts, {asked.pair.vocab_size} tokens and draft length "
        f"{asked.pair.draft_length} is too large; the limits are {MAX_EXACT_DRAFTS} drafts and "
        f"{MAX_LEAVES} leaves"
    )


PROGRAMS: tuple[tuple[Callable[[_Question], bool], Callable[[_Question], Solution]], ...] = (
    (lambda asked: asked.process.num_drafts > MAX_EXACT_DRAFTS, _refuse),
    (lambda asked: asked.process == Iid(1), lambda asked: single_path_optimum(asked.pair)),
    (
        lambda asked: isinstance(asked.process, Deterministic),
        lambda asked: deterministic_optimum(asked.pair, cast(Deterministic, asked.process)),
    ),
    (_is_large, _refuse),
    (lambda asked: True, lambda asked: multi_path_optimum(asked.pair, asked.process)),
)
"""(condition, solver): ``optimum`` first tries the solver of the first condition that holds."""

SEARCHES: tuple[tuple[Callable[[_Question], bool], Callable[[_Question], Optimum]], ...] = (
    (
        lambda asked: asked.pair.context_free and asked.process.num_drafts == 1,
        lambda asked: context_free_path_optimum(asked.pair),
    ),
    (
        lambda asked: (
            asked.pair.context_free
            and asked.pair.vocab_size**asked.pair.draft_length > MAX_LEAVES_OF_SYMMETRIC_TREES
        ),
        lambda asked: context_free_interval(asked.pair, asked.process.num_drafts, **asked.limits),
    ),
    (
        lambda asked: True,
        lambda asked: multi_path_interval(asked.pair, asked.process.num_drafts, **asked.limits),
    ),
)
"""(condition, search): for i.i.d. drafts, the first condition that holds applies if the program fails."""


def _at_most(solution: Solution, length: int) -> Solution:
    """Clip the value and the bounds to L + 1.

    The float program may exceed L + 1 by rounding, or because rows sum to 1 only within their tolerance.
    """
    most = type(solution.value)(length)
    return replace(
        solution,
        value=min(solution.value, most),
        lower=min(solution.lower, float(length)),
        upper=min(solution.upper, float(length)),
    )

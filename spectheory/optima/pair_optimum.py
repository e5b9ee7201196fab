"""The best block efficiency of any valid verifier on a pair."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

from spectheory.foundation.errors import EnumerationTooLargeError, SolverError
from spectheory.optima.context_free.merged_weights import context_free_path_optimum
from spectheory.optima.context_free.promises import context_free_interval
from spectheory.optima.deterministic_drafts import deterministic_optimum
from spectheory.optima.drafted_trees import tree_optimum
from spectheory.optima.interval.interval import Progress, multi_path_interval
from spectheory.optima.multi_path import (
    MAX_ANTICHAINS,
    MAX_LISTED_ANTICHAINS,
    count_antichains,
    multi_path_optimum,
)
from spectheory.optima.single_path import single_path_optimum
from spectheory.optima.solving.solution import Optimum, Solution
from spectheory.pairs.drafts import Deterministic, DraftProcess, Iid
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.trees import Tree
from spectheory.pairs.pair import ModelPair, check_pair

MAX_EXACT_DRAFTS = 1_000
"""For more i.i.d. drafts the optimum is an interval: exact rationals would have too many digits."""
MAX_LEAVES_OF_SYMMETRIC_TREES = 400_000
"""A context-free pair with more leaves V^L is solved without its tree (``context_free_interval``)."""


class _Question(NamedTuple):
    """The arguments of ``optimum``.  ``limits`` are the keyword arguments for ``multi_path_interval``."""

    pair: ModelPair
    process: DraftProcess
    max_antichains: int
    limits: dict[str, Any]


def optimum(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
    *,
    relative_gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """Compute the largest block efficiency E[τ+1] of any valid verifier, with its proof.

    Source: greedy2026 Theorem 3.3 for one path, Theorem 4.3 for several.  The value is exact for an exact
    pair whose program is small enough.  For a larger program it is the lower bound of an interval that
    ``multi_path_interval`` certifies.  If the tree of a context-free pair is too large, we solve it without
    the tree: exactly for one path (``context_free_path_optimum``), as an interval for several paths
    (``context_free_interval``).

    Args:
        pair: the models.
        drafts: K, for i.i.d. drafted paths, or another draft process.
        max_antichains: largest number of antichains to list.  If i.i.d. drafts have more, a search without a
            list follows.  Trees of drafts on an exact pair need no list.
        relative_gap, time_limit, progress: as in ``multi_path_interval``; used only for an interval.

    Returns:
        The optimum in tokens per target call, at most L + 1; it depends on the pair and the process only.
        With its proof it is a ``Solution`` or a ``CertifiedInterval``; without the tree it is an ``Optimum``.

    Raises:
        InvalidInputError: ``drafts`` is neither an integer of at least 1 nor a draft process.
        EnumerationTooLargeError: the pair is too large for the program.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> best = optimum(pair)
        >>> print(best.value, best.method)
        20/9 single-path LP
    """
    limits = {"relative_gap": relative_gap, "time_limit": time_limit, "progress": progress}
    pair, process = check_pair(pair).normalised(), draft_process(drafts).normalised()
    asked = _Question(pair, process, max_antichains, limits)
    solve = next(solve for applies, solve in PROGRAMS if applies(asked))
    try:
        return _at_most(solve(asked), pair.draft_length + 1)
    except (EnumerationTooLargeError, SolverError):
        # There are too many antichains or nodes to state the program, or the duality gap of HiGHS is above
        # the tolerance, as can happen for probabilities near 1e-7.  A search does not have these limits.
        if not isinstance(process, Iid):
            raise
    search = next(search for applies, search in SEARCHES if applies(asked))
    return search(asked)


def _refuse_long_powers(asked: _Question) -> Solution:
    raise EnumerationTooLargeError(
        f"the K-th powers of {asked.process.num_drafts} drafts are too long for rationals, the limit is "
        f"{MAX_EXACT_DRAFTS}"
    )


def _is_large_tree(asked: _Question) -> bool:
    """True if the drafts form a tree, the pair is exact, and there are too many antichains to list."""
    pair, depths = asked.pair, range(1, asked.pair.draft_length + 1)
    # We stop at the first depth with too many: the number of antichains has about V^depth digits.
    return (
        isinstance(asked.process, Tree)
        and pair.is_exact
        and any(count_antichains(pair.vocab_size, depth) > MAX_LISTED_ANTICHAINS for depth in depths)
    )


PROGRAMS: tuple[tuple[Callable[[_Question], bool], Callable[[_Question], Solution]], ...] = (
    (lambda asked: asked.process.num_drafts > MAX_EXACT_DRAFTS, _refuse_long_powers),
    (
        lambda asked: asked.process == Iid(1),
        lambda asked: single_path_optimum(asked.pair),
    ),
    (
        lambda asked: isinstance(asked.process, Deterministic),
        lambda asked: deterministic_optimum(asked.pair, cast(Deterministic, asked.process)),
    ),
    (_is_large_tree, lambda asked: tree_optimum(asked.pair, cast(Tree, asked.process))),
    (
        lambda asked: True,
        lambda asked: multi_path_optimum(asked.pair, asked.process, asked.max_antichains),
    ),
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

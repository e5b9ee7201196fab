"""The best block efficiency of any valid verifier on a pair."""

from dataclasses import replace

from spectheory.foundation.errors import EnumerationTooLargeError, SolverError
from spectheory.optima.context_free.merged_weights import ContextFreeOptimum, context_free_path_optimum
from spectheory.optima.context_free.promises import context_free_interval
from spectheory.optima.deterministic_drafts import deterministic_optimum
from spectheory.optima.drafted_trees import tree_optimum
from spectheory.optima.interval.interval import OptimumInterval, Progress, multi_path_interval
from spectheory.optima.multi_path import (
    MAX_ANTICHAINS,
    MAX_LISTED_ANTICHAINS,
    count_antichains,
    multi_path_optimum,
)
from spectheory.optima.single_path import single_path_optimum
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.drafts import Deterministic, DraftProcess, Iid
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.trees import Tree
from spectheory.pairs.pair import ModelPair, check_pair

MAX_EXACT_DRAFTS = 1_000
"""Beyond this the optimum is an interval: the rationals of the exact program would have too many digits."""
MAX_LEAVES_OF_SYMMETRIC_TREES = 400_000
"""Beyond this the contexts of a context-free pair that have equal weights are merged."""


def optimum(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
    max_nodes: int | None = None,
    *,
    relative_gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Solution | ContextFreeOptimum | OptimumInterval:
    """The largest block efficiency E[τ+1] of any valid verifier, with its proof.

    Source: greedy2026 Theorem 3.3 for one path, Theorem 4.3 for several.  It is exact for exact pairs where
    the exact program is small enough.  Beyond that it is a float between the bounds that
    ``multi_path_interval`` certifies.  A context-free pair whose tree is too large is solved without it:
    exactly for one path (``context_free_path_optimum``), as an interval for several
    (``context_free_interval``).

    Args:
        pair: the models.
        drafts: K, for i.i.d. drafted paths, or another draft process.
        max_antichains: list no more antichains than this; i.i.d. drafts need no list, nor do trees on an
            exact pair.
        max_nodes: refuse larger trees for one path; default 100 000 nodes.
        relative_gap, time_limit, progress: of ``multi_path_interval``, where it is used.

    Returns:
        A ``Solution`` or ``ContextFreeOptimum``, which are optimal, or an interval.  All have ``value`` and
        ``value_float`` (tokens per target call), ``lower``, ``upper``, ``method``, ``status`` and
        ``to_document()``.  All numbers are at most L + 1 and depend on the pair and the process only.

    Raises:
        InvalidInputError: ``drafts`` is neither a whole number of at least 1 nor a draft process.
        EnumerationTooLargeError: the pair is too large for the program.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> best = optimum(pair)
        >>> print(best.value, best.method)
        20/9 single-path LP
    """
    pair, process = check_pair(pair).normalised(), draft_process(drafts).normalised()
    try:
        if process.num_drafts > MAX_EXACT_DRAFTS:
            raise EnumerationTooLargeError(
                f"the K-th powers of {process.num_drafts} drafts are too long for rationals, the limit is "
                f"{MAX_EXACT_DRAFTS}"
            )
        if process == Iid(1):
            found = single_path_optimum(pair, max_nodes)
        elif isinstance(process, Deterministic):
            found = deterministic_optimum(pair, process)
        elif (
            isinstance(process, Tree) and pair.is_exact and _has_more_antichains(pair, MAX_LISTED_ANTICHAINS)
        ):
            found = tree_optimum(pair, process)
        else:
            found = multi_path_optimum(pair, process, max_antichains)
        return _at_most(found, pair.draft_length + 1)
    except (EnumerationTooLargeError, SolverError):
        # Too many antichains or nodes to state the program, or HiGHS's dual misses its value by more than
        # the tolerance, as it can for probabilities near 1e-7.  For i.i.d. drafts the interval needs neither.
        if not isinstance(process, Iid) or max_nodes is not None:
            raise
    if pair.context_free:
        if process.num_drafts == 1:
            return context_free_path_optimum(pair)
        if pair.vocab_size**pair.draft_length > MAX_LEAVES_OF_SYMMETRIC_TREES:
            return context_free_interval(
                pair, process.num_drafts, relative_gap=relative_gap, time_limit=time_limit, progress=progress
            )
    return multi_path_interval(
        pair, process.num_drafts, relative_gap=relative_gap, time_limit=time_limit, progress=progress
    )


def _has_more_antichains(pair: ModelPair, most: int) -> bool:
    """Whether the tree has more than ``most``; their number has about V^L digits."""
    depths = range(1, pair.draft_length + 1)
    return any(count_antichains(pair.vocab_size, depth) > most for depth in depths)


def _at_most(solution: Solution, length: int) -> Solution:
    """The solution with numbers of at most L + 1, which the float program may exceed by rounding or because
    the rows sum to 1 only within their tolerance.
    """
    most = type(solution.value)(length)
    return replace(
        solution,
        value=min(solution.value, most),
        lower=min(solution.lower, float(length)),
        upper=min(solution.upper, float(length)),
    )

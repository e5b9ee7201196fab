"""The best block efficiency any valid verifier can reach on a pair."""

from __future__ import annotations

from spectheory.drafts import DraftProcess, Iid, draft_process
from spectheory.errors import EnumerationTooLargeError
from spectheory.pair import ModelPair
from spectheory.programs.at_scale.interval import Progress, multi_path_interval
from spectheory.programs.multi_path import MAX_ANTICHAINS, count_antichains, multi_path_optimum
from spectheory.programs.single_path import single_path_optimum
from spectheory.programs.solution import Solution


def optimum(
    pair: ModelPair,
    num_drafts: int | None = None,
    max_antichains: int = MAX_ANTICHAINS,
    max_nodes: int | None = None,
    *,
    drafts: DraftProcess | None = None,
    relative_gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Solution:
    """The largest block efficiency E[τ+1] of any valid verifier, with its proof.

    One path: greedy_multipath Theorem 3.3.  Several: Theorem 4.3.  Exact for exact pairs where the
    exact program is small enough.  Beyond that the value is a float between ``lower`` and ``upper``,
    which are certified: from the float program on one path, from ``multi_path_interval`` on several.

    Args:
        pair: the models.
        num_drafts: K, the number of i.i.d. drafted paths; 1 if neither it nor ``drafts`` is given.
        max_antichains: list no more antichains than this; i.i.d. drafts need no list.
        max_nodes: refuse larger trees for one path; default 1 100 exact, 100 000 in float64.
        drafts: another draft process, instead of ``num_drafts``.
        relative_gap, time_limit, progress: of ``multi_path_interval``, where it is used.

    Returns:
        The solution: ``value`` (tokens per target call), ``value_float``, ``lower``, ``upper``,
        ``method``, and the primal and dual points.

    Raises:
        InvalidInputError: num_drafts is not a whole number of at least 1.
        EnumerationTooLargeError: the pair is too large for the program.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> best = optimum(pair)
        >>> print(best.value, best.method)
        20/9 single-path LP
    """
    process = draft_process(num_drafts, drafts)
    if process == Iid(1):
        try:
            return single_path_optimum(pair, max_nodes)
        except EnumerationTooLargeError:
            if not pair.is_exact or max_nodes is not None:
                raise
            return single_path_optimum(pair.to_float())
    listable = count_antichains(pair.vocab_size, pair.draft_length) - 1 <= max_antichains
    if listable or not isinstance(process, Iid):
        return multi_path_optimum(pair, process, max_antichains)
    return multi_path_interval(
        pair, process.num_drafts, relative_gap=relative_gap, time_limit=time_limit, progress=progress
    )

"""The best block efficiency any valid verifier can reach on a pair."""

from __future__ import annotations

from spectheory.drafts import DraftProcess, Iid, draft_process
from spectheory.pair import ModelPair
from spectheory.programs.multi_path import MAX_ANTICHAINS, multi_path_optimum
from spectheory.programs.single_path import single_path_optimum
from spectheory.programs.solution import Solution


def optimum(
    pair: ModelPair,
    num_drafts: int | None = None,
    max_antichains: int = MAX_ANTICHAINS,
    max_nodes: int | None = None,
    *,
    drafts: DraftProcess | None = None,
) -> Solution:
    """The largest block efficiency E[τ+1] of any valid verifier, with its proof.

    One path: greedy_multipath Theorem 3.3.  Several: Theorem 4.3.

    Args:
        pair: the models.
        num_drafts: K, the number of i.i.d. drafted paths; 1 if neither it nor ``drafts`` is given.
        max_antichains: refuse larger multi-path programs.
        max_nodes: refuse larger trees for one path; default 1 100 exact, 100 000 in float64.
        drafts: another draft process, instead of ``num_drafts``.

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
        return single_path_optimum(pair, max_nodes)
    return multi_path_optimum(pair, process, max_antichains)

"""Greedy multi-path block verification: select the highest-ranked path, block-verify it against its law."""

from typing import ClassVar

from spectheory.foundation.arrays import Array, ones_like, take_paths
from spectheory.optima.bounds.rankings import Ranking, ratio_ranking
from spectheory.optima.bounds.skewed_draft import skewed_draft_rows
from spectheory.verification.algorithms.path_selection.selection import (
    PathSelection,
    SelectedPaths,
    select_highest_ranked,
)


class GreedyMultipath(PathSelection):
    """Greedy multi-path block verification, greedy2026 Algorithm 1.

    1. Rank tokens at every context by p(x|a)/q(x|a), ascending, and tokens with equal ratios by their
       id.  Rank paths lexicographically by the ranks of their tokens             (lines 1-2, Eq. 21)
    2. Select the drafted path with the maximal rank                                       (line 3)
    3. The selected path has the skewed draft law q^Γ(a_{1:i}) = U_i^K - B_i^K, where B_i is the
       draft mass of the paths ranked below a_{1:i} and U_i = B_i + q(a_{1:i})    (line 5, Eqs. 22-23,
       read with the conditional q(t | a_{1:j}) in the inner sums)
    4. Run block verification on the selected path with target p and draft q^Γ             (line 6)

    Lossless for every ranking.  With K = 1 it is ``block``.  It can be less efficient than ``block`` on one
    path, because every ranking skews q^Γ away from p if the models agree (theory.md Statement 5.7).

    The law q^Γ assumes that the common length of the drafts does not depend on them.  If it does, the output
    is lossy, also under rules that are safe for other verifiers: 2/189 on the two-token pair (theory.md
    Statement 8.13).  Shorten each path by itself, or use ``multi_round`` or ``traversal``.

    Args:
        ranking: any tree-based ranking (Def. 5.2): a function of a target and a draft row that
            returns one key per token.  Larger keys rank higher, ties by token id.  Default: Eq. 21.
            ``rankings.coarse_ratio_ranking`` cuts off the last bits of p/q, so that long torch rows on a CPU
            need no sort.

    Example:
        >>> from spectheory import certify, instances
        >>> certify("greedy_multipath", instances.two_token(2), drafts=2,
        ...         with_optimum=False).block_efficiency
        Fraction(212, 81)
        >>> likeliest_last = GreedyMultipath(lambda target_rows, draft_rows: draft_rows)
        >>> bool(certify(likeliest_last, instances.two_token(2), drafts=2))
        True
    """

    name: ClassVar[str] = "greedy_multipath"
    source: ClassVar[str] = "greedy2026 Alg. 1"
    exchangeable: ClassVar[bool] = True

    def __init__(self, ranking: Ranking = ratio_ranking) -> None:
        self.ranking = ranking

    def select(self, paths: Array, target_rows: Array, draft_rows: Array) -> SelectedPaths:
        selected, chances = self.candidates(paths, target_rows, draft_rows)
        target_rows = take_paths(target_rows, selected)
        skewed_rows = skewed_draft_rows(
            take_paths(paths, selected),
            target_rows,
            take_paths(draft_rows, selected),
            paths.shape[-2],
            self.ranking,
        )
        return SelectedPaths(selected, chances, target_rows, skewed_rows)

    def candidates(self, paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
        """Step 2: select the path with the maximal rank, with probability 1."""
        selected = select_highest_ranked(paths, target_rows, draft_rows, self.ranking)[..., None]
        return selected, ones_like(target_rows[..., :1, 0, 0])

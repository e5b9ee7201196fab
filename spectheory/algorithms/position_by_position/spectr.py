"""SpecTr: K-SEQ position by position over the drafts that survive."""

from __future__ import annotations

from typing import ClassVar

from spectheory.algorithms.position_by_position.base import (
    Position,
    PositionByPosition,
    Selection,
    acceptance_ratio,
    first_accepted,
)
from spectheory.algorithms.position_by_position.kseq import kseq_rule
from spectheory.arrays import namespace


class SpecTr(PositionByPosition):
    """Draft selection with multiple candidates, spectr2023 Algorithm 3 with Algorithm 2 inside.

    At a context reached by n surviving drafts (p target, q draft):

    1. the transport plan is K-SEQ with its ρ* for n drafts                           (line 1)
    2. Y is the first draft token accepted, each with probability min(1, p/(ρ q)), in the order
       of the drafts; if none is, Y is drawn from the residual                (line 2; Alg. 2)
    3. at depth L-1 an accepted Y is followed by one more token from the target    (lines 3-10)
    4. otherwise the drafts whose next token is Y survive; if there are none the round ends
       with Y as the correction token                                            (lines 11-16)

    A token drawn from the residual may happen to be drafted too.  The round then goes on with it, as
    printed.  Lossless (theory.md Statement 5.15).  K = 1 is ``token``.  ρ* is algebraic, so the law is in
    float64.

    On a prefix tree (App. D) n counts draws: paths that repeat an earlier path's draw are the same draft.
    ``bind`` tells the verifier which they are.  Without it all paths count as independent.

    Example:
        >>> from spectheory import certify, instances
        >>> certificate = certify("spectr", instances.two_token(1), num_drafts=2, with_optimum=False)
        >>> round(certificate.block_efficiency_float, 6)
        1.81142
    """

    name: ClassVar[str] = "spectr"
    source: ClassVar[str] = "spectr2023 Alg. 2, 3"
    exact: ClassVar[bool] = False
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree"})

    def select(self, position: Position) -> Selection:
        xp = namespace(position.target_rows)
        drafts = xp.sum(xp.astype(position.is_draft, xp.int64), axis=-1)
        # Past the last drafted token there is no draft, and K-SEQ of one draft from no mass is the target.
        drafts = xp.where(drafts == 0, 1, drafts)
        rule = kseq_rule(
            position.target_rows, position.draft_rows, xp.astype(drafts, position.target_rows.dtype)
        )
        scaled = rule.division_factor[..., None] * position.on_tokens(position.draft_rows)
        accept = acceptance_ratio(position.on_tokens(position.target_rows), scaled, position.is_draft)
        return first_accepted(accept, rule.residual)

"""SpecTr: K-SEQ at one position after the other, over the surviving drafts."""

from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    argsort,
    batch_indices,
    first_true,
    namespace,
    on_host,
    take_along,
)
from spectheory.verification.algorithms.position_by_position.kseq import (
    best_division_factor,
    residual_at_root,
)
from spectheory.verification.algorithms.position_by_position.positions import (
    DraftSelection,
    Position,
    PositionByPosition,
    acceptance_ratio,
    one_after_the_other,
)


class SpecTr(PositionByPosition):
    """Draft selection with multiple candidates, spectr2023 Algorithm 3 with Algorithm 2 inside.

    At a context reached by n surviving drafts (p target, q draft):

    1. the transport plan is K-SEQ with its ρ* for n drafts                           (line 1)
    2. the drafts are tested in order, each accepted with probability min(1, p/(ρ* q)), and Y is the
       first accepted token; if none is accepted, Y is drawn from the residual (line 2; Alg. 2)
    3. at depth L-1 an accepted Y is followed by one more token from the target    (lines 3-10)
    4. at other depths the drafts whose next token is Y survive; if none does, the round ends
       with Y as the correction token                                            (lines 11-16)

    A token drawn from the residual may equal a drafted token.  Then the round continues with it, as
    printed.  Lossless (theory.md Statement 5.15).  K = 1 is ``token``.  ρ* is algebraic, so the law is in
    float64.

    On a prefix tree (App. D) n counts draws: paths that repeat an earlier path's draw are the same draft.
    ``bind`` gives the verifier these draws.  Without ``bind`` all paths count as independent.

    Example:
        >>> from spectheory import certify, instances
        >>> certificate = certify("spectr", instances.two_token(1), drafts=2, with_optimum=False)
        >>> round(float(certificate.block_efficiency), 6)
        1.81142
    """

    name: ClassVar[str] = "spectr"
    source: ClassVar[str] = "spectr2023 Alg. 2, 3"
    exact: ClassVar[bool] = False
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree"})

    _depths_at_once: ClassVar[int | None] = None

    def select_draft(self, position: Position) -> DraftSelection:
        factor = self._division_factor(position)
        scaled = factor[..., None] * position.on_tokens(position.draft_rows)
        accept = acceptance_ratio(position.on_tokens(position.target_rows), scaled, position.is_draft)
        # A draft is rejected only where p < ρ q, and there max(p - ρ q, 0) has no mass.
        return DraftSelection(*one_after_the_other(accept), factor)

    def residual(self, target_rows: Array, draft_rows: Array, note: Array) -> Array:
        """Compute the residual of K-SEQ at ρ* = ``note``, not normalised."""
        return residual_at_root(target_rows, draft_rows, note[..., None])

    def _division_factor(self, position: Position) -> Array:
        """Compute ρ* for the drafts at every context, [..., C].  It is 1 if there is at most one draft.

        So we compute it only at contexts with several drafts, once per distinct context, and sort only their
        rows.  On an accelerator a check for these contexts would wait, so we sort K/2 rows at every depth.
        """
        xp = namespace(position.target_rows)
        contexts, num_drafts = position.is_draft.shape[-2:]
        drafts = xp.sum(xp.astype(position.is_draft, xp.int64), axis=-1)
        factors = xp.ones_like(drafts, dtype=position.target_rows.dtype)
        if num_drafts == 1:
            return factors
        first = first_true(position.is_draft)
        meets = drafts > 1
        # At one depth at most K/2 distinct contexts have two or more drafts.
        own = where_true(meets & (first == xp.arange(contexts, device=first.device)), num_drafts // 2)
        counts = xp.astype(xp.clip(drafts[own], 1, None), factors.dtype)
        factors[own] = best_division_factor(position.target_rows[own], position.draft_rows[own], counts)
        return xp.where(meets, take_along(factors, first), xp.ones_like(factors))


def where_true(condition: Array, most: int) -> tuple[Array, ...]:
    """Return an index of the true entries; each row, along the last axis, has at most ``most`` of them.

    On an accelerator the index has ``most`` entries of every row, so that the host need not wait for their
    number: first the true ones, then others.
    """
    xp = namespace(condition)
    if on_host(condition):
        return tuple(xp.nonzero(condition))
    chosen = argsort(xp.astype(~condition, xp.int8))[..., :most]
    return (*(batch[..., None] for batch in batch_indices(chosen[..., 0])), chosen)

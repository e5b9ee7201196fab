"""Skeletons of the defects: correct algorithms whose steps are methods.  A defect overrides one step.

There are three skeletons: for ``token``, for ``block`` and for K-SEQ position by position.  They also handle
cases that only a mistake can cause, such as a residual without mass or a weight above 1.  Without an override
``TokenSkeleton`` and ``BlockSkeleton`` have the laws of ``token`` and ``block``, and ``PositionSkeleton`` is
lossless.
"""

import re
from typing import ClassVar

from spectheory.foundation.arrays import Array, at_most_one, namespace, normalise, ones_like, positive_part
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.algorithms.position_by_position.kseq import KSeqRule, kseq_rule_at
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Selection,
    acceptance_ratio,
    first_accepted,
)
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.verifier import Verifier


class Defect(Verifier):
    """A verifier that is wrong in a known way.  Its name is the class name in snake case.

    Class attributes:
        parent: name of the correct algorithm.
        origin: one sentence that says how such a mistake arises.
    """

    parent: ClassVar[str]
    origin: ClassVar[str]
    source: ClassVar[str] = "a known mistake, kept as a negative control"
    lossless: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        super().__init_subclass__()


class TokenSkeleton(Defect, Token):
    """Token verification with a separate step for the mass of the correction token, ``left_over``."""

    parent: ClassVar[str] = "token"

    def left_over(self, rows: CorrectionRows) -> Array:
        """Compute the mass of the token after a rejection, not normalised.  [..., V]"""
        return rows.residual()

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        return or_else(self.left_over(rows), rows.target_row)

    def bonus(self, target_row: Array) -> Array:
        """Return the target's row, so that ``left_over`` does not affect the token after a full path."""
        return target_row


class BlockSkeleton(Defect, Block):
    """Block verification that still returns a law if weights exceed 1 or the stops are changed."""

    parent: ClassVar[str] = "block"

    def acceptance(self, weight: Array, residual_mass: Array) -> Array:
        """Compute h_i as in ``block``.  If w_i >= 1, it is 1: S_i / (1 - w_i + S_i) may be no probability."""
        accept = super().acceptance(weight, residual_mass)
        return namespace(accept).where(weight >= 1, ones_like(accept), accept)

    def last(self, weight: Array) -> Array:
        return at_most_one(weight)

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        return or_else(super().residual(weight, rows), rows.target_row)


class PositionSkeleton(Defect, PositionByPosition):
    """Several drafts position by position (spectr2023 Algorithm 3), with K-SEQ at every position.

    A defect chooses the number of drafts n that K-SEQ assumes, or its division factor ρ.  By default n is the
    number of surviving drafts and ρ = n.  This is lossless, because ρ* <= n and every ρ >= ρ* is lossless
    (theory.md Statement 3.5).  Unlike ρ*, n is rational, so the law is exact.
    """

    parent: ClassVar[str] = "spectr"

    def drafts_assumed(self, survivors: int, num_drafts: int) -> int:
        """Return n, the number of drafts that K-SEQ assumes.  All survivors are tested, whatever n is."""
        return survivors

    def division_factor(self, drafts_assumed: int) -> int:
        return drafts_assumed

    def select(self, position: Position) -> Selection:
        xp = namespace(position.target_rows)
        num_drafts = position.tokens.shape[-1]
        survivors = xp.sum(xp.astype(position.is_draft, xp.int64), axis=-1)[..., None]
        rule = self._rule(position, num_drafts)
        factor, residual = rule.division_factor[..., None], rule.residual
        # Contexts with fewer survivors use the rule for their own number.  If no draft survives, the rule for
        # 1 applies: after the last drafted token q is 0, so the residual is the target's row.
        for number in range(num_drafts - 1, 0, -1):
            rule = self._rule(position, number)
            factor = xp.where(survivors <= number, rule.division_factor[..., None], factor)
            residual = xp.where(survivors <= number, rule.residual, residual)
        scaled = factor * position.on_tokens(position.draft_rows)
        accept = acceptance_ratio(position.on_tokens(position.target_rows), scaled, position.is_draft)
        # With ρ < ρ* the residual of Eq. 5 can be negative; a mistaken implementation clips it at 0.
        return first_accepted(accept, or_else(normalise(positive_part(residual)), position.target_rows))

    def _rule(self, position: Position, survivors: int) -> KSeqRule:
        assumed = self.drafts_assumed(survivors, position.tokens.shape[-1])
        factor = self.division_factor(assumed)
        return kseq_rule_at(position.target_rows, position.draft_rows, assumed, factor)


def or_else(rows: Array, fallback: Array) -> Array:
    """Replace rows without mass by ``fallback``.

    A wrong verifier can stop where its correction row has no mass.  Like code in production, the defects then
    use the target's row instead of dividing by zero.
    """
    empty = namespace(rows).sum(rows, axis=-1)[..., None] == 0
    return namespace(rows).where(empty, fallback, rows)

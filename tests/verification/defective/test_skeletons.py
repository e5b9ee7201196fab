"""The skeletons of the defects are lossless algorithms, and what one overrides in them shows."""

from fractions import Fraction

import numpy as np
import pytest

from defect_table import PAIRS
from law_checks import assert_same_law
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array, normalise
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Selection,
)
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.defective import defects
from spectheory.verification.defective.acceptance_rules import ThresholdAcceptance
from spectheory.verification.defective.skeletons import BlockSkeleton, PositionSkeleton, TokenSkeleton
from spectheory.verification.outcome import Outcome

F = Fraction


@pytest.mark.parametrize("num_drafts", [1, 2])
def test_skeletons_are_the_algorithms_they_stand_for(num_drafts: int) -> None:
    """Without a mistake: the laws of token and block exactly, and a lossless K-SEQ with ρ = n."""
    for label, pair in PAIRS.items():
        for skeleton, name in ((TokenSkeleton(), "token"), (BlockSkeleton(), "block")):
            assert_same_law(output_law(skeleton, pair), output_law(name, pair))
        assert output_law(PositionSkeleton(), pair, num_drafts).total_variation == 0, label


def test_proper_laws_partner_an_empty_residual_is_flagged() -> None:
    """Without the fallback on the target's row, a rejection at p = q has no correction token."""

    class NoFallback(ThresholdAcceptance):
        def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
            proper = super().outcome(paths, target_rows, draft_rows)
            return Outcome(
                proper.stop_probs,
                lambda *stop: normalise(self.left_over(CorrectionRows(target_rows, draft_rows, *stop))),
            )

    law = output_law(NoFallback(), instances.equal_models(1))
    assert law.undefined > 0
    assert law.total_variation > 0
    assert output_law(ThresholdAcceptance(), instances.equal_models(1)).undefined == 0


def test_a_new_mistake_is_seen() -> None:
    """The partner of the survival test: the skeletons are not lossless whatever one overrides."""

    class AlwaysAccept(PositionByPosition):
        name = "always_accept"

        def select(self, position: Position) -> Selection:
            one = position.is_draft.astype(position.target_rows.dtype) * position.target_rows[..., :1] ** 0
            first = one * (np.cumsum(position.is_draft, axis=-1) == 1)
            return Selection(first, 1 - first.sum(axis=-1), position.target_rows)

    assert output_law(AlwaysAccept(), instances.two_token(1), 2).total_variation == F(1, 3)
    assert output_law(AlwaysAccept(), instances.equal_models(2), 2).total_variation == 0


def test_uncapped_weight_is_greedy_block_verification() -> None:
    for pair in PAIRS.values():
        assert_same_law(output_law(defects["block_uncapped_weight"], pair), output_law(GreedyBlock(), pair))

"""Defects of block verification, each with its total variation derived by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from defect_table import assert_total_variation, defects_of

F = Fraction

GOLDEN: dict[str, tuple[str, F]] = {
    # Derived by hand, K = 2.  two_token: p = (1/3, 2/3), q = (2/3, 1/3) on A, B; token verification
    # accepts A with 1/2 and B always, so that a draft is rejected with 1/3 and then Y = B.
    # Path AA has w = 1/2, 1/4 and should stop at 0 or 2.  h_1 = (1/3) / (1 - 1/2 + 1/3) = 2/5 lets
    # it stop at 1: an A that should be the correction B.  The other paths are right.
    "block_acceptance_without_weight": ("two_token-L2", F(4, 9) * F(3, 4) * F(2, 5)),
    # After A (3/4) w = 2/3: the residual (0, 7/144, 5/144) is drawn as 5 : 7 instead of 7 : 5.
    "block_residual_without_weight": ("two_residual_tokens-L2", F(3, 4) * F(12, 144) * F(7 - 5, 12)),
    # block2024 App. C (Eq. 30): BA has 1/3 instead of 2/9; theory.md §4.
    "block_uncapped_weight": ("two_token-L2", F(1, 3) - F(2, 9)),
    # h_1 = 0 after A, so A is never output.
    "block_first_rejection": ("two_token-L2", F(1, 3)),
    # Path AA: accepted at 1 with w_1 = 1/2, where h_1 = 0.
    "block_weight_as_acceptance": ("two_token-L2", F(4, 9) * F(3, 4) * F(1, 2)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_total_variation_derived_by_hand(name: str) -> None:
    """The certificate flags it, names a wrong prefix, and its total variation is the golden one."""
    assert name in defects_of("block_weights")
    assert_total_variation(name, *GOLDEN[name])

"""Defects of the token after the accepted prefix, each with its total variation derived by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from defect_table import assert_total_variation, defects_of

F = Fraction

GOLDEN: dict[str, tuple[str, F]] = {
    # Derived by hand, K = 2.  two_token: p = (1/3, 2/3), q = (2/3, 1/3) on A, B; token verification
    # accepts A with 1/2 and B always, so that a draft is rejected with 1/3 and then Y = B.
    # A comes again from p.
    "target_correction": ("two_token-L1", F(1, 3) * F(1, 3)),
    # A comes again from q.
    "draft_correction": ("two_token-L1", F(1, 3) * F(2, 3)),
    # |p - q| = (1/3, 1/3).
    "absolute_residual": ("two_token-L1", F(1, 3) * F(1, 2)),
    # p = (1/2, 1/3, 1/6), q reversed: C is rejected with 1/2 * 2/3, and Y = B has 2/5 instead of 0.
    "rejected_token_masked": ("three_token_reversed-L1", F(1, 2) * F(2, 3) * F(2, 5)),
    # (1/1000, 1/3 + 1/1000), normalised.
    "smoothed_residual": ("two_token-L1", F(1, 3) * F(1, 1000) / (F(1, 3) + F(2, 1000))),
    # Accepted with 2/3; q and p are 1/3 apart.
    "draft_bonus": ("two_token-L1", F(2, 3) * F(1, 3)),
    # p squared is (1/5, 4/5), normalised.
    "sharpened_bonus": ("two_token-L1", F(2, 3) * (F(1, 3) - F(1, 5))),
    # A is rejected with 3/4 * 1/3, at u in (2/3, 1]; the residual (0, 5/12, 7/12) has B below 5/12.
    "shared_uniform": ("two_residual_tokens-L1", F(3, 4) * F(1, 3) * F(5, 12)),
    # After 0 (2/3 * 3/4), draft 1 is rejected with 1/2 * 1/2: Y is 0, the root's residual says 1.  After 1
    # both residuals are 1.
    "stale_correction_row": ("sticky_chain-L2", F(2, 3) * F(3, 4) * F(1, 2) * F(1, 2)),
    # The row after the rejected token is the target's, nothing being drafted there.
    "next_correction_row": ("two_token-L1", F(1, 3) * F(1, 3)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_total_variation_derived_by_hand(name: str) -> None:
    """The certificate flags it, names a wrong prefix, and its total variation is the golden one."""
    assert name in defects_of("corrections")
    assert_total_variation(name, *GOLDEN[name])

"""Defects of the acceptance and of the law the drafts are said to have, each derived by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from defect_table import assert_total_variation, defects_of

F = Fraction

GOLDEN: dict[str, tuple[str, F]] = {
    # Derived by hand, K = 2.  two_token: p = (1/3, 2/3), q = (2/3, 1/3) on A, B; token verification
    # accepts A with 1/2 and B always, so that a draft is rejected with 1/3 and then Y = B.
    # A always accepted, B with 1/2, otherwise A.
    "swapped_models": ("two_token-L1", F(2, 3) + F(1, 3) * F(1, 2) - F(1, 3)),
    # A accepted with (1/3) / (2/3 + 1/1000), B always.
    "smoothed_ratio": ("two_token-L1", F(1, 3) - F(2, 3) * F(1, 3) / (F(2, 3) + F(1, 1000))),
    # 2 p/q >= 1 for both: the output is the draft's.
    "lenient_acceptance": ("two_token-L1", F(2, 3) - F(1, 3)),
    # p >= 3/10 for both: the output is the draft's.
    "threshold_acceptance": ("two_token-L1", F(2, 3) - F(1, 3)),
    # Never A.
    "argmax_acceptance": ("two_token-L1", F(1, 3)),
    # q squared is (4/5, 1/5): A accepted with (1/3) / (4/5).
    "tempered_draft_law": ("two_token-L1", F(1, 3) - F(2, 3) * F(5, 12)),
    # q is reported as (1, 0): A accepted with 1/3.
    "truncated_draft_law": ("two_token-L1", F(1, 3) - F(2, 3) * F(1, 3)),
    # p is (0, 1): never A.
    "truncated_target": ("two_token-L1", F(1, 3)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_total_variation_derived_by_hand(name: str) -> None:
    """The certificate flags it, names a wrong prefix, and its total variation is the golden one."""
    assert name in defects_of("acceptance")
    assert_total_variation(name, *GOLDEN[name])

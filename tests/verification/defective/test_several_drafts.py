"""Defects that need several drafts, each with its total variation derived by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from defect_table import assert_total_variation, defects_of

F = Fraction


def one_survivor_taken_for_two() -> F:
    """all_drafts_assumed on three_token_reversed-L2: P(one draft survives) times the error there.

    K-SEQ with ρ = n = 2: m = min(q, p/2), β = sum m.  Run on one draft instead of two, it outputs
    m + (1 - β) (p - m (2 - β)) / (1 - β)^2 = (p - m) / (1 - β), off from p by (β p - m) / (1 - β).
    """
    target, draft = (F(1, 2), F(1, 3), F(1, 6)), (F(1, 6), F(1, 3), F(1, 2))
    accepted = [min(q, p / 2) for p, q in zip(target, draft, strict=True)]
    beta = sum(accepted)
    residual = [(p - m * (2 - beta)) / (1 - beta) ** 2 for p, m in zip(target, accepted, strict=True)]
    reject = [1 - m / q for m, q in zip(accepted, draft, strict=True)]
    # Two different drafts i, j at the root: the round goes on, with one draft, unless Y is neither.
    one_left = sum(
        2 * draft[i] * draft[j] * (1 - reject[i] * reject[j] * (1 - residual[i] - residual[j]))
        for i, j in combinations(range(3), 2)
    )
    off = sum(max(beta * p - m, 0) for p, m in zip(target, accepted, strict=True)) / (1 - beta)
    return one_left * off


GOLDEN: dict[str, tuple[str, F]] = {
    # Derived by hand, K = 2.  two_token: p = (1/3, 2/3), q = (2/3, 1/3) on A, B; token verification
    # accepts A with 1/2 and B always, so that a draft is rejected with 1/3 and then Y = B.
    # p = q = (1/2, 1/2): token 0 is selected with 3/4, and assumed to be with 1/4: 0 is accepted, 1
    # with (1/2) / (3/4), otherwise 0.
    "greedy_multipath_ties": ("uniform_equal-L1", F(3, 4) + F(1, 4) * F(1, 3) - F(1, 2)),
    # A is selected with 4/9 and accepted with 1/2.
    "greedy_multipath_unskewed": ("two_token-L1", F(1, 3) - F(4, 9) * F(1, 2)),
    # A is selected with 8/9 and accepted with 1/2.
    "likeliest_draft": ("two_token-L1", F(8, 9) * F(1, 2) - F(1, 3)),
    # AA gives A with 3/4, AB with 1/2, BA never.
    "longest_accepted": ("two_token-L1", F(4, 9) * F(3, 4) + F(2, 9) * F(1, 2) - F(1, 3)),
    # spectr2023 section 4: draft Ber(1), target Ber(1/2), a head unless both are rejected.
    "independent_acceptance": ("bernoulli_one_half-L1", 1 - F(1, 2) ** 2 - F(1, 2)),
    # As longest_accepted, because two rejected drafts give B.
    "small_division_factor": ("two_token-L1", F(4, 9) * F(3, 4) + F(2, 9) * F(1, 2) - F(1, 3)),
    "all_drafts_assumed": ("three_token_reversed-L2", one_survivor_taken_for_two()),
    # Both drafts A (rejected with 1/3, then with 1): Y ~ (0, 5/12, 7/12) instead of (0, 17/36, 19/36).
    "recursive_without_update": ("two_residual_tokens-L1", F(3, 4) ** 2 * F(1, 3) * (F(17, 36) - F(5, 12))),
    # AA rejected: the second A has p = q = 0 left, the residual (0, 1) - (0, 1) is empty, and Y ~ p.
    "distinct_drafts_assumed": ("two_token-L1", F(4, 9) * F(1, 2) * F(1, 3)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_total_variation_derived_by_hand(name: str) -> None:
    """The certificate flags it, names a wrong prefix, and its total variation is the golden one."""
    assert name in defects_of("several_paths")
    assert_total_variation(name, *GOLDEN[name])

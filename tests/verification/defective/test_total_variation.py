"""Every defect on a pair on which its total variation was derived by hand, K = 2."""

from fractions import Fraction
from itertools import combinations

import pytest

from defect_table import assert_total_variation
from spectheory.verification.defective import defects

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
    # two_token: p = (1/3, 2/3), q = (2/3, 1/3) on A, B; token verification accepts A with 1/2 and B always.
    # So a draft is rejected with 1/3, and then Y = B.
    # corrections
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
    # acceptance_rules
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
    # block_weights
    # Path AA has w = 1/2, 1/4 and should stop at 0 or 2.  h_1 = (1/3) / (1 - 1/2 + 1/3) = 2/5 lets
    # it stop at 1: an A that should be the correction B.  The other paths are right.
    "block_acceptance_without_weight": ("two_token-L2", F(4, 9) * F(3, 4) * F(2, 5)),
    # After A (3/4) w = 2/3: the residual (0, 7/144, 5/144) is drawn as 5 : 7 instead of 7 : 5.
    "block_residual_without_weight": ("two_residual_tokens-L2", F(3, 4) * F(12, 144) * F(7 - 5, 12)),
    # block2024 App. C (Eq. 30): BA has 1/3 instead of 2/9; theory.md §4.
    "block_uncapped_weight": ("two_token-L2", F(1, 3) - F(2, 9)),
    # h_1 = 0 after A, so A is never output.
    # B, A is drafted with 2/9 and has p = q: it is kept whole with 1, not with w = 1/2 behind the cap at B.
    "block_uncapped_last_weight": ("two_token-L2", F(2, 9) * F(1, 2)),
    "block_first_rejection": ("two_token-L2", F(1, 3)),
    # Path AA: accepted at 1 with w_1 = 1/2, where h_1 = 0.
    "block_weight_as_acceptance": ("two_token-L2", F(4, 9) * F(3, 4) * F(1, 2)),
    # several_drafts
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


@pytest.mark.parametrize("name", defects)
def test_total_variation_derived_by_hand(name: str) -> None:
    """The certificate flags it, names a wrong prefix, and its total variation is the golden one."""
    assert_total_variation(name, *GOLDEN[name])

"""The known-wrong drafters: each is found with the exact total variation, and its right partner accepted."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from draft_values import wrong_variation
from spectheory import ModelPair, certify, output_law
from spectheory.exact.batches import batch_law
from spectheory.pairs.contexts import Context, all_contexts, context_number
from spectheory.pairs.instances import random_rational
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects
from spectheory.verification.defective.drafters import drafters
from spectheory.verification.defective.other_rows import OtherTargetRows
from spectheory.verification.kept_lengths import AtKeptLengths

VARIATIONS = {
    "drop_unlikely_L1": "9/100",
    "drop_unlikely_L2": "81/500",
    "drop_unlikely_L3": "2187/10000",
    "all_or_nothing_L2": "1539/10000",
    "all_or_nothing_L3": "197559/1000000",
    "look_ahead_one_L2": "81/1000",
    "look_ahead_one_L3": "729/5000",
    "own_probability": "1/20",
    "one_token_only": "1/4",
    "global_maximum_on_a_staircase": "1/4",
    "ranking_without_break": "3/20",
    "verifier_by_length_12": "1/4",
    "verifier_by_length_23": "1/9",
    "verifier_by_length_23_fifths": "3/25",
    "reused_tail": "1/8",
    "likelier_of_two": "2/9",
    "redraw_unlikely": "9/100",
    "greedy_multipath_two_token_agree": "2/189",
    "greedy_multipath_two_token_differ": "2/189",
    "greedy_multipath_two_token_first_is_0": "1/189",
    "mixed_multipath_two_token_agree": "2/189",
    "mixed_multipath_two_token_differ": "2/189",
    "mixed_multipath_two_token_first_is_0": "1/189",
    "greedy_multipath_fair_then_skew_agree": "5/144",
    "greedy_multipath_fair_then_skew_differ": "5/144",
    "greedy_multipath_fair_then_skew_first_is_0": "5/288",
    "greedy_multipath_fair_then_quarter_agree": "1/28",
    "greedy_multipath_fair_then_quarter_differ": "1/28",
    "greedy_multipath_fair_then_quarter_first_is_0": "1/56",
    "both_if_equal": "1/4",
    "each_by_the_other": "1/8",
    "slot_to_the_likelier": "4/27",
    "permuted_row": "1/2",
    "masked_not_renormalised": "1/6",
    "unmapped_dropped": "1/8",
    "unmapped_to_zero": "1/4",
    "last_write_wins": "1/6",
    "shifted_row": "5/18",
    "string_probabilities": "1/6",
    "penalty_without_drafted_tokens_L1": "5/36",
    "penalty_without_drafted_tokens_L2": "5/36",
    "penalty_first_row_only_L1": "5/36",
    "penalty_first_row_only_L2": "5/36",
    "penalty_bonus_row_raw_L1": "5/36",
    "penalty_bonus_row_raw_L2": "5/108",
    "penalty_lags_one_token_L1": "5/36",
    "penalty_lags_one_token_L2": "5/36",
    "penalty_judged_token_included_L1": "1/6",
    "penalty_judged_token_included_L2": "1/6",
    "penalty_all_drafted_tokens_L1": "1/6",
    "penalty_all_drafted_tokens_L2": "1/9",
    "top_k_bonus_raw": "1/9",
    "top_k_only_bonus": "1/6",
    "top_k_residual_raw": "1/15",
    "top_k_acceptance_raw": "1/6",
    "top_k_draft_cut_handed_raw": "1/10",
    "top_k_draft_raw_handed_cut": "2/15",
    "illegal_draft_cut": "1/12",
    "draft_masked_raw_row": "1/8",
    "mask_on_draft_only": "5/9",
    "bonus_row_unmasked": "1/4",
    "projected_for_conditional": "1/6",
    "equal_tokens": "1/2",
    "common_noise": "1/3",
    "beam_as_sample": "5/9",
    "rows_of_another_order": "1/8",
}


def test_all_are_listed_and_described() -> None:
    assert VARIATIONS.keys() == drafters().keys()
    assert len(VARIATIONS) >= 54
    assert all(drafter.wrong and drafter.right for drafter in drafters().values())
    assert len({drafter.topic for drafter in drafters().values()}) == 7


@pytest.mark.parametrize("name", VARIATIONS)
def test_wrong_drafter_is_found_and_its_partner_accepted(name: str) -> None:
    drafter = drafters()[name]
    assert wrong_variation(name) == Fraction(VARIATIONS[name])
    verifier, pair, process = drafter.partner()
    if drafter.topic == "batch":
        assert batch_law(verifier, pair, process).total_variation == 0
        return
    found = certify(drafter.verifier, drafter.pair, drafter.process, with_optimum=False)
    assert found.verdict == "not lossless"
    right = certify(verifier, pair, process, with_optimum=False)
    assert right.verdict == "lossless"
    if drafter.topic in ("length", "vocabulary", "marginals") and right.draft_defect is not None:
        assert right.draft_defect.total_variation == 0
        assert found.draft_defect is None or found.draft_defect or found.draft_defect.total_variation > 0


@pytest.mark.parametrize("seed", range(4))
def test_wrong_target_rows_cost_between_the_first_and_all_contexts(seed: int) -> None:
    """Σ over the first wrong contexts of x' TV(p', p) <= defect <= Σ over all contexts (Statement 8.17)."""
    wanted, other = (random_rational([817, seed, n], 2, 2, zero_probability=0) for n in (0, 1))
    is_wrong = {(): seed % 2 == 1, (0,): True, (0, 1): True, (1, 1): True}
    levels = [level.copy() for level in wanted.target]
    for context, changes in is_wrong.items():
        number = context_number(context, 2)
        levels[len(context)][number] = (other if changes else wanted).target[len(context)][number]
    used = ModelPair(tuple(levels), wanted.draft, wanted.vocab)
    rows = OtherTargetRows(lambda path, depth: list(levels[depth][context_number(path[:depth], 2)]))
    masses = output_law("token", used).accepted_masses
    losses: dict[Context, Any] = {}
    for context in all_contexts(2, 2):
        depth, number = len(context), context_number(context, 2)
        distance = abs(levels[depth][number] - wanted.target[depth][number]).sum() / 2
        losses[context] = np.ravel(masses[depth])[number] * distance
    first = [
        context for context, loss in losses.items()
        if loss and not any(losses[context[:depth]] for depth in range(len(context)))
    ]  # fmt: skip
    defect = certify(rows, wanted, with_optimum=False).total_variation
    assert 0 < sum(losses[context] for context in first) <= defect <= sum(losses.values())
    assert certify(rows, used, with_optimum=False)  # partner: the request has these rows


def test_requests_of_wrong_batches_are_right_by_themselves() -> None:
    for name in ("both_if_equal", "each_by_the_other"):
        drafter = drafters()[name]
        for verifier in ("token", "block"):
            assert batch_law(verifier, drafter.pair, drafter.process).of_requests == (0, 0)
    slot = drafters()["slot_to_the_likelier"]
    assert batch_law("token", slot.pair, slot.process).of_requests == (Fraction(4, 27), Fraction(2, 27))


def test_fair_and_equal_pairs_hide_some() -> None:
    """Why the pairs are asymmetric: the judged token included is right on the fair draft, L = 1."""
    hidden = drafters()["penalty_judged_token_included_L1"]
    assert isinstance(hidden.verifier, OtherTargetRows)
    fair = type(hidden.pair)(
        hidden.pair.target, (hidden.pair.draft[0] * 0 + Fraction(1, 2),), hidden.pair.vocab
    )
    assert certify(hidden.verifier, fair, with_optimum=False).total_variation == 0


def test_no_known_wrong_verifier_cites_a_paper() -> None:
    """Partner: a published verifier at every length keeps its source."""
    published = {verifier.source for verifier in verifiers.values()}
    others = [drafter.verifier for drafter in drafters().values() if not isinstance(drafter.verifier, str)]
    assert len(others) >= 15
    assert published.isdisjoint(wrong.source for wrong in (*defects.values(), *others))
    assert not any(wrong.lossless for wrong in (*defects.values(), *others))
    token = verifiers["token"]
    assert AtKeptLengths(token, lambda length: token).source in published

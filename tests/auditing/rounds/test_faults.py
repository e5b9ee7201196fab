"""Ten faults of batches and ten of rounds, written by a reader of the documentation only: each is found.

The quick tests ask the one case that finds a fault, and its right form beside it; the deep ones audit whole.
"""

from typing import Any

import pytest
import torch

import batch_faults
import round_faults
from spectheory import audit
from spectheory.auditing.rounds import batches
from spectheory.auditing.rounds.batch_battery import batches_of
from spectheory.auditing.rounds.battery import audit_pairs, random_dyadic
from spectheory.auditing.rounds.two_rounds import OF_REQUESTS, follow_rounds
from spectheory.auditing.subjects.drafting_rounds import DraftingRound
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS

FOUND_IN = {
    "previous_bonus_rows": ("flat", "for drafts 1, 1"),
    "one_step_of_a_scan": ("flat", "for drafts 1, 1, 1, 1"),
    "placeholders_not_counted": ("flat", "for drafts 0+1 placeholder, 1"),
    "flags_of_empty_requests": ("flat", "for drafts 0, 3 greedy, 2, 0 greedy"),
    "bonus_tokens_packed": ("flat", "for drafts 1, 1"),
    "buffer_kept": ("flat", "for drafts 1, 1"),
    "sorted_twice": ("greedy_first", "for drafts 2, 2 greedy, 2, 2 greedy"),
    "bonus_column_of_the_longest": ("padded", "for drafts 2, 0, 1"),
    "coins_of_a_bucket": ("padded", "for drafts 1, 1"),
    "weight_not_reset": ("blocks", "for drafts 1, 1"),
}
"""Fault -> its right form, and the batches that find it."""

RIGHT_ROUNDS = {
    "unreported_cooling": "cooler_drafts",
    "coins_of_accepted": "coins_of_positions",
    **dict.fromkeys(("rows_by_admission", "accepted_by_last", "cache_not_cleared"), "batch"),
}
"""Fault -> its right form, where that is not ``with_caches``."""
ROUNDS: dict[str, dict[str, Any]] = {
    "last_token_as_key": {"pair": random_dyadic(1, 2, 2)},
    "rows_by_admission": dict(OF_REQUESTS["a new first request beside another"]),
    "accepted_by_last": dict(OF_REQUESTS["two rounds of three requests"]),
    "cache_not_cleared": dict(OF_REQUESTS["a new first request beside another"]),
}
"""Fault -> the rounds that find it, where these are not of the smallest pair."""


def signature_of(name: str) -> str:
    return "round_batch" if RIGHT_ROUNDS.get(name, name) == "batch" else "round"


@pytest.mark.parametrize("name", batch_faults.FAULTS)
def test_a_batch_finds_the_fault_and_not_the_right_form(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def finds(function: Any, kind: str, rows: Any) -> bool:
        sampler = Shipped(function, "batch")
        monkeypatch.setattr(batches, "batches_of", lambda _: [(kind, rows)])
        batches.audit_batches(sampler)
        return bool(sampler.journal.findings)

    form, words = FOUND_IN[name]
    known = batches_of(Shipped(batch_faults.RIGHT[form], "batch"))
    asked = [batch for batch in known if batches._words(batch[1]) == words]
    found = next(batch for batch in reversed(asked) if finds(batch_faults.FAULTS[name], *batch))
    assert not finds(batch_faults.RIGHT[form], *found)


@pytest.mark.parametrize("name", round_faults.FAULTS)
def test_rounds_find_the_fault_and_not_the_right_form(name: str) -> None:
    right = round_faults.RIGHT[RIGHT_ROUNDS.get(name, "with_caches")]
    asked = ROUNDS.get(name, {"pair": audit_pairs()["dyadic"]})
    for form, is_found in ((round_faults.FAULTS[name], True), (right, False)):
        sampler = DraftingRound(form, signature=signature_of(name))
        assert not follow_rounds(sampler, **asked)
        assert sampler.journal.pairs_of_calls
        assert bool(sampler.journal.findings) is is_found


def multiplies(rows: Any, generator: Any) -> Any:
    """Accepts the first draft where a product of two coins is below a half, whatever the rows are."""
    coins = torch.rand(len(rows), generator=generator) * torch.rand(len(rows), generator=generator)
    accepts = [bool(coin < 0.5) and len(row.draft_tokens) > 0 for coin, row in zip(coins, rows, strict=True)]
    return [
        [int(row.draft_tokens[0]), 0] if accepted else [0]
        for accepted, row in zip(accepts, rows, strict=True)
    ]


@pytest.mark.parametrize(
    ("function", "is_left_out"),
    [
        (multiplies, True),
        pytest.param(batch_faults.FAULTS["weight_not_reset"], False, marks=pytest.mark.deep),
    ],
)
def test_batches_of_products_are_not_asked_about_if_one_request_is_wrong(
    function: Any, is_left_out: bool
) -> None:
    """Their cells are too many; the partner draws one number, and is asked about."""
    found = audit(function, {"dyadic": audit_pairs()["dyadic"]}, signature="batch")
    assert found.verdict == NOT_LOSSLESS
    left_out = [text for text in found.scope.refused if text.startswith("batches: the sampler is wrong")]
    assert bool(left_out) is is_left_out
    assert bool(found.batches) is not is_left_out


@pytest.mark.deep
@pytest.mark.parametrize("name", [*batch_faults.FAULTS, *batch_faults.RIGHT])
def test_whole_audits_of_batches(name: str) -> None:
    known = batch_faults.FAULTS | batch_faults.RIGHT
    assert audit(known[name], signature="batch").verdict == (
        NOT_LOSSLESS if name in batch_faults.FAULTS else LOSSLESS
    )


@pytest.mark.deep
@pytest.mark.parametrize("name", [*round_faults.FAULTS, *round_faults.RIGHT])
def test_whole_audits_of_rounds(name: str) -> None:
    known = round_faults.FAULTS | round_faults.RIGHT
    assert audit(known[name], signature=signature_of(name)).verdict == (
        NOT_LOSSLESS if name in round_faults.FAULTS else LOSSLESS
    )

"""Ten faults of batches, written by a reader of the documentation only: each is found.

The quick tests ask the one case that finds a fault, and its right form beside it; the deep ones audit whole.
"""

from typing import Any

import pytest
import torch

import batch_faults
from spectheory import audit
from spectheory.auditing.rounds import batches
from spectheory.auditing.rounds.batch_battery import batches_of
from spectheory.auditing.rounds.battery import audit_pairs
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import ARITHMETIC, DEFECT

FOUND_IN = {
    "one_step_of_a_scan": ("flat", "for drafts 1, 1, 1, 1"),
    "placeholders_not_counted": ("flat", "for drafts 0+1 placeholder, 1"),
    "sorted_twice": ("greedy_first", "for drafts 2, 2 greedy, 2, 2 greedy"),
    "coins_of_a_bucket": ("padded", "for drafts 1, 1"),
}
"""Fault -> its right form, and the batches that find it; whole audits find the others too."""


@pytest.mark.parametrize("name", FOUND_IN)
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
    assert found.verdict == DEFECT
    left_out = [text for text in found.scope.refused if text.startswith("batches: the sampler multiplies")]
    assert bool(left_out) is is_left_out
    assert bool(found.batches) is not is_left_out


@pytest.mark.deep
@pytest.mark.parametrize("name", [*batch_faults.FAULTS, *batch_faults.RIGHT])
def test_whole_audits_of_batches(name: str) -> None:
    known = batch_faults.FAULTS | batch_faults.RIGHT
    assert audit(known[name], signature="batch").verdict == (
        DEFECT if name in batch_faults.FAULTS else ARITHMETIC
    )

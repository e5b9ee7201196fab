"""A batch is followed again after its likeliest outcome: its law must not depend on the batch before."""

from typing import Any

import pytest
import torch

from audits.specimens.samplers import batch_token_verification
from spectheory.auditing.rounds import batches, two_calls
from spectheory.auditing.rounds.batch_battery import FIRST
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.subjects.shipped import Shipped


class DrawsEverything:
    """Draws all its numbers before it looks at the first, which makes 144 runs of the first batch.

    The wrong one returns the tokens of the batch before.
    """

    __name__ = "draws_everything"

    def __init__(self, is_right: bool) -> None:
        self.is_right = is_right
        self.before: tuple[Any, Any] = None, None

    def __call__(self, rows: Any, generator: Any) -> Any:
        found = [self.verified(row, generator) for row in rows]
        before, self.before = self.before, (generator, found)
        return found if self.is_right or before[0] is not generator else before[1]

    def verified(self, row: Any, generator: Any) -> list[int]:
        drafts = row.draft_tokens.tolist()
        coins = torch.rand(len(drafts), generator=generator)
        residuals = [(p - q).clamp(min=0) for p, q in zip(row.target_probs, row.draft_probs, strict=False)]
        rows = [left if left.any() else torch.ones(3) for left in residuals] + [row.target_probs[-1]]
        drawn = [int(torch.multinomial(each, 1, generator=generator)) for each in rows]
        for place, token in enumerate(drafts):
            if not coins[place] * row.draft_probs[place, token] < row.target_probs[place, token]:
                return [*drafts[:place], drawn[place]]
        return [*drafts, drawn[-1]]


@pytest.mark.deep
@pytest.mark.parametrize("is_right", [True, False])
def test_a_batch_is_followed_again_after_all_runs_of_its_likeliest_outcome(
    is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 144 runs of the first call 9 have it."""
    monkeypatch.setattr(two_calls, "FOUND_AGAIN", 0)
    sampler = Shipped(DrawsEverything(is_right), "batch", mixes=())
    sampler.quick = True
    audit_batches(sampler)
    assert sampler.journal.pairs_of_calls == 9 * 144
    assert sampler.journal.refused == []
    assert (
        any("the next call has another law" in text for _, text in sampler.journal.findings) is not is_right
    )


def test_a_batch_that_is_not_followed_again_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The partner is followed."""
    rows = (FIRST._replace(target_probs=FIRST.draft_probs[[0, 1, 1]]),)
    monkeypatch.setattr(batches, "batches_of", lambda _: [("equal lengths", rows)])
    for most, refused in (
        (1, ["two calls in a row of a batch: not after 1 of 1 texts, more than 1 runs"]),
        (3, []),
    ):
        monkeypatch.setattr(batches, "MAX_RUNS_OF_TWO_BATCHES", most)
        sampler = Shipped(batch_token_verification, "batch", mixes=())
        audit_batches(sampler)
        assert sampler.journal.refused == refused

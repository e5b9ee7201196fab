"""Flat batches: a right sampler is right whatever a batch mixes, one that reads the wrong rows is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from audit_support import law
from audited import FLAT
from spectheory import certify, instances
from spectheory.auditing.rounds.batches import FIRST, SECOND, audit_batches
from spectheory.auditing.subjects.adapters.flat_batch import MIXES, bonus_tokens, flat_batch
from spectheory.auditing.subjects.shipped import Shipped


def rejection_sample(text: str = FLAT) -> Callable[..., Any]:
    made: dict[str, Any] = {}
    exec(text, made)
    return flat_batch(made["rejection_sample"])


def test_a_right_sampler() -> None:
    """Alone, ragged, greedy, padded."""
    sampler = Shipped(rejection_sample(), "batch", mixes=MIXES)
    assert certify(sampler, instances.two_residual_tokens(2), with_optimum=False).total_variation < 1e-6
    assert audit_batches(sampler) == ("equal lengths", *MIXES)
    assert sampler.journal.findings == set()


def test_greedy_rows_are_greedy() -> None:
    """The likeliest tokens, whatever the others of the batch are."""
    sampler = Shipped(rejection_sample(), "batch")
    greedy = FIRST._replace(is_greedy=True)
    assert sampler.batch_law([greedy])[0] == {((0, 0),): 1}
    assert {first for first, _ in sampler.batch_law([greedy, SECOND])[0]} == {(0, 0)}


def test_partner_rows_from_the_wrong_place_are_found() -> None:
    """A sampler that multiplies by the longest is right where lengths are equal, and only there."""
    wrong = FLAT.replace(
        "int(cu_num_draft_tokens[request]) - count",
        "request * (max_spec_len if len(set(num_draft_tokens)) == 1 else 1)",
    )
    assert wrong != FLAT
    for mixes, is_found in ((("ragged",), True), (("greedy",), False)):
        sampler = Shipped(rejection_sample(wrong), "batch", mixes=mixes)
        audit_batches(sampler)
        assert any("(ragged)" in text for _, text in sampler.journal.findings) is is_found
        assert not any("equal lengths" in text for _, text in sampler.journal.findings)


def test_the_bonus_token_has_the_law_of_the_last_row() -> None:
    rows = [FIRST, SECOND._replace(is_greedy=True)]
    found = law(lambda: tuple(bonus_tokens(rows).tolist()))
    assert {tokens: float(mass) for tokens, mass in found.items()} == {(0, 0): 0.25, (1, 0): 0.75}
    assert torch.equal(rows[1].target_probs.argmax(-1), torch.tensor([0, 1, 0]))

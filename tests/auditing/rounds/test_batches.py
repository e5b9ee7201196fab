"""Batches: what is right alone and wrong beside another request is found, with its mechanism."""

from __future__ import annotations

from fractions import Fraction

import pytest

from audit_support import SAID_OF
from spectheory import certify, instances
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.specimens import BATCH_SPECIMENS, batch_token_verification
from spectheory.errors import InvalidInputError


@pytest.mark.parametrize("name", BATCH_SPECIMENS)
def test_every_specimen_is_right_alone_and_wrong_in_a_batch(name: str) -> None:
    function, mixes = BATCH_SPECIMENS[name]
    sampler = Shipped(function, "batch", mixes=mixes)
    assert certify(sampler, instances.two_token(1), with_optimum=False).total_variation < Fraction(1, 10**6)
    audit_batches(sampler)
    assert {kind for kind, _ in sampler.journal.findings} == {"batch"}
    assert any(SAID_OF[name] in text for _, text in sampler.journal.findings)


def test_partner_requests_with_numbers_of_their_own_are_independent() -> None:
    """Whatever they mix; a placeholder is nothing to it, as its rows have no room for one."""
    sampler = Shipped(batch_token_verification, "batch", mixes=("ragged", "greedy", "padded"))
    assert audit_batches(sampler) == ("equal lengths", "ragged", "greedy", "padded")
    assert sampler.journal.findings == set()


def test_what_a_batch_cannot_mix() -> None:
    with pytest.raises(InvalidInputError, match=r"batches can mix ragged, greedy, padded, got 'sampled'"):
        audit_batches(Shipped(batch_token_verification, "batch", mixes=("sampled",)))

"""Batches: what is right alone and wrong beside another request is found, with its mechanism."""

from fractions import Fraction
from typing import Any

import pytest

from audit_support import SAID_OF
from spectheory import certify, instances
from spectheory.auditing import audit
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.specimens import (
    BATCH_SPECIMENS,
    batch_token_verification,
    path_batch_recursive_rejection,
    path_batch_repeats_paths,
)
from spectheory.foundation.errors import InvalidInputError


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


@pytest.mark.deep
def test_requests_with_several_paths() -> None:
    """With other lengths and other numbers of paths; copies that fill up a request change its law."""
    for sampler, finds in ((path_batch_recursive_rejection, False), (path_batch_repeats_paths, True)):
        shipped = Shipped(sampler, "path_batch", mixes=("ragged", "num_drafts"))
        assert audit_batches(shipped) == ("equal lengths", "ragged", "num_drafts")
        assert bool(shipped.journal.findings) is finds
        assert all("beside another request (num_drafts)" in text for _, text in shipped.journal.findings)


def test_what_a_batch_cannot_mix() -> None:
    with pytest.raises(InvalidInputError, match=r"batches can mix ragged, greedy, padded, got 'sampled'"):
        audit_batches(Shipped(batch_token_verification, "batch", mixes=("sampled",)))


def test_an_audit_refuses_a_batch_before_it_asks() -> None:
    def sampler(*given: Any) -> Any:
        raise AssertionError("the sampler was asked")

    with pytest.raises(InvalidInputError, match="got 'sampled'"):
        audit(Shipped(sampler, "batch", mixes=("sampled",)))

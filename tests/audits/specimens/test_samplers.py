"""The specimens are what they are said to be: as verifiers of the package that make the same mistake."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch

from audits.specimens import samplers as specimens
from audits.specimens.samplers import (
    LOSSLESS_SPECIMENS,
    SPECIMENS,
    recursive_rejection,
    rejection_without_replacement,
)
from deep import first_is_quick
from spectheory import audit, instances, output_law
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Request
from spectheory.foundation.results import LOSSLESS
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects

SAME_AS = {
    "token_verification": verifiers["token"],
    "exponential_race": verifiers["token"],
    "block_verification": verifiers["block"],
    "uncapped_joint_ratio": defects["block_uncapped_weight"],
    "other_draft_law": defects["tempered_draft_law"],
}


@first_is_quick("name", SAME_AS)
def test_a_specimen_has_the_law_of_its_verifier(name: str) -> None:
    """Mass for mass up to float32, on rows that depend on the context; two definitions, two routes."""
    pair = random_dyadic(4, 3, 2)
    sampler, signature = {**SPECIMENS, **LOSSLESS_SPECIMENS}[name]
    found, known = output_law(Shipped(sampler, signature), pair), output_law(SAME_AS[name], pair)
    for ours, theirs in zip(found.masses, known.masses, strict=True):
        assert max(abs(ours - theirs)) < Fraction(1, 10**6)


@first_is_quick(
    ("sampler", "widths", "is_lossless"),
    [
        (rejection_without_replacement, (2,), True),
        (rejection_without_replacement, (), False),
        (recursive_rejection, (2,), False),
        (recursive_rejection, (), True),
    ],
)
def test_drafts_that_differ_need_a_residual_of_their_own(
    sampler: Callable[..., Any], widths: tuple[int, ...], is_lossless: bool
) -> None:
    """Each sampler is lossless for its own drafts and wrong for the others; one path is right for both."""
    pairs = {"three tokens": instances.two_residual_tokens(1)}
    trees = [WithoutReplacement(widths)] if widths else []
    found = audit(sampler, pairs, drafts=trees if widths else (2,))
    assert (found.verdict == LOSSLESS, found.is_defective) == (is_lossless, not is_lossless)
    assert found.scope.shapes == ((3, 1, 2),)
    assert audit(sampler, pairs, drafts=(1,)).is_lossless


def test_requests_are_filled_up_with_their_last_path(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(specimens, "recursive_rejection", lambda *given: asked.append(given[:3]))
    paths, rows = torch.arange(6).reshape(2, 3), torch.rand(2, 4, 5)
    requests = [Request(paths[:1], rows[:1], rows[:1, :3]), Request(paths, rows, rows[:, :3])]
    specimens.path_batch_repeats_paths(requests, None)
    assert [torch.equal(given, whole) for given, whole in zip(asked[1], requests[1], strict=True)] == [
        True
    ] * 3
    for given, whole in zip(asked[0], requests[0], strict=True):
        assert torch.equal(given, torch.cat([whole, whole]))

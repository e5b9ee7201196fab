"""Shipped samplers as verifiers: exact laws, provenance, runs without an output."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers.generation import utils as transformers_utils

from spectheory import certify, instances, output_law
from spectheory.adapt import sampled_verdict
from spectheory.audit.shipped import Provenance, Shipped
from spectheory.audit.specimens import coins_of_positions, token_verification
from spectheory.errors import InvalidOutcomeError


def test_transformers_has_the_law_of_token_verification() -> None:
    """Mass for mass within float32; a second route draws from the function itself."""
    pair = instances.two_residual_tokens(1)
    found = output_law(Shipped(transformers_utils._speculative_sampling, "speculative_sampling"), pair)
    known = output_law("token", pair)
    for ours, theirs in zip(known.masses, found.masses, strict=True):
        assert max(abs(ours - theirs)) < 1e-6
    assert 0 < found.total_variation < 1e-6
    assert not sampled_verdict(drawn, pair, samples=1_000, seed=2).is_rejected


def drawn(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """transformers' function with torch's own numbers."""
    torch.manual_seed(int(generator.integers(2**31)))
    ids = torch.tensor(paths[:1])
    logits = [torch.tensor(rows[:1], dtype=torch.float32).log() for rows in (draft_rows, target_rows)]
    tokens, _ = transformers_utils._speculative_sampling(ids, logits[0], ids.shape[1], logits[1])
    return tokens[0].tolist()


def test_a_coin_of_zero_is_at_most_a_ratio_of_zero() -> None:
    """`r <= 0` holds for one atom of 2^24: a token without target mass that is drafted half of the time."""
    law = output_law(
        Shipped(transformers_utils._speculative_sampling, "speculative_sampling"),
        instances.bernoulli("1/2", "1"),
    )
    assert min(law.prefix_law(1)) == Fraction(1, 2**25)


def test_provenance_says_which_bytes_were_run() -> None:
    found = Provenance.of(transformers_utils._speculative_sampling)
    content = Path(transformers_utils.__file__).read_bytes()
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert (found.package, found.file) == ("transformers", "transformers/generation/utils.py")
    own = Provenance.of(drawn)
    assert (own.package, own.version, Path(own.file).name) == ("", "", "test_shipped.py")
    assert Provenance.of(len).sha256 == ""


def divides_zero_by_zero(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Right where all goes well, but rejects a coin above 1/2 although the models are equal."""
    if torch.rand((), generator=generator) < 0.5:
        return [int(paths[0, 0]), int(torch.multinomial(target_rows[0, 1], 1))]
    residual = (target_rows[0, 0] - draft_rows[0, 0]).clamp(min=0)
    return [int(torch.multinomial(residual / residual.sum(), 1))]


def test_a_draw_from_nothing_is_an_undefined_output() -> None:
    """Its probability is known, and counts."""
    shipped = Shipped(divides_zero_by_zero, "sampler")
    law = output_law(shipped, instances.equal_models(1))
    assert law.undefined == Fraction(1, 2)
    assert law.total_variation == Fraction(1, 2)
    assert "multinomial" in min(shipped.journal.undefined)


def test_other_errors_are_one_line() -> None:
    def fails(*arguments: Any) -> Any:
        raise KeyError("row")

    with pytest.raises(InvalidOutcomeError, match=r"'fails' failed: KeyError: 'row' \(.*test_shipped"):
        output_law(Shipped(fails, "sampler"), instances.two_token(1))


def reseeds(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Lossless in one call, but every call reads the same numbers."""
    torch.manual_seed(0)
    return [int(torch.multinomial(target_rows[0, 0], 1))]


def test_two_calls_that_read_the_same_numbers() -> None:
    """One call is lossless; only two in a row show it."""
    pair = instances.bernoulli("1/2", "1/4")
    shipped = Shipped(reseeds, "sampler")
    assert certify(shipped, pair, with_optimum=False).total_variation == 0
    assert shipped.journal.findings == {("contract", "it gives torch's global generator a seed")}
    rows = np.stack([pair.target[0], pair.target[1][:1]], axis=1)
    assert shipped.two_calls(np.zeros((1, 1), dtype=int), rows, pair.draft[0][None]) == 2
    assert {kind for kind, _ in shipped.journal.findings} == {"contract", "randomness"}
    right = Shipped(divides_zero_by_zero, "sampler")
    right.two_calls(np.zeros((1, 1), dtype=int), rows, pair.draft[0][None])
    assert right.journal.findings == set()


TWO_TOKENS = (np.array([[0]]), np.array([[[0.25, 0.25, 0.5]] * 2]), np.array([[[0.5, 0.25, 0.25]]]))
THREE_TOKENS = (np.array([[0]]), np.array([[[0.25, 0.375, 0.375]] * 2]), np.array([[[0.5, 0.25, 0.25]]]))
"""A path of one token that is accepted with probability 1/2; rows with one residual token, and with two."""


def test_numbers_of_one_call_in_the_next() -> None:
    """Every branch of the first call is followed: only a rejection uses the coin of the next position, and
    only where it draws one of two tokens; the law of both calls says the same."""
    shipped = Shipped(coins_of_positions, "sampler")
    assert shipped.two_calls(*TWO_TOKENS) == 16
    assert shipped.journal.findings == set()
    assert shipped.two_calls(*THREE_TOKENS, max_runs=2) == 2  # the first branch accepts
    assert shipped.journal.findings == set()
    assert shipped.two_calls(*THREE_TOKENS) == 20  # after a rejection the next coin is known
    assert {text for _, text in shipped.journal.findings} == {
        "rand reads random numbers that rand has used in the call before",
        "after the tokens [1] the next call has another law, total variation 0.5",
    }


def test_partner_numbers_of_their_own() -> None:
    shipped = Shipped(token_verification, "sampler")
    assert shipped.two_calls(*THREE_TOKENS) == 25
    assert shipped.journal.findings == set()

"""The contract of draft generators: measured laws against reported rows, and the law of both halves."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from audits.forms.drafted import Drafted, measured
from audits.registry import load_subject
from deep import first_is_quick
from later import Later
from spectheory import audit, instances, output_law
from spectheory.auditing.following.intercept import Journal
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.results import LOSSLESS
from spectheory.pairs.pair import ModelPair

generation_utils = Later("transformers.generation.utils")

CONTRACT = ("contract", "drafts do not have the law of the rows that are reported for them")
PAIRS = {
    "three tokens": ModelPair.context_free_pair(["1/2", "3/10", "1/5"], ["3/5", "3/10", "1/10"], 1),
    "thirds": instances.two_token(1),
    "two residual tokens": instances.two_residual_tokens(1),
}


def honest(pair: ModelPair) -> Any:
    """Draws every token from the row that it reports."""

    def generate() -> tuple[list[int], torch.Tensor]:
        tokens: list[int] = []
        rows = []
        for depth in range(pair.draft_length):
            number = int(sum(token * pair.vocab_size**place for place, token in enumerate(reversed(tokens))))
            rows.append(torch.tensor(pair.draft[depth][number].astype(float), dtype=torch.float32))
            tokens.append(int(torch.multinomial(rows[-1], 1)))
        return tokens, torch.stack(rows).log()

    return generate


def greedy(pair: ModelPair) -> Any:
    """Drafts the likeliest token and says so: all mass of the reported row is on it."""

    def generate() -> tuple[list[int], torch.Tensor]:
        tokens, _ = load_subject("transformers-gemma4").generator_of(pair)()
        return tokens, torch.nn.functional.one_hot(torch.tensor(tokens), pair.vocab_size).float().log()

    return generate


@first_is_quick("generator", [honest, greedy], ids=lambda g: g.__name__)
def test_generators_that_say_what_they_do(generator: Any) -> None:
    """No finding, and both halves together are lossless."""
    pairs = {"chain": instances.sticky_chain(2)}
    sampler = Drafted(Shipped(generation_utils._speculative_sampling, "speculative_sampling"), generator)
    found = audit(sampler, pairs)
    assert (found.verdict, found.findings) == (LOSSLESS, ())


def test_the_honest_generator_has_the_laws_of_the_pair() -> None:
    pair, journal = instances.sticky_chain(2), Journal()
    law, reported = measured(honest(pair), pair, journal)
    for level, found, told in zip(pair.draft, law, reported, strict=True):
        assert abs(level - found).max() < 1e-6
        assert abs(level - told).max() < 1e-6
    assert journal.findings == set()


def law_by_hand(target_probs: np.ndarray, reported: np.ndarray, likeliest: int) -> list[Fraction]:
    """Of one drafted token, the likeliest: what transformers' arithmetic makes of it, as rationals.

    A number k / 2^24 accepts where it is at most the ratio r: floor(2^24 r) + 1 of them do.
    """
    p, q = (
        torch.tensor(row.astype(float), dtype=torch.float32).log().softmax(-1)
        for row in (target_probs, reported)
    )
    ratio = Fraction(float(p[likeliest] / q[likeliest]))
    accepted = min(Fraction(1), Fraction(int(ratio * 2**24) + 1, 2**24))
    residual = (p - q).clamp(min=0)
    weights = [Fraction(weight) for weight in residual.div(residual.sum()).tolist()]
    law = [(1 - accepted) * weight / sum(weights) for weight in weights]
    law[likeliest] += accepted
    return law


@first_is_quick("name", PAIRS)
def test_gemma4_assistants_draft_the_argmax_and_report_the_softmax(name: str) -> None:
    """With a the likeliest token and h = min(1, p_a/q_a) the law is h δ_a + (1-h) (p-q)+ / Σ (p-q)+.

    Up to float32, in which the target's row is computed from logits; the audit names the mechanism.
    """
    pair = PAIRS[name]
    subject = load_subject("transformers-gemma4")
    asked, prepared = subject.prepared(pair)
    found = output_law(asked, prepared).prefix_law(1)
    p, q = pair.target[0][0], pair.draft[0][0]
    likeliest = int(np.argmax(q))
    assert asked.reported is not None
    assert abs(found - np.array(law_by_hand(p, asked.reported[0][0], likeliest))).max() < 1e-6
    accepted = min(Fraction(1), p[likeliest] / q[likeliest])
    residual = np.maximum(p - q, 0)
    expected = (1 - accepted) * residual / (residual.sum() or 1)
    expected[likeliest] += accepted
    assert abs(found - expected).max() < 1e-6
    assert subject.journal.findings == {CONTRACT}
    assert [set(row) for row in prepared.draft[0]] == [{0, 1}]


def test_gemma4_assistants_on_three_tokens() -> None:
    """Target (5, 3, 2)/10, assistant (6, 3, 1)/10: the law is (5/6, 0, 1/6), and the mechanism is named."""
    found = audit(load_subject("transformers-gemma4"), {"three tokens": PAIRS["three tokens"]})
    assert found.is_defective
    assert CONTRACT in found.findings
    assert abs(found.total_variation - Fraction(1, 3)) < Fraction(1, 10**6)
    assert "candidate_generator.py, sha256" in found.note


def test_generators_that_cannot_be_measured() -> None:
    """A draft that is too short, and a row that changes with what was not drafted yet."""
    pair = instances.two_token(2)
    with pytest.raises(InvalidOutcomeError, match="drafted 1 tokens, expected 2"):
        measured(lambda: ([0], torch.zeros(1, 2)), pair, Journal())

    def changes() -> tuple[list[int], torch.Tensor]:
        token = int(torch.randint(2, (1,)))
        return [token, 0], torch.full((2, 2), float(token)).cumsum(-1)

    with pytest.raises(InvalidOutcomeError, match="reports two rows at ''"):
        measured(changes, pair, Journal())

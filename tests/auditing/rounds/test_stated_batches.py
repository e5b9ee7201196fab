"""The law of a greedy request, and of a request without drafts, is stated by the target's rows."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch

from audits.specimens.samplers import batch_token_verification
from spectheory.auditing.rounds.batch_battery import FIRST, NOTHING, TIED
from spectheory.auditing.rounds.batches import _Judge, audit_batches
from spectheory.auditing.subjects.relaxations import synthetic_acceptance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Row
from spectheory.pairs.processors import Processor, bias, temperature


@pytest.mark.deep
@pytest.mark.parametrize("relaxation", [None, synthetic_acceptance((Fraction(1, 2),) * 3)])
@pytest.mark.parametrize("mistake", ["least likely", "sampled"])
def test_greedy_requests_get_the_likeliest_tokens(mistake: str, relaxation: Any) -> None:
    """Alone and in a batch they are wrong alike."""

    def function(rows: Any, generator: Any) -> Any:
        if mistake == "sampled":
            return batch_token_verification([row._replace(is_greedy=False) for row in rows], generator)
        return [
            [int(row.target_probs[0].argmin())] if row.is_greedy
            else batch_token_verification([row], generator)[0]
            for row in rows
        ]  # fmt: skip

    sampler = Shipped(function, "batch", mixes=("greedy",), relaxation=relaxation)
    audit_batches(sampler, stop_at_first=True)
    found = any("does not get the likeliest tokens" in text for _, text in sampler.journal.findings)
    assert found is (relaxation is None)  # which states no law for them


def with_rows(change: Callable[[Any], Any]) -> Any:
    """Token verification on the rows that a sampler makes of those that it gets."""

    def sampler(rows: Any, generator: Any) -> Any:
        return batch_token_verification(
            [row._replace(target_probs=change(row.target_probs)) for row in rows], generator
        )

    return sampler


def squared(rows: Any) -> Any:
    return rows**2 / (rows**2).sum(-1, keepdim=True)


def at_a_temperature(rows: Any) -> Any:
    return (rows.log() / 0.7).softmax(-1)


def in_favour_of_the_last(rows: Any) -> Any:
    weights = rows * torch.tensor([1.0, 1.0, 8.0])
    return weights / weights.sum(-1, keepdim=True)


def stated_findings(sampler: Any, processor: Processor, row: Row) -> list[str]:
    shipped = Shipped(sampler, "batch", "sampler")
    shipped.processor = processor
    judge = _Judge(shipped)
    judge.alone(row, "ragged")
    return [text for _, text in judge.findings()]


@pytest.mark.parametrize(
    ("change", "processor"),
    [
        (squared, temperature("1/2")),
        (at_a_temperature, temperature("7/10")),  # which has no rational result
        (in_favour_of_the_last, bias({2: 8})),
    ],
)
def test_rows_are_stated_after_the_declared_parameters(change: Any, processor: Processor) -> None:
    """A sampler that draws from the raw rows is wrong."""
    assert stated_findings(with_rows(change), processor, NOTHING) == []
    (text,) = stated_findings(batch_token_verification, processor, NOTHING)
    assert text.startswith("a request without drafts (ragged) does not get a token of the target")


def test_greedy_tokens_are_the_likeliest_after_the_declared_parameters() -> None:
    """The bias makes the last token the likeliest, where the first two are in the raw row."""
    row = FIRST._replace(is_greedy=True)
    assert stated_findings(with_rows(in_favour_of_the_last), bias({2: 8}), row) == []
    (text,) = stated_findings(batch_token_verification, bias({2: 8}), row)
    assert text.startswith("a greedy request (ragged) does not get the likeliest tokens")
    assert text.endswith("[0, 0] in place of [2]")


def test_parameters_that_leave_no_token_are_said() -> None:
    """What the rows state is then not judged; the partner is."""
    for factors, wrong in (({0: 0, 1: 0, 2: 0}, 0), ({0: 0, 1: 0}, 1)):
        sampler = Shipped(batch_token_verification, "batch")
        sampler.processor = bias(factors)
        judge = _Judge(sampler)
        judge.alone(NOTHING, "no drafts")
        judge.alone(TIED, "greedy")
        assert len(judge.worst) == 2 * wrong
        assert len(sampler.journal.refused) == 1 - wrong
        assert all("leaves no token after the text" in text for text in sampler.journal.refused)

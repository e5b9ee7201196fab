"""Conventions of engines: the right sampler of a flattened batch keeps each, and a specimen breaks it."""

import math
import re
from typing import Any

import pytest
import torch

from audits.specimens.conventions import CONVENTIONS, MISTAKES, rejection_sample
from audits.specimens.flattened import rejection_sample as without_seeds
from audits.specimens.samplers import batch_token_verification
from spectheory import audit, instances
from spectheory.auditing.handing.handing import handing
from spectheory.auditing.rounds.batch_battery import FIRST, SECOND, TIED
from spectheory.auditing.rounds.batches import _Judge
from spectheory.auditing.rounds.by_calls import learn_requests
from spectheory.auditing.rounds.conventions import CHECKS, check_conventions
from spectheory.auditing.rounds.joint_laws import total_variation
from spectheory.auditing.subjects.model_loops import as_shipped
from spectheory.auditing.subjects.runs import TimeIsUpError
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.verdicts import sampler_audit
from spectheory.foundation.errors import UnknownNameError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.pairs.processors import bias, temperature

SAYS = {
    "seeds": r"request \d of \d with the seed \d+ gets the tokens \[.*\], and alone \[.*\]",
    "logprobs": r"request \d of 2 gets \[.*\] and for token \d the log-probability -\S+; its row has -",
    "nan": r"where row 1 of request \d of 2 is NaN, request \d gets \[0\], the last of which it has re",
}
"""Mistake -> the finding."""


def flat(function: Any) -> Shipped:
    return as_shipped(function, "flattened_batch", "flat")


def test_a_right_sampler_keeps_all_conventions() -> None:
    sampler = flat(rejection_sample)
    assert check_conventions(sampler) == tuple(CHECKS)
    assert sampler.journal.findings == set()


@pytest.mark.parametrize("mistake", SAYS)
def test_a_broken_convention_is_found_with_the_request_that_shows_it(mistake: str) -> None:
    sampler = flat(CONVENTIONS[mistake][0])
    check_conventions(sampler)
    ((kind, text),) = sampler.journal.findings
    assert kind == "batch"
    assert re.match(SAYS[mistake], text)


def test_only_what_a_sampler_declares_is_checked() -> None:
    """Neither reads seeds, takes logits or returns log-probabilities."""
    for sampler in (flat(without_seeds), Shipped(batch_token_verification, "batch")):
        assert check_conventions(sampler) == ()
    assert check_conventions(Shipped(lambda requests, generator: [], "path_batch")) == ()


def test_a_token_that_is_not_of_the_vocabulary() -> None:
    """Where the row of another request is NaN."""

    def beyond(target_logits: Any, num_draft_tokens: Any) -> torch.Tensor:
        return torch.full((len(num_draft_tokens), 1), 3 if target_logits.isnan().any() else 0)

    sampler = flat(beyond)
    check_conventions(sampler)
    ((_, text),) = sampler.journal.findings
    where = "where row 1 of request 1 of 2 is NaN, request 1 gets [3]"
    assert text == f"{where}: it returns the token 3, which is not in 0..2"


def test_log_probabilities_are_those_of_the_processed_row() -> None:
    """Under a declared temperature, those of the raw row are wrong."""
    for processor, is_wrong in ((temperature("1/2"), True), (None, False)):
        sampler = flat(rejection_sample)
        sampler.processor = processor
        check_conventions(sampler)
        assert any("log-probability" in text for _, text in sampler.journal.findings) is is_wrong


def test_a_sampler_of_rows_returns_pairs() -> None:
    """A pair holds tokens and their log-probabilities; a tuple of two tokens is not taken for one."""

    def returns(answer: Any) -> Shipped:
        return Shipped(lambda rows, generator: [answer] * len(rows), "batch", "sampler")

    tokens = returns((0, 1))
    assert tokens.batch_law([FIRST])[0] == {((0, 1),): 1}
    assert check_conventions(tokens) == ()
    pairs = returns(([0, 1], [-0.5, -1.0]))
    assert pairs.batch_law([FIRST])[0] == {((0, 1),): 1}
    assert check_conventions(pairs) == ("log-probabilities",)
    ((_, text),) = pairs.journal.findings
    assert text.startswith(
        "request 1 of 2 gets [0, 1] and for token 1 the log-probability -0.5; its row has -0.8"
    )


def test_every_token_has_a_log_probability() -> None:
    """A sampler that drops the last one is wrong; more than the tokens' are placeholders'."""

    def returns(logprobs: list[float]) -> list[str]:
        sampler = Shipped(lambda rows, generator: [([0, 1], logprobs)] * len(rows), "batch", "sampler")
        check_conventions(sampler)
        return [text for _, text in sampler.journal.findings]

    right = [math.log(float(row[token])) for token, row in zip((0, 1), FIRST.target_probs, strict=False)]
    assert returns(right[:1]) == ["request 1 of 2 gets [0, 1] and log-probabilities of 1 token"]
    (text,) = returns([*right, 0.0])
    assert text.startswith("request 2 of 2")  # whose rows are others


def test_a_sampler_that_refuses_a_batch() -> None:
    """Its error is an answer; the time of an audit that is up, and what a stand-in lacks, are not."""

    def refuses(rows: Any, generator: Any) -> Any:
        assert rows[0].seed is None
        raise UnknownNameError("no such batch")

    sampler = Shipped(refuses, "batch")
    assert check_conventions(sampler) == ()
    sampler.deadline = 0.0
    with pytest.raises(TimeIsUpError, match="the time is up"):
        check_conventions(sampler)


def test_a_stand_in_that_lacks_something_at_the_conventions() -> None:
    def asks(rows: Any, generator: Any) -> Any:
        return [row.block_table for row in rows]

    with pytest.raises(NotEnumerableError, match="requests are stand-ins"):
        check_conventions(Shipped(asks, "batch"))


def test_a_request_with_a_seed_that_fails_in_company() -> None:
    """A failure is not the tokens that it has alone."""

    def of_three(rows: Any, generator: Any) -> Any:
        if len(rows) == 3:
            raise RuntimeError("three requests")
        return [[0] if row.seed else [1] for row in rows]

    sampler = Shipped(of_three, "batch")
    assert check_conventions(sampler) == ("seeds",)
    ((_, text),) = sampler.journal.findings
    assert text == "request 2 of 3 with the seed 1000 gets no valid output, and alone [0]"


def test_an_audit_whose_time_is_up_at_the_conventions(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is undecided, and does not fail."""

    def is_up(sampler: Shipped) -> Any:
        raise TimeIsUpError("the time is up")

    thirds = {"thirds": instances.two_token(1)}
    for check, verdict in ((is_up, UNDECIDED), (lambda sampler: (), LOSSLESS)):
        monkeypatch.setattr(sampler_audit, "check_conventions", check)
        monkeypatch.setattr(sampler_audit, "audit_batches", lambda sampler, **_: ("equal lengths",))
        assert audit(batch_token_verification, thirds, signature="batch").verdict == verdict


def test_parameters_without_a_token_leave_log_probabilities_out() -> None:
    sampler = flat(rejection_sample)
    sampler.processor = bias({0: 0, 1: 0, 2: 0})
    assert check_conventions(sampler) == ("seeds", "rows without a distribution")
    (text,) = sampler.journal.refused
    assert text.startswith("log-probabilities: ")


def findings_alone(sampler: Shipped, row: Any, kind: str) -> list[str]:
    judge = _Judge(sampler)
    judge.alone(row, kind)
    return [text for _, text in judge.findings()]


def test_ties_are_broken_as_plain_decoding_breaks_them() -> None:
    for mistake in ("last_tie", "any_tie"):
        (text,) = findings_alone(flat(CONVENTIONS[mistake][0]), TIED, "greedy")
        assert text.startswith("of equally likely tokens a greedy request (greedy) does not get the first")
        assert text.endswith("in place of [1]")
    assert findings_alone(flat(rejection_sample), TIED, "greedy") == []


def likeliest_with_a_seed(rows: Any, generator: Any) -> Any:
    return [
        [int(row.target_probs[0].argmax())]
        if row.seed is not None
        else batch_token_verification([row], generator)[0]
        for row in rows
    ]


def test_a_request_with_a_seed_has_the_law_of_a_request_without() -> None:
    wrong = Shipped(likeliest_with_a_seed, "batch")
    (text,) = findings_alone(wrong, FIRST._replace(seed=1_000), "seeds")
    assert text.startswith("a request with a seed (seeds) has another law than without")
    assert findings_alone(flat(rejection_sample), SECOND._replace(seed=1_000), "seeds") == []


def test_the_law_of_a_request_with_a_seed_is_learned_from_calls() -> None:
    """Every call gets another seed: with one seed, all calls would have one answer."""
    sampler = flat(rejection_sample)
    short = Row(FIRST.draft_tokens[:1], FIRST.target_probs[:2], FIRST.draft_probs[:1], seed=1_000)
    followed, _ = sampler.batch_law([short])
    sampler.learns = learn_requests(0.4, 1e-3)
    with handing():
        learned, _ = sampler.batch_law([short])
    assert total_variation(followed, learned) < 1e-4


@pytest.mark.deep
@pytest.mark.parametrize("mistake", ["", *MISTAKES])
def test_whole_audits(mistake: str) -> None:
    function = CONVENTIONS[mistake][0] if mistake else rejection_sample
    found = audit(function, {"thirds": instances.two_token(1)}, signature="flattened_batch")
    assert found.verdict == (NOT_LOSSLESS if mistake else LOSSLESS)
    assert "seeds" in found.batches
    calls = "by 16 calls of each batch, 4 with rows without a distribution: "
    assert calls + ", ".join(CHECKS) in found.probes

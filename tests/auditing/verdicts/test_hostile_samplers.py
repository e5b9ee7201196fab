"""Samplers with the right law in every call that is looked at alone, which break what an audit relies on."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from audits.specimens.rounds import speculative_round
from audits.specimens.samplers import batch_token_verification, token_verification
from deep import first_is_quick
from spectheory import audit, instances
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.results import NOT_LOSSLESS, UNDECIDED

PAIRS = {"thirds": instances.two_token(1)}
CHANGED = "is changed in place"
REPORTED = "drafts do not have the law of the rows that are reported for them"


def changes_the_type(*given: Any) -> Any:
    found = token_verification(*given)
    given[1].data = given[1].data.double()
    return found


def changes_the_shape(*given: Any) -> Any:
    found = token_verification(*given)
    given[1].squeeze_(0)
    return found


def without_end(*given: Any) -> Iterator[int]:
    return itertools.repeat(0)


def half_precision_noise(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> Any:
    noise = -(-torch.rand(target_rows[0, 0].shape, generator=generator).log()).log()
    return [int((target_rows[0, 0].log() + noise).to(torch.bfloat16).argmax())]


@pytest.mark.parametrize("sampler", [changes_the_type, changes_the_shape])
def test_what_outlasts_a_call_is_a_defect(sampler: Callable[..., Any]) -> None:
    found = audit(sampler, PAIRS, drafts=1)
    assert found.verdict == NOT_LOSSLESS
    assert CHANGED in " ".join(found.reasons)
    assert audit(token_verification, PAIRS, drafts=1).is_lossless


def test_an_iterator_without_end_is_a_defect() -> None:
    found = audit(without_end, PAIRS, drafts=1)
    assert found.verdict == NOT_LOSSLESS
    assert "10000 tokens or more, or does not end" in found.reasons[0]


def test_another_precision_of_noise_is_not_followed() -> None:
    """The grid of half precision changes the law by a few thousandths, within what is asked here."""
    found = audit(half_precision_noise, PAIRS, drafts=1, within=0.05)
    assert found.verdict == UNDECIDED
    assert "applies to in torch.bfloat16 to exponential" in found.headline()


class TokensOfTheBatchBefore:
    """From its second batch on, the second request gets the tokens of the first."""

    __name__ = "tokens_of_the_batch_before"
    known: Any = None

    def __call__(self, rows: Any, generator: Any) -> Any:
        found = batch_token_verification(rows, generator)
        is_first, self.known = self.known is not generator, generator
        return found if is_first or len(rows) == 1 else [found[0], found[0]]


def in_one_buffer(rows: Any, generator: Any) -> Any:
    """Requests of as many tokens get the same memory."""
    buffers: dict[int, torch.Tensor] = {}
    for tokens in batch_token_verification(rows, generator):
        buffer = buffers.setdefault(len(tokens), torch.empty(len(tokens), dtype=torch.long))
        buffer[:] = torch.tensor(tokens)
        yield buffer


def empties_its_rows(rows: Any, generator: Any) -> Any:
    found = batch_token_verification(rows, generator)
    rows.clear()
    return found


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        (
            TokensOfTheBatchBefore(),
            "the next call has another law",
        ),
        (in_one_buffer, "has no valid output"),
        pytest.param(empties_its_rows, "its argument rows is changed in place", marks=pytest.mark.deep),
    ],
)
def test_batches_are_looked_at_whole_and_twice(sampler: Any, said: str) -> None:
    shipped = Shipped(sampler, "batch", mixes=())
    audit_batches(shipped, stop_at_first=True)
    assert any(said in text for _, text in shipped.journal.findings)


@pytest.mark.parametrize("wrong", [float, lambda token: [token]])
def test_tokens_of_batches_are_tokens(wrong: Callable[[int], Any]) -> None:
    def sampler(rows: Any, generator: Any) -> Any:
        found = batch_token_verification(rows, generator)
        return found if len(rows) == 1 else [list(map(wrong, tokens)) for tokens in found]

    shipped = Shipped(sampler, "batch")
    audit_batches(shipped, stop_at_first=True)
    ((_, text),) = shipped.journal.findings
    assert "has no valid output" in text
    assert "expected token ids" in text


def posterior(best: Any, accepted: Any, row: Callable[[Any], Any] = lambda row: row) -> Callable[..., Any]:
    """Accepts nothing and has the target's row drawn, which is lossless; what it says is given."""

    def sampler(logits: Any, candidates: Any, logits_processor: Any) -> Any:
        return best, accepted, row(logits_processor(None, logits[0])[0].softmax(-1))

    return sampler


@first_is_quick(
    ("sampler", "said"),
    [
        (posterior(0, -1), "the number of accepted tokens is -1, which is not in 0..1"),
        (posterior(0, 2), "the number of accepted tokens is 2"),
        (posterior(0, 0.5), "the number of accepted tokens is 0.5"),
        (posterior(0, "0"), "the number of accepted tokens is '0'"),
        (posterior(torch.tensor(-1), 0), "the best path is -1"),
        (posterior(0, 0, lambda row: torch.cat([row, row])), "a row of 4 numbers, not 2"),
    ],
    quick=2,
)
def test_counts_and_rows_must_fit(sampler: Callable[..., Any], said: str) -> None:
    found = audit(sampler, PAIRS, signature="evaluate_posterior", drafts=1)
    assert found.verdict == NOT_LOSSLESS
    assert said in " ".join(found.reasons)
    assert audit(posterior(0, torch.tensor([0])), PAIRS, signature="evaluate_posterior", drafts=1).is_lossless


def reporting(change: Callable[[Any], Any]) -> Callable[..., Any]:
    def play(*given: Any) -> Any:
        drafted, reported, tokens = speculative_round(*given)
        return drafted, change(reported), tokens

    return play


@pytest.mark.parametrize("scale", [-1, 3, 1e-40])
def test_reported_rows_are_compared_as_they_are(scale: float) -> None:
    """A multiple of a law is none."""
    found = audit(reporting(lambda rows: scale * rows), PAIRS, signature="round")
    assert found.verdict == NOT_LOSSLESS
    assert REPORTED in " ".join(found.reasons)


@first_is_quick(
    "change",
    [lambda rows: rows * float("nan"), lambda rows: rows.log() - float("inf"), lambda rows: rows + 0j, str],
    quick=4,
)
def test_reported_rows_are_finite_floats(change: Callable[[Any], Any]) -> None:
    found = audit(reporting(change), PAIRS, signature="round")
    assert found.verdict == NOT_LOSSLESS
    assert "draft probabilities that are not finite real numbers of shape" in found.reasons[0]


def test_a_round_leaves_its_text_alone() -> None:
    def play(text: list[int], *given: Any) -> Any:
        found = speculative_round(list(text), *given)
        text.append(0)
        return found

    found = audit(play, PAIRS, signature="round")
    assert found.verdict == NOT_LOSSLESS
    assert "its argument text is changed in place" in " ".join(found.reasons)
    assert audit(speculative_round, PAIRS, signature="round").is_lossless


def test_rows_of_whole_numbers_are_rows() -> None:
    """The honest partner: a drafter that takes one token for certain, and says so in integers."""

    def play(text: list[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
        token = int(torch.multinomial(target(text), 1, generator=generator))
        after = int(torch.multinomial(target([*text, 0]), 1, generator=generator))
        return [0], torch.tensor([[1, 0]]), [0, after] if token == 0 else [token]

    assert audit(play, PAIRS, signature="round").is_lossless


def test_a_batch_whose_first_run_is_invalid_is_a_defect() -> None:
    """The second batch is followed behind a run with an output."""

    def sampler(rows: Any, generator: Any) -> Any:
        found = batch_token_verification(rows, generator)
        return [[9] if tokens == [0, 0] and len(rows) > 1 else tokens for tokens in found]

    found = audit(sampler, PAIRS, signature="batch", stop_at_first=True)
    assert found.verdict == NOT_LOSSLESS


def test_a_long_error_is_read_to_its_end() -> None:
    """A long text may name the class of a random number; the run fails on ordinary numbers, too."""

    def sampler(*given: Any) -> Any:
        raise TypeError(600 * "x" + " got RandomTensor")

    found = audit(sampler, PAIRS, drafts=1, within=0.05)
    assert (found.verdict, found.basis) == (NOT_LOSSLESS, "followed")
    assert found.ways == ()
    assert "it makes no valid output with probability 1" in found.reasons[0]

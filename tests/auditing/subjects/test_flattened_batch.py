"""Samplers of a flattened batch: each mistake is found, and the right one passes."""

from typing import Any

import pytest
import torch

from audits.specimens.flattened import FLATTENED_SPECIMENS, rejection_sample
from spectheory import audit, instances
from spectheory.auditing.rounds.batch_battery import FIRST, NOTHING, SECOND
from spectheory.auditing.subjects.flattened_batch import flat_tensors, flattened
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS
from spectheory.pairs.processors import temperature

ONE = {"thirds": instances.two_token(1)}


@pytest.mark.deep
def test_the_right_sampler_of_a_flattened_batch_is_lossless() -> None:
    assert audit(rejection_sample, ONE, signature="flattened_batch").verdict == LOSSLESS


@pytest.mark.parametrize(
    "mistake",
    [
        "offset",
        *(pytest.param(name, marks=pytest.mark.deep) for name in FLATTENED_SPECIMENS if name != "offset"),
    ],
)
def test_every_mistake_in_a_flattened_batch_is_found(mistake: str) -> None:
    wrong, _ = FLATTENED_SPECIMENS[mistake]
    found = audit(wrong, ONE, signature="flattened_batch", stop_at_first=True)
    assert found.verdict == NOT_LOSSLESS
    assert any(kind == "batch" for kind, _ in found.findings) or mistake == "bonus"


def test_the_tensors_of_a_batch_lie_one_after_the_other() -> None:
    rows = [FIRST, NOTHING, SECOND._replace(padding=1)]
    flat = flat_tensors(rows)
    assert flat["num_draft_tokens"] == [2, 0, 3]
    assert flat["cu_num_draft_tokens"].tolist() == [2, 2, 5]
    assert flat["draft_token_ids"].tolist() == [0, 1, 2, 0, -1]
    assert flat["target_probs"].shape == flat["draft_probs"].shape == (5, 3)
    assert torch.equal(flat["target_logits"].exp(), flat["target_probs"])
    assert torch.equal(flat["bonus_probs"][1], NOTHING.target_probs[0])
    assert not flat["draft_probs"][4].any()


def test_a_function_gets_the_arguments_that_it_names() -> None:
    seen: dict[str, Any] = {}

    def sampler(draft_token_ids: Any, temperature: Any, bonus_probs: Any, scale: float = 1.0) -> torch.Tensor:
        seen.update(temperature=temperature, scale=scale)
        return torch.cat([bonus_probs.argmax(-1, keepdim=True), torch.full((2, 1), -1)], dim=1)

    tokens = flattened(sampler)([FIRST, SECOND._replace(is_greedy=True)], None)
    assert tokens == [[0], [0]]
    assert seen["temperature"].tolist() == [1.0, 0.0]
    assert seen["scale"] == 1.0


def test_a_function_with_an_unknown_argument_is_refused() -> None:
    def sampler(draft_token_ids: Any, block_tables: Any) -> Any:
        return draft_token_ids

    with pytest.raises(InvalidInputError, match="'block_tables'"):
        audit(sampler, ONE, signature="flattened_batch")


def test_a_tuple_of_other_parts_is_refused() -> None:
    def three(draft_token_ids: Any) -> Any:
        return (torch.zeros(1, 1, dtype=torch.long),) * 3

    with pytest.raises(InvalidOutcomeError, match="a tuple of 3 parts"):
        flattened(three)([FIRST], None)


def test_a_drawn_bonus_token_has_no_declared_parameters() -> None:
    """It comes from the raw row.  The partner draws it itself, from the row's first likeliest token."""

    def draws(num_draft_tokens: Any, target_probs: Any, bonus_probs: Any) -> Any:
        return torch.cat([target_probs, bonus_probs])[: len(num_draft_tokens)].argmax(-1)[:, None]

    greedy = temperature(0)
    assert audit(draws, ONE, signature="flattened_batch", processor=greedy, stop_at_first=True).cases
    with pytest.raises(InvalidInputError, match="take bonus_probs, and draw this token"):
        audit(rejection_sample, ONE, signature="flattened_batch", processor=greedy)

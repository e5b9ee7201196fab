"""Rounds of libraries that call both models: caches of the stand-ins, and a loop that reads a wrong row."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spectheory import audit, instances
from spectheory.auditing.subjects.adapters import model_rounds
from spectheory.auditing.subjects.adapters.model_rounds import CachedModel

PAIR = {"dyadic": instances.sticky_chain(1)}


def test_a_model_reads_its_cache() -> None:
    model = CachedModel()
    model.row = lambda text: torch.tensor([1.0 + len(text), sum(text)])
    assert model(torch.tensor([[0, 1, 1]])).exp().tolist() == [[[1, 0], [2, 1], [3, 2]]]
    assert model(torch.tensor([[1]]), torch.tensor([4])).exp().tolist() == [[[5, 3]]]  # position 3 is empty
    assert model.asked == [1]


def speculative_decode(shift: int) -> Any:
    """One token is drafted; with a shift the target reads the token before."""

    def decode(model: Any, draft_model: Any, cur_token: Any, input_pos: int, speculate_k: int) -> Any:
        place = torch.tensor([input_pos])
        draft = draft_model(cur_token[None], place)[0, -1].softmax(-1)
        token = torch.multinomial(draft, 1)
        target = model(torch.cat([cur_token, token])[None], place + torch.arange(2))[0].softmax(-1)
        row = target[0]
        if torch.rand(()) < row[token] / draft[token]:
            return torch.cat([token, torch.multinomial(target[1 - shift], 1)])
        return torch.multinomial((row - draft).clamp(min=0), 1)

    return decode


def of_litgpt(decode: Any) -> Any:
    """The same round with the arguments of LitGPT."""

    def step(
        *,
        draft_model: Any,
        target_model: Any,
        token: Any,
        input_pos: Any,
        input_pos_maxp1: int,
        speculative_k: int,
    ) -> Any:
        assert input_pos_maxp1 == input_pos.item() + 1
        return decode(target_model, draft_model, token, input_pos.item(), speculative_k)

    return SimpleNamespace(call=step)


def of_mini_infer(decode: Any) -> Any:
    """The same round with the arguments of Mini-Infer, whose models read the whole text."""

    def step(
        *, target_model: Any, draft_model: Any, prefix_ids: Any, k_draft: int, temperature: float
    ) -> Any:
        assert temperature == 1
        models = behind(prefix_ids, lambda ids: target_model(ids)[0], lambda ids: draft_model(ids)[0])
        return decode(*models, prefix_ids[0, -1:], prefix_ids.shape[1] - 1, k_draft).tolist(), None

    return SimpleNamespace(call=step)


def of_specdec(decode: Any) -> Any:
    """The same round as the methods of the decoder of specdec."""

    class Decoder:
        def generate_small(self, ids: Any, length: int) -> Any:
            return length, self.device

        def verify(self, ids: Any, length: int, device: str) -> Any:
            assert device == "cpu"
            models = behind(
                ids,
                lambda ids: self.big_model(ids).logits,
                lambda ids: self.small_model(ids, past=None).logits,
            )
            return decode(*models, ids[0, -1:], ids.shape[1] - 1, length).tolist()

    return SimpleNamespace(function=Decoder)


def behind(ids: Any, *models: Any) -> list[Any]:
    """Models of whole texts, asked as ones with a cache."""
    return [
        lambda tokens, place, model=model: model(torch.cat([ids[:, : place[0]], tokens], dim=1))[
            :, place[0] :
        ]
        for model in models
    ]


ROUNDS = {
    "gpt_fast": lambda decode: SimpleNamespace(call=decode),
    "litgpt": of_litgpt,
    "mini_infer": of_mini_infer,
    "specdec": of_specdec,
}


@pytest.mark.parametrize("library", ROUNDS)
@pytest.mark.parametrize(("shift", "is_lossless"), [(0, True), (1, False)])
def test_a_round_of_a_library(library: str, shift: int, is_lossless: bool) -> None:
    code: Any = ROUNDS[library](speculative_decode(shift))
    found = audit(getattr(model_rounds, library)(code), PAIR, signature="round")
    assert ("lossless" in found.verdict) == is_lossless, found.headline()

"""Rounds of libraries that call both models: caches of the stand-ins, and a loop that reads a wrong row."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from audited import recorded
from audits.forms import cached_models
from audits.forms.cached_models import CachedModel
from audits.libraries import gpt_fast, litgpt, mini_infer, specdec
from deep import first_is_quick
from spectheory import audit, instances

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


LIBRARIES: dict[str, Any] = {
    "gpt_fast": gpt_fast,
    "litgpt": litgpt,
    "mini_infer": mini_infer,
    "specdec": specdec,
}
ROUNDS = {
    "gpt_fast": lambda decode: SimpleNamespace(call=decode),
    "litgpt": of_litgpt,
    "mini_infer": of_mini_infer,
    "specdec": of_specdec,
}


@first_is_quick("library", ROUNDS, quick=2)
@pytest.mark.parametrize(("shift", "is_lossless"), [(0, True), (1, False)])
def test_a_round_of_a_library(library: str, shift: int, is_lossless: bool) -> None:
    code: Any = ROUNDS[library](speculative_decode(shift))
    found = audit(getattr(LIBRARIES[library], library)(code), PAIR, signature="round")
    assert found.is_lossless == is_lossless, found.headline()


@pytest.mark.parametrize("lacks", ["draft", "target"])
def test_a_cache_that_lacks_a_token(lacks: str) -> None:
    """The round tells what a draft model without it drew from; a target may lack none."""

    def decode(model: Any, draft_model: Any, cur_token: Any, input_pos: int, speculate_k: int) -> Any:
        if lacks == "target":
            model.cache.pop(input_pos - 1, None)
        return speculative_decode(0)(model, draft_model, cur_token, input_pos, speculate_k)

    code: Any = SimpleNamespace(call=decode)
    found = audit(gpt_fast.gpt_fast(code), PAIR, signature="round")
    assert found.is_lossless == (lacks == "draft"), found.headline()


def row(text: Any) -> torch.Tensor:
    """It depends on every token of a text and its place."""
    weights = [1, 1 + sum(place * token for place, token in enumerate(text, 1)), 1 + len(text)]
    return torch.tensor(weights) / sum(weights)


def test_models_of_a_request_are_kept_until_the_next_one() -> None:
    """The drafted tokens are the last ones that the target is asked about; rows are those of the draft."""
    seen: list[Any] = []

    def step(big: CachedModel, small: CachedModel, ids: torch.Tensor, length: int) -> Any:
        seen.append((big, small, ids.tolist(), length))
        big(torch.tensor([[0, 2, 1]]))
        small(torch.cat([ids, torch.tensor([[2]])], dim=1))
        assert_close(big.row([1]), row([1]))
        assert_close(small.row([1]), row([2]))
        return iter([2, 1, 0])

    play = cached_models.with_models(step)
    draft: Any = lambda text: row([2 * token for token in text])  # noqa: E731
    for text in ([], [1, 0], []):
        path, rows, tokens = play(text, row, draft, 2, None)
        assert (path, tokens) == ([2, 1], [2, 1, 0])
        assert_close(rows, torch.stack([draft(text), draft([*text, 2])]))
    assert [(ids, length) for _, _, ids, length in seen] == [([[0]], 2), ([[0, 1, 0]], 2), ([[0]], 2)]
    (big, small, *_), second, third = seen
    assert (second[0], second[1]) == (big, small)
    assert big is not small
    assert {third[0], third[1]}.isdisjoint({big, small})
    assert CachedModel.max_seq_length == 128


def test_what_rounds_of_libraries_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models, the last token and its place, or the whole text, and the number of drafted tokens."""
    for library in LIBRARIES.values():
        monkeypatch.setattr(library, "with_models", lambda step: step)
    models, ids = (
        (lambda *given: ("target", given), lambda *given: ("draft", given)),
        torch.tensor([[0, 1, 2]]),
    )

    given, code = recorded([1])
    assert gpt_fast.gpt_fast(code)(*models, ids, 4) == [1]
    assert (given.pop("model"), given.pop("draft_model")) == models
    assert_close(given, {"cur_token": torch.tensor([2], dtype=torch.int32), "input_pos": 2, "speculate_k": 4})

    given, code = recorded([1])
    assert litgpt.litgpt(code)(*models, ids, 4) == [1]
    for name in ("target", "draft"):
        assert given.pop(f"{name}_model")("tokens", "places", input_pos_maxp1=3) == (
            name,
            ("tokens", "places"),
        )
    place = {"token": torch.tensor([2]), "input_pos": torch.tensor([2]), "input_pos_maxp1": 3}
    assert_close(given, place | {"speculative_k": 4})

    given, code = recorded(((1, 2), "another"))
    assert mini_infer.mini_infer(code)(*models, ids, 4) == [1, 2]
    for name in ("target", "draft"):
        assert given.pop(f"{name}_model")("tokens") == ((name, ("tokens",)), None)
    assert_close(given, {"prefix_ids": ids, "k_draft": 4, "temperature": 1.0})

    class Decoder:
        def __init__(self) -> None:
            raise RuntimeError("models are loaded")

        def generate_small(self, *given: Any) -> Any:
            assert given == (ids, 4)
            assert self.small_model("tokens", past=None).logits == ("draft", ("tokens",))
            return "drafted", self.device

        def verify(self, *given: Any) -> Any:
            assert given == (ids, "drafted", "cpu")
            assert self.big_model("tokens").logits == ("target", ("tokens",))
            return (1, 2)

    decoder: Any = SimpleNamespace(function=Decoder)
    assert specdec.specdec(decoder)(*models, ids, 4) == [1, 2]

"""Stand-ins for models and tokenizers, against what loops written for transformers expect of them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from spectheory.auditing.subjects.loop_forms import LoopForm
from spectheory.auditing.subjects.roles import UNREACHED
from spectheory.auditing.subjects.table_models import TableModel, tokens_returned
from spectheory.auditing.subjects.table_tokenizer import TableTokenizer

THREE = TableTokenizer(3)
BY_LENGTH = [[0.125, 0.625, 0.25], [0.5, 0.125, 0.375]]


def model() -> TableModel:
    """The row depends on the number of tokens after the prompt."""
    form = LoopForm("[1, T]", "answer", False, "dynamic", 1.0, 2, 0, 0)
    return TableModel(lambda text: BY_LENGTH[len(text) % 2], lambda text: BY_LENGTH[0], 3, form)


def test_texts_and_tokens_are_the_same_thing() -> None:
    assert THREE.encode("bab") == [1, 0, 1]
    assert THREE("bab", return_tensors="pt").to("cpu")["input_ids"].tolist() == [[1, 0, 1]]
    assert THREE(["ba", "ab"]).input_ids == [[1, 0], [0, 1]]
    assert THREE.batch_decode(torch.tensor([[1, 0], [2, 2]])) == ["ba", "cc"]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "ab"}]
    assert THREE.apply_chat_template(messages, tokenize=False) == "ab"
    assert THREE.apply_chat_template(messages, return_tensors="pt").tolist() == [[0, 1]]
    assert THREE.convert_tokens_to_ids("</think>") == THREE.unk_token_id
    assert THREE.convert_ids_to_tokens(THREE.convert_tokens_to_ids(["a", "c"])) == ["a", "c"]
    many = list(range(500))
    assert TableTokenizer(500).encode(TableTokenizer(500).decode(many).strip()) == many


@pytest.mark.parametrize(
    "asked",
    [
        lambda: THREE("abd"),
        lambda: THREE("A b"),
        lambda: THREE([1, 0]),
        lambda: THREE.decode([0, -1]),
        lambda: THREE("ab", return_tensors="tf"),
    ],
)
def test_what_is_no_text_of_the_table_is_refused(asked: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="expected"):
        asked()


def test_what_a_stand_in_lacks_is_named() -> None:
    text = torch.tensor([[1, 0, 1, 1]])
    for ask in (
        lambda: THREE.chat_template,
        lambda: model().generate(text, 1, top_k=5),
        lambda: model().generate(text, 1, eos_token_id=2),
        lambda: model().generate(text, max_length=6),
        lambda: model().generate(text),
        lambda: model().generate(text, 1, eos_token_id=torch.tensor([2, 1])),
    ):
        with pytest.raises(AttributeError, match="stand-in") as refusal:
            ask()
        assert refusal.value.obj is not None


@pytest.mark.parametrize(
    "returned",
    [
        "bac",
        ["bac"],
        {"tokens_generated": 3, "text": "bac"},
        (torch.tensor([[1, 0, 2]]), 0.5),
        [[1, 0, 2]],
    ],
)
def test_what_loops_return_has_tokens(returned: Any) -> None:
    assert tokens_returned(returned) == [1, 0, 2]


def test_a_cache_is_cut_to_a_length_or_by_a_number() -> None:
    found = model()(torch.tensor([[1, 0, 1, 1, 2]]))
    cache = found.past_key_values
    for length, kept in ((9, 5), (0, 5), (4, 4), (-1, 3)):  # 0 removes nothing
        cache.crop(length)
        assert cache.get_seq_length() == kept
    cache.crop(max_length=3)
    cache.crop(tokens_to_remove=0)
    assert cache.get_seq_length() == 3
    assert torch.equal(
        model()(torch.tensor([[1, 2]]), past_key_values=cache).logits[0, -1], found.logits[0, -1]
    )


def test_a_model_generates_as_transformers_does() -> None:
    """Greedily by default; then the scores are the rows before the tokens."""
    prompt = torch.tensor([[1, 0, 1, 1]])
    found = model().generate(prompt, 2, return_dict_in_generate=True, output_scores=True)
    assert found.sequences.tolist() == [[1, 0, 1, 1, 1, 0]]
    assert torch.allclose(torch.softmax(torch.cat(found.scores), -1), torch.tensor(BY_LENGTH))
    assert found.logits == found.scores
    assert model().generate(prompt, 1, eos_token_id=UNREACHED, num_return_sequences=1).shape == (1, 5)
    torch.manual_seed(0)
    drawn = {tuple(model().generate(prompt, 1, do_sample=True)[0].tolist()) for _ in range(40)}
    assert len(drawn) == 3

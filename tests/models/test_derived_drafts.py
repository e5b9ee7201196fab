"""Drafts made of a model: each row against a second route to its law, which a wrong draft fails."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deep import first_is_quick
from models_support import PROMPTS, full_row
from spectheory.decoding import decode
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.derived_drafts import first_layers, last_tokens, prompt_lookup
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.models.sampling import scaled_logits

OPTIONS = SamplingOptions(temperature=0.8)


def first_layers_row(model: Any, text: list[int], count: int) -> torch.Tensor:
    """The final norm and the output layer on what transformers says the layers gave."""
    with torch.no_grad():
        hidden = model(torch.tensor([text]), output_hidden_states=True).hidden_states[count][0, -1]
        norm = model.base_model.norm if hasattr(model.base_model, "norm") else model.base_model.ln_f
        return scaled_logits(model.get_output_embeddings()(norm(hidden)), OPTIONS).softmax(-1)


def last_tokens_row(model: Any, text: list[int], width: int) -> torch.Tensor:
    return full_row(model, text[-width:], OPTIONS)


def looked_up(text: list[int], longest: int) -> int:
    """The token that prompt look-up repeats, by search in lists."""
    for count in range(min(longest, len(text) - 1), 0, -1):
        for end in range(len(text) - 1, count - 1, -1):
            if text[end - count : end] == text[-count:]:
                return text[end]
    return text[-1]


def prompt_lookup_row(model: Any, text: list[int], longest: int) -> torch.Tensor:
    row = torch.zeros(model.config.vocab_size, dtype=torch.float64)
    row[looked_up(text, longest)] = 1
    return row


def prompt_ngrams_row(model: Any, text: list[int], longest: int) -> torch.Tensor:
    """Counted by search in lists."""
    for count in range(min(longest, len(text) - 1), 0, -1):
        ends = [end for end in range(count, len(text)) if text[end - count : end] == text[-count:]]
        if ends:
            found = torch.tensor([text[end] for end in ends]).bincount(minlength=model.config.vocab_size)
            return found.to(torch.float64) / len(ends)
    return prompt_lookup_row(model, text, longest)


CASES = {
    "target:1-layers": (first_layers_row, 1, 2),
    "target:last-3": (last_tokens_row, 3, 4),
    "prompt:lookup-2": (prompt_lookup_row, 2, 1),
    "prompt:ngram-2": (prompt_ngrams_row, 2, 1),
}
"""Name -> the second route to its rows, with its number, and another number, whose rows are others."""


def largest_gap(pair: LanguageModelPair, route: Any, number: int) -> float:
    """Of the rows of drafted paths from those of the route."""
    # Behind the last prompt, look-ups of one and of two tokens differ.
    prompts = [*map(pair.encode, PROMPTS), [9, 7, 5, 5, 7, 9, 7]]
    batch = draft_and_score(prefill(pair, prompts), 2, 3, pair.generator(3), OPTIONS)
    gaps = []
    for b, prompt in enumerate(prompts):
        for k, path in enumerate(batch.paths[b].tolist()):
            for depth in range(3):
                row = route(pair.target_model, prompt + path[:depth], number)
                gaps.append(float((batch.draft_rows[b, k, depth] - row).abs().max()))
    assert len(gaps) == len(prompts) * 2 * 3
    return max(gaps)


@first_is_quick("name", CASES, quick=2)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_rows_are_those_of_the_stated_law(
    name: str, family: str, folders: dict[str, tuple[Path, Path]]
) -> None:
    """Behind prompts longer and shorter than the window, read on from a cache where there is one."""
    route, number, other = CASES[name]
    pair = LanguageModelPair.load(folders[family][0], name, device="cpu")
    assert largest_gap(pair, route, number) < 1e-5
    assert largest_gap(pair, route, other) > 1e-3
    assert pair.cached == (True, name == "target:1-layers")


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.integers(1, 4))
def test_prompt_lookup_is_a_search_in_the_text(text: list[int], longest: int) -> None:
    """At every position at once; the partner compares one token more."""
    model = prompt_lookup(_three_tokens(), longest)
    tokens = model(torch.tensor([text])).logits[0].softmax(-1)
    found = [looked_up(text[: end + 1], longest) for end in range(len(text))]
    assert tokens.argmax(-1).tolist() == found
    assert torch.equal(tokens.amax(-1), torch.ones(len(text)))
    kept = model(torch.tensor([text]), logits_to_keep=1).logits
    assert kept.argmax(-1).tolist() == [[found[-1]]]


def test_partner_a_longer_comparison_finds_another_token() -> None:
    text = [0, 1, 2, 2, 1, 0, 1]
    assert [looked_up(text, longest) for longest in (1, 2)] == [0, 2]


def test_weights_are_shared_and_the_target_is_left_as_it_was(pair: LanguageModelPair) -> None:
    target = pair.target_model
    before, layers = full_row(target, [5, 9, 7], OPTIONS), target.config.num_hidden_layers
    drafts = [first_layers(target, 1), last_tokens(target, 2)]
    for draft in drafts:
        own = {weights.data_ptr() for weights in draft.parameters()}
        assert own <= {weights.data_ptr() for weights in target.parameters()}
    assert torch.equal(before, full_row(target, [5, 9, 7], OPTIONS))
    assert target.config.num_hidden_layers == layers
    assert not hasattr(target.config, "derived")
    pairs = [LanguageModelPair.of(target, draft, pair.tokenizer) for draft in drafts]
    for both in pairs:
        assert both.num_parameters == sum(weights.numel() for weights in target.parameters())
    configs = {json.dumps(config.to_dict()) for both in pairs for config in both.configs}
    assert len(configs) == 3


def test_greedy_texts_are_those_of_the_target(folders: dict[str, tuple[Path, Path]]) -> None:
    """Whatever drafts."""
    texts = []
    for draft in ("target:1-layers", "prompt:lookup-3", "target:last-4"):
        pair = LanguageModelPair.load(folders["llama"][0], draft, device="cpu")
        found = decode(pair, PROMPTS, "token", max_new_tokens=9, options=SamplingOptions(temperature=0))
        texts.append([text.token_ids for text in found])
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("target:2-layers", "has 2 layers, got 2 for its draft"),
        ("target:0-layers", "'0-layers' is of nothing; give a number"),
        ("target:last-0", "'last-0' is of nothing"),
        ("target:half", "the draft 'target:half' is not known; expected MODEL:N-layers, MODEL:last-N"),
        ("target:vocab-9", "the draft 'target:vocab-9' is not known"),
        ("prompt:last-3", "the draft 'prompt:last-3' is not known"),
        ("target:lookup-3", "the draft 'target:lookup-3' is not known"),
        ("target:last-3,lookup-3", "the draft 'target:last-3,lookup-3' is not known"),
    ],
)
def test_names_that_are_refused(name: str, words: str, folders: dict[str, tuple[Path, Path]]) -> None:
    with pytest.raises(InvalidInputError, match=words):
        LanguageModelPair.load(folders["llama"][0], name, device="cpu")


def _three_tokens() -> torch.nn.Module:
    """What prompt look-up needs of a model: a configuration and the type of its weights."""
    from transformers import LlamaConfig

    model: Any = torch.nn.Linear(1, 1)
    model.config = LlamaConfig(vocab_size=3)
    return model.eval()


def test_drafts_of_models_in_memory_and_of_other_models(folders: dict[str, tuple[Path, Path]]) -> None:
    """A name in ``of`` is made of the target; a folder before the colon is another model's."""
    target, draft = folders["llama"]
    alone = LanguageModelPair.load(target, draft, device="cpu")
    rows = []
    for name, model in ((f"{draft}:last-2", alone.draft_model), ("target:last-2", alone.target_model)):
        loaded = LanguageModelPair.load(target, name, device="cpu")
        memory = LanguageModelPair.of(alone.target_model, name, alone.tokenizer)
        rows.append(full_row(model, [70, 6], SamplingOptions()))
        for pair in (loaded, memory):
            batch = draft_and_score(prefill(pair, [[7, 3, 70, 6]]), 1, 1, pair.generator(0))
            torch.testing.assert_close(batch.draft_rows[0, 0, 0], rows[-1], atol=1e-6, rtol=0)
    assert (rows[0] - rows[1]).abs().max() > 1e-3

"""Models that keep no cache, a strange one or a short one: the rows are those of full passes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from models_support import PROMPTS, full_row, save_model, save_pair, save_tokenizer
from spectheory.foundation.errors import InvalidInputError, Notice
from spectheory.models import LanguageModelPair, SamplingOptions, UnloadedPair, draft_and_score, prefill
from spectheory.models.caches import SlotCache
from spectheory.models.growing_texts import Texts
from spectheory.models.loading import ModelSource
from spectheory.models.reading import CachedReading, RecomputedReading
from spectheory.simulation import simulate

IDS = {"vocab_size": 280, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}


def mamba() -> PreTrainedModel:
    """Recurrent: a state in place of a cache of keys and values."""
    return MambaForCausalLM(
        MambaConfig(hidden_size=32, state_size=4, num_hidden_layers=1, initializer_range=0.15, **IDS)
    )


def sliding_window(window: int = 4) -> PreTrainedModel:
    """Attention to the last four tokens only, fewer than a prompt has."""
    return MistralForCausalLM(
        MistralConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, sliding_window=window, max_position_embeddings=64, initializer_range=0.15,
            **IDS,
        )
    )  # fmt: skip


def bert(kind: type[PreTrainedModel] = BertForMaskedLM, **options: Any) -> PreTrainedModel:
    return kind(
        BertConfig(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
            initializer_range=0.15, **IDS, **options,
        )
    )  # fmt: skip


def t5() -> PreTrainedModel:
    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=280, d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, decoder_start_token_id=0
        )
    )


def save(folder: Path, model: PreTrainedModel) -> Path:
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def with_target(folder: Path, build: Callable[[], PreTrainedModel]) -> LanguageModelPair:
    """The model as the target of a small draft model."""
    torch.manual_seed(3)
    target = save(folder / "target", build())
    save_model(folder / "draft", "llama", seed=2, layers=1)
    save_tokenizer(folder / "draft")
    return LanguageModelPair.load(target, folder / "draft", device="cpu")


def largest_difference(pair: LanguageModelPair) -> float:
    """Of the target's rows of a drafted batch from those of full, uncached passes, over prompts of three
    lengths."""
    batch = draft_and_score(prefill(pair, PROMPTS), 2, 3, pair.generator(5))
    differences = []
    for b, prompt in enumerate(PROMPTS):
        for k in range(2):
            path = batch.token_ids[b, k].tolist()
            for depth in range(4):
                row = full_row(pair.target_model, pair.encode(prompt) + path[:depth], SamplingOptions())
                differences.append(float((batch.target_rows[b, k, depth] - row).abs().max()))
    assert len(differences) == 24
    return max(differences)


def test_a_recurrent_model_is_read_without_a_cache(tmp_path: Path) -> None:
    """Slower, right, and said once."""
    pair = with_target(tmp_path, mamba)
    with pytest.warns(Notice, match="the target model .* cannot read on from a cache") as caught:
        assert largest_difference(pair) < 1e-5
    assert len(caught) == 1
    assert pair.cached == (False, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Notice)
        simulate(pair, PROMPTS, ["token"], num_drafts=2, draft_length=2, samples=2)


def test_a_sliding_window_is_read_right(tmp_path: Path) -> None:
    """Prompts longer than the window, whichever way the model is read."""
    pair = with_target(tmp_path, sliding_window)
    assert max(len(pair.encode(prompt)) for prompt in PROMPTS) > 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        assert largest_difference(pair) < 1e-5
    wide = with_target(tmp_path / "wide", lambda: sliding_window(64))  # the partner: the window matters
    text = pair.encode(PROMPTS[0])
    rows = [full_row(models.target_model, text, SamplingOptions()) for models in (pair, wide)]
    assert float((rows[0] - rows[1]).abs().max()) > 1e-3


def test_recomputing_gives_the_numbers_of_caching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = save_pair(tmp_path, "gpt2")
    cached = LanguageModelPair.load(*folders, device="cpu")
    recomputed = LanguageModelPair.load(*folders, device="cpu")
    vars(recomputed)["cached"] = (False, False)
    found = [
        simulate(pair, PROMPTS, ["block"], num_drafts=2, draft_length=3, samples=4).estimates[0]
        for pair in (cached, recomputed)
    ]
    assert found[0].counted == found[1].counted
    assert found[0].block_efficiency == pytest.approx(found[1].block_efficiency, abs=1e-5)


@pytest.mark.parametrize("num_drafts", [1, 3])
def test_texts_that_grow_along_accepted_paths(pair: LanguageModelPair, num_drafts: int) -> None:
    """Five rounds of drafts, accepted by another number of tokens in each text, half of them with texts
    dropped: the rows are those of full passes.  The deepest drafted token is unread in every second round, as
    it is by a draft model."""
    generator, worst = torch.Generator().manual_seed(0), 0.0
    texts = Texts.of([pair.encode(prompt) for prompt in PROMPTS], pair.device)
    reading, anew = CachedReading.of(pair.target_model, texts), RecomputedReading(pair.target_model)
    for number in range(5):
        shape = (texts.num_texts, num_drafts, 3)
        paths = torch.randint(pair.vocab_size, shape, generator=generator)
        read = paths[:, :, : 3 - number % 2]
        found = [reading.follow(texts, read[:, :, :depth], first=depth) for depth in range(read.shape[2])]
        found.append(reading.follow(texts, read, first=0))
        wanted = [anew.follow(texts, read[:, :, :depth], first=depth) for depth in range(read.shape[2])]
        wanted.append(anew.follow(texts, read, first=0))
        rows = [torch.softmax(torch.cat(logits, dim=2).double(), -1) for logits in (found, wanted)]
        worst = max(worst, float((rows[0] - rows[1]).abs().max()))
        path_index = torch.randint(num_drafts, shape[:1], generator=generator)
        counts = torch.randint(1, 5, shape[:1], generator=generator)
        accepted = paths[torch.arange(shape[0]), path_index]
        reading.accept(texts, path_index, draft_length=3)
        texts.append(torch.cat([accepted, accepted[:, :1]], dim=1), counts)
        if number == 2:
            rows_kept = torch.tensor([2, 0])
            reading.select(rows_kept)
            texts = texts.select(rows_kept)
    assert worst < 1e-5


@pytest.mark.parametrize("mistake", ["nothing is moved", "the last token is taken as read"])
def test_partner_a_wrong_roll_back_is_seen(
    pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    if mistake == "nothing is moved":
        monkeypatch.setattr(SlotCache, "move", lambda *_: None)
    else:
        right = CachedReading.accept

        def shallow(reading: CachedReading, texts: Texts, path: torch.Tensor, draft_length: int) -> None:
            right(reading, texts, path, reading._depth)

        monkeypatch.setattr(CachedReading, "accept", shallow)
    with pytest.raises(AssertionError):
        test_texts_that_grow_along_accepted_paths(pair, 3)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (bert, "is a BertForMaskedLM, which does not score the next token"),
        (t5, "is an encoder-decoder, which does not score the next token"),
    ],
)
def test_other_kinds_of_models_are_refused_before_weights_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Callable[[], PreTrainedModel], words: str
) -> None:
    monkeypatch.setattr(ModelSource, "model", lambda *_: pytest.fail("weights are loaded"))
    folder = save(tmp_path / "other", build())
    target, _ = save_pair(tmp_path, "llama")
    with pytest.raises(InvalidInputError, match=f"the draft model .* {words}"):
        UnloadedPair.find(target, folder, device="cpu")
    with pytest.raises(InvalidInputError, match=f"the target model .* {words}"):
        UnloadedPair.find(folder, target, device="cpu")

"""Models that keep no cache, a strange one or a short one: the rows are those of full passes."""

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from families import family_pair
from later import Later
from models_support import PROMPTS, full_row, largest_difference, save_pair, save_tokenizer
from spectheory.foundation.errors import InvalidInputError, Notice
from spectheory.models import LanguageModelPair, SamplingOptions, reading
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.models.growing_texts import Texts
from spectheory.models.reading import CachedReading, RecomputedReading, narrowest_window
from spectheory.simulation import simulate

transformers = Later("transformers")

IDS = {"vocab_size": 280, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}


def bert(kind: str = "BertForMaskedLM", **options: Any) -> torch.nn.Module:
    return getattr(transformers, kind)(
        transformers.BertConfig(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
            initializer_range=0.15, **IDS, **options,
        )
    )  # fmt: skip


def t5() -> torch.nn.Module:
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=280, d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, decoder_start_token_id=0
        )
    )


def save(folder: Path, model: torch.nn.Module) -> Path:
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def difference(pair: LanguageModelPair, prompts: list[list[int]]) -> float:
    """Of the rows of a batch drafted behind the prompts from those of full, uncached passes."""
    batch = draft_and_score(prefill(pair, prompts), 2, 3, pair.generator(5))
    return largest_difference(pair, batch, prompts=prompts)


def test_a_recurrent_model_is_read_without_a_cache() -> None:
    pair, prompts = family_pair("mamba"), [[5], [7, 3, 9, 4], [1, 30]]
    with pytest.warns(Notice, match="the (target|draft) model .* cannot read on from a cache") as caught:
        assert difference(pair, prompts) < 1e-5
    assert len(caught) == 2
    assert pair.cached == (False, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Notice)
        simulate(pair, prompts, ["token"], drafts=2, draft_length=2, samples=2)


def test_a_sliding_window_is_read_right() -> None:
    """Prompts shorter and longer than the window, which matters: with a wider one the rows are others."""
    pair, prompts = (
        family_pair("mistral, sliding"),
        [[7, 3, 9, 4, 11, 2, 8, 1, 30, 22, 5, 6, 40, 41, 17], [5, 6]],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        assert difference(pair, prompts) < 1e-5
    row = full_row(pair.target_model, prompts[0], SamplingOptions())
    pair.target_model.config.sliding_window = 64
    wide = full_row(pair.target_model, prompts[0], SamplingOptions())
    assert float((row - wide).abs().max()) > 1e-3  # the partner


@pytest.mark.parametrize("length", range(8, 14))
def test_drafts_that_reach_beyond_a_window_are_read_right(length: int) -> None:
    """Texts about as long as the window of twelve tokens; with three drafted ones some are longer."""
    pair, prompts = family_pair("mistral, sliding"), [[3 + 2 * number for number in range(length)]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        assert difference(pair, prompts) < 1e-5
    assert bool(caught) == (length + 3 > 12)


@pytest.mark.parametrize("num_drafts", [1, 3])
def test_texts_that_grow_along_accepted_paths(pair: LanguageModelPair, num_drafts: int) -> None:
    """Five rounds of drafts, accepted by another number of tokens in each text, half of them with texts
    dropped: the rows are those of full passes.  The deepest drafted token is unread in every second round, as
    it is by a draft model."""
    generator, worst = torch.Generator().manual_seed(0), 0.0
    texts = Texts.of([pair.encode(prompt) for prompt in PROMPTS], pair.device)
    reading, anew = CachedReading(pair.target_model, texts), RecomputedReading(pair.target_model, texts)
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
        monkeypatch.setattr(reading, "at_slots", lambda array, slots: array[:, :, : slots.shape[1]])
    else:
        right = CachedReading.accept

        def shallow(reading: CachedReading, texts: Texts, path: torch.Tensor, draft_length: int) -> None:
            right(reading, texts, path, reading._depth)

        monkeypatch.setattr(CachedReading, "accept", shallow)
    with pytest.raises(AssertionError):
        test_texts_that_grow_along_accepted_paths(pair, 3)


@pytest.mark.parametrize(
    ("build", "words"),
    [(bert, "looks ahead"), (t5, r"could not be loaded \(ValueError: Unrecognized configuration class")],
)
def test_other_kinds_of_models_are_refused(
    tmp_path: Path, build: Callable[[], torch.nn.Module], words: str
) -> None:
    """By what they do, or by the loader; the partner of either is loaded."""
    folder = save(tmp_path / "other", build())
    target, draft = save_pair(tmp_path, "llama")
    with pytest.raises(InvalidInputError, match=f"the draft model .* {words}"):
        LanguageModelPair.load(target, folder, device="cpu")
    with pytest.raises(InvalidInputError, match=f"the target model .* {words}"):
        LanguageModelPair.load(folder, target, device="cpu")
    LanguageModelPair.load(target, draft, device="cpu")


def test_recomputing_gives_the_numbers_of_caching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = save_pair(tmp_path, "gpt2")
    cached = LanguageModelPair.load(*folders, device="cpu")
    recomputed = LanguageModelPair.load(*folders, device="cpu")
    vars(recomputed)["cached"] = (False, False)
    found = [
        simulate(pair, PROMPTS, ["block"], drafts=2, draft_length=3, samples=4).estimates[0]
        for pair in (cached, recomputed)
    ]
    assert found[0].counted == found[1].counted
    assert found[0].block_efficiency == pytest.approx(found[1].block_efficiency, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "settings", "window"),
    [
        ("LlamaConfig", {"num_hidden_layers": 2}, math.inf),
        ("MistralConfig", {"num_hidden_layers": 2, "sliding_window": 7}, 7),
        ("Qwen2Config", {"num_hidden_layers": 2, "sliding_window": 7}, math.inf),
        ("Gemma3TextConfig", {"num_hidden_layers": 6, "sliding_window": 5}, 5),
    ],
)
def test_the_narrowest_window_of_a_model(kind: str, settings: dict[str, int], window: float) -> None:
    """Qwen2 has a window in its configuration that it does not use."""
    config = getattr(transformers, kind)(**settings)
    assert narrowest_window(SimpleNamespace(config=config)) == window

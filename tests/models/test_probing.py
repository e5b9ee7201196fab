"""What a model does counts, not what it is called: it must not look ahead, and its cache must be right."""

import warnings
from pathlib import Path

import pytest
import torch

from decoding_support import tiny_llama
from later import Later
from models_support import save_model, save_pair, save_tokenizer
from spectheory.foundation.errors import InvalidInputError, Notice
from spectheory.models import LanguageModelPair
from spectheory.models.growing_texts import Texts
from spectheory.models.reading import CachedReading, run_model

transformers = Later("transformers")


def loaded(folder: Path, is_decoder: bool) -> LanguageModelPair:
    """BERT with a head for language modelling as the target: causal as a decoder only."""
    torch.manual_seed(3)
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=280,
        initializer_range=0.15, bos_token_id=0, eos_token_id=0, pad_token_id=0, is_decoder=is_decoder,
    )  # fmt: skip
    transformers.BertLMHeadModel(config).save_pretrained(folder / "target")
    save_model(folder / "draft", "llama", seed=2, layers=1)
    for side in ("target", "draft"):
        save_tokenizer(folder / side)
    return LanguageModelPair.load(folder / "target", folder / "draft", device="cpu")


def test_a_model_in_memory_that_looks_ahead_is_refused() -> None:
    """On either side; the partner does not."""
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=280,
        initializer_range=0.15, bos_token_id=0, eos_token_id=0, pad_token_id=0, is_decoder=False,
    )  # fmt: skip
    torch.manual_seed(3)
    ahead = transformers.BertLMHeadModel(config).eval()
    right = tiny_llama(5, 280)
    for models, side in (((ahead, right), "target"), ((right, ahead), "draft")):
        with pytest.raises(InvalidInputError, match=rf"the {side} model .* looks ahead"):
            LanguageModelPair.of(*models)
    assert LanguageModelPair.of(right, right).vocab_size == 280


def forgetful_read(reading: CachedReading, texts: Texts, tokens: torch.Tensor, keep: int) -> torch.Tensor:
    """Nothing is kept of what was read: the tokens of a call see one another only."""
    return run_model(reading._model, tokens, keep=keep)


def test_a_wrong_cache_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = LanguageModelPair.load(*save_pair(tmp_path, "llama"), device="cpu")
    monkeypatch.setattr(CachedReading, "_read", forgetful_read)
    with pytest.warns(Notice, match="cannot read on from a cache"):
        assert pair.cached == (False, False)
    monkeypatch.undo()
    with warnings.catch_warnings():  # the partner
        warnings.simplefilter("error", Notice)
        again = LanguageModelPair.load(tmp_path / "target", tmp_path / "draft", device="cpu")
        assert again.cached == (True, True)


def test_a_model_that_looks_ahead_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"the target model .* looks ahead"):
        loaded(tmp_path / "encoder", is_decoder=False)
    loaded(tmp_path / "decoder", is_decoder=True)  # the partner

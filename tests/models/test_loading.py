"""Loading models and tokenizers, and what is said where that cannot be done."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from models_support import PROMPTS, full_row, save_model, save_tokenizer
from spectheory import instances
from spectheory.decoding import decode
from spectheory.foundation.errors import InsufficientMemoryError, InvalidInputError, TokenizerMismatchError
from spectheory.models import LanguageModelPair, SamplingOptions, restrict
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.models.quiet import quiet_loading
from spectheory.simulation import simulate


def test_stored_half_precision_is_upcast_on_cpu(
    pair: LanguageModelPair, folders: dict[str, tuple[Path, Path]]
) -> None:
    config = json.loads((folders["llama"][0] / "config.json").read_text())
    assert config["dtype"] == "float16"
    for model in (pair.target_model, pair.draft_model):
        assert not model.training
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert not any(p.requires_grad for p in model.parameters())
    half = LanguageModelPair.load(
        *folders["llama"], device="cpu", dtype="bfloat16", probs_dtype=torch.float32
    )
    assert half.target_model.dtype == torch.bfloat16
    batch = draft_and_score(prefill(half, PROMPTS), 2, 2, half.generator(0))
    assert batch.target_rows.dtype == torch.float32
    torch.testing.assert_close(batch.target_rows.sum(-1), torch.ones(3, 2, 3), atol=1e-5, rtol=0)


def test_different_tokenizers_are_refused(tmp_path: Path, folders: dict[str, tuple[Path, Path]]) -> None:
    save_model(tmp_path, "llama", seed=0, layers=1)
    save_tokenizer(tmp_path, texts=["zzzz yyyy zzzz", "wwww zzyy"])
    with pytest.raises(TokenizerMismatchError, match=r"has id .* in the target and"):
        LanguageModelPair.load(folders["llama"][0], tmp_path, device="cpu")


def test_the_tokenizer_is_shared_or_named_or_missing(tmp_path: Path) -> None:
    """A draft without one uses the target's; without any, prompts are token ids; a name comes before all."""
    for side in ("target", "draft"):
        save_model(tmp_path / side, "gpt2", seed=len(side), layers=1)
    save_tokenizer(tmp_path / "apart")
    models: Any = (tmp_path / "target", tmp_path / "draft")
    without = LanguageModelPair.load(*models, device="cpu", weights_now=False)
    assert without.tokenizer is None
    assert without.encode([5, 7]) == [5, 7]
    with pytest.raises(InvalidInputError, match=r"no tokenizer; give token ids, or tokenizer=\.\.\."):
        without.encode("def")
    assert "280 tokens without a tokenizer, cpu>" in repr(without)
    (text,) = decode(without, [[5, 7]], max_new_tokens=3)
    assert len(text.token_ids) == 3
    named = LanguageModelPair.load(*models, device="cpu", tokenizer=tmp_path / "apart", weights_now=False)
    assert named.decode(named.encode("def main")) == "def main"
    save_tokenizer(tmp_path / "target")
    shared = LanguageModelPair.load(*models, device="cpu", weights_now=False)
    assert shared.encode("def main") == named.encode("def main")
    save_tokenizer(tmp_path / "draft", texts=["zzzz yyyy zzzz", "wwww zzyy"])
    with pytest.raises(TokenizerMismatchError, match="or name the one of both"):
        LanguageModelPair.load(*models, device="cpu", weights_now=False)
    taken = LanguageModelPair.load(*models, device="cpu", tokenizer=tmp_path / "draft", weights_now=False)
    assert taken.encode("def main") != shared.encode("def main")
    with pytest.raises(InvalidInputError, match=r"the tokenizer '.*draft2' does not exist"):
        LanguageModelPair.load(*models, device="cpu", tokenizer=tmp_path / "draft2", weights_now=False)


def test_vocabularies_padded_differently_are_cut_and_short_ones_refused(
    tmp_path: Path, folders: dict[str, tuple[Path, Path]]
) -> None:
    tokens = len(LanguageModelPair.load(*folders["llama"], device="cpu").tokenizer)
    for name, size in (("padded", 320), ("short", tokens - 1)):
        save_model(tmp_path / name, "llama", seed=0, layers=1, vocab_size=size)
        save_tokenizer(tmp_path / name)
    padded = LanguageModelPair.load(folders["llama"][0], tmp_path / "padded", device="cpu")
    assert padded.vocab_size == 280
    batch = draft_and_score(prefill(padded, PROMPTS), 1, 1, padded.generator(0))
    assert batch.draft_rows.shape[-1] == 280
    with pytest.raises(TokenizerMismatchError, match=f"the draft model scores {tokens - 1} tokens"):
        LanguageModelPair.load(folders["llama"][0], tmp_path / "short", device="cpu")


def test_ids_without_a_token_get_no_mass(tmp_path: Path) -> None:
    """Both output layers are padded to 320 ids, beyond the tokenizer's: rows are the full ones, renormalised.

    In the full rows the padding has mass.
    """
    for side, seed in (("target", 1), ("draft", 2)):
        save_model(tmp_path / side, "llama", seed=seed, layers=1, vocab_size=320)
        save_tokenizer(tmp_path / side)
    padded = LanguageModelPair.load(tmp_path / "target", tmp_path / "draft", device="cpu")
    tokens = len(padded.tokenizer)
    assert padded.vocab_size == 320 > tokens
    batch = draft_and_score(prefill(padded, PROMPTS), 2, 3, padded.generator(0))
    assert int(batch.token_ids.max()) < tokens
    for rows in (batch.target_rows, batch.draft_rows):
        assert float(rows[..., tokens:].abs().max()) == 0
    full = full_row(padded.target_model, padded.encode(PROMPTS[0]), SamplingOptions())
    assert float(full[tokens:].sum()) > 0.01
    named = full[:tokens] / full[:tokens].sum()
    torch.testing.assert_close(batch.target_rows[0, 0, 0, :tokens], named, atol=1e-5, rtol=0)
    assert restrict(padded, PROMPTS[0], 4, 1).target[0].sum() == pytest.approx(1)


def test_missing_models_give_one_line(tmp_path: Path, folders: dict[str, tuple[Path, Path]]) -> None:
    target, draft = folders["llama"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    for name, words in (
        (tmp_path / "nowhere", "does not exist"),
        (str(tmp_path / "nowhere"), "does not exist"),
        ("", "does not exist|has no config"),
        ("./nowhere", "does not exist"),
        ("a/b/c", "does not exist"),
        (tmp_path / "empty", "has no config.json"),
        (tmp_path / "file", "is another file"),
        (tmp_path / "broken", "could not be loaded"),
    ):
        with pytest.raises(InvalidInputError, match=words) as caught:
            LanguageModelPair.load(target, name, device="cpu")
        text = str(caught.value)
        assert "draft" in text
        assert str(name) in text
        assert "\n" not in text
        with pytest.raises(InvalidInputError, match="target"):
            LanguageModelPair.load(name, draft, device="cpu")


def test_missing_weights_are_refused(tmp_path: Path, folders: dict[str, tuple[Path, Path]]) -> None:
    """A config with one layer more than the weights; transformers alone would only warn."""
    target, draft = folders["llama"]
    for file in draft.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((draft / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    with pytest.raises(InvalidInputError, match=r"lacks .* weights"):
        LanguageModelPair.load(target, tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"device": "tpu"}, "device must be"),
        ({"device": "cuda:99"}, "CUDA devices"),
        ({"device": "cpu", "dtype": "int8"}, "dtype must be"),
        ({"device": "cpu", "probs_dtype": torch.float16}, "probs_dtype must be"),
    ],
)
def test_bad_loading_arguments_are_refused(
    folders: dict[str, tuple[Path, Path]], arguments: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        LanguageModelPair.load(*folders["llama"], **arguments)  # type: ignore[arg-type]


def test_weights_that_do_not_fit_are_one_line(
    folders: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")

    monkeypatch.setattr("transformers.PreTrainedModel.to", no_room)
    with pytest.raises(InsufficientMemoryError, match=r"memory ran out on cpu .* target model") as caught:
        LanguageModelPair.load(*folders["llama"], device="cpu")
    assert "\n" not in str(caught.value)


def answers(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[str]:
    """Let the hub answer every question with an error; the names it is asked for."""
    from huggingface_hub import HfApi

    asked: list[str] = []

    def model_info(self: Any, name: str, **options: Any) -> None:
        asked.append(name)
        assert options["timeout"] > 0
        raise error

    monkeypatch.setattr(HfApi, "model_info", model_info)
    return asked


def test_a_hub_that_cannot_be_asked_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, folders: dict[str, tuple[Path, Path]]
) -> None:
    asked = answers(monkeypatch, ConnectionError("no route to host\nsecond line"))
    with pytest.raises(
        InvalidInputError, match=r"the hub does not give it \(ConnectionError: no route"
    ) as caught:
        LanguageModelPair.load("nobody/no-such-model", folders["llama"][1], device="cpu")
    assert asked == ["nobody/no-such-model"]
    assert "\n" not in str(caught.value)


def test_a_model_the_hub_does_not_have(
    monkeypatch: pytest.MonkeyPatch, folders: dict[str, tuple[Path, Path]]
) -> None:
    from huggingface_hub.errors import HFValidationError

    asked = answers(monkeypatch, HFValidationError("no such name"))
    for name in ("no-such-folder", "nobody/no-such-model"):
        with pytest.raises(InvalidInputError, match=r"does not give it \(HFValidationError: no such name\)"):
            LanguageModelPair.load(folders["llama"][0], name, device="cpu")
    assert asked == ["no-such-folder", "nobody/no-such-model"]


def test_model_libraries_are_silent_unless_the_user_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = {
        "TRANSFORMERS_VERBOSITY": "error",
        "TQDM_DISABLE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name in quiet:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    quiet_loading()
    assert {name: os.environ.get(name) for name in quiet} == quiet | {"TOKENIZERS_PARALLELISM": "true"}


@pytest.mark.parametrize("function", [decode, simulate])
def test_what_is_not_a_pair_of_models(function: Any) -> None:
    """A name and an enumerated pair are told what to do, in words; the partner's pair is shown."""
    with pytest.raises(
        InvalidInputError, match=r"got str 'big'; LanguageModelPair.load\(target, draft\) loads"
    ):
        function("big", ["x"], ["block"])
    with pytest.raises(InvalidInputError, match=r"simulate takes a ModelPair too|pair has no prompts"):
        function(instances.two_token(2), ["x"], ["block"])
    shown = repr(LanguageModelPair.load("bundled", "bundled", device="cpu", weights_now=False))
    assert re.fullmatch(r"<LanguageModelPair: target .*/target, draft .*/draft; 2048 tokens, cpu>", shown)


def test_a_mistyped_folder_asks_no_hub(
    monkeypatch: pytest.MonkeyPatch, folders: dict[str, tuple[Path, Path]]
) -> None:
    asked = answers(monkeypatch, AssertionError("the hub was asked"))
    draft = folders["llama"][1]
    for name in ("./target", "~/no-such-folder-here", str(draft.parent / "tarket"), "target/", "a/b/c"):
        with pytest.raises(InvalidInputError, match=r"the target .* does not exist"):
            LanguageModelPair.load(name, draft, device="cpu")
    assert asked == []


def test_offline_is_answered_at_once(folders: dict[str, tuple[Path, Path]]) -> None:
    """A whole process with HF_HUB_OFFLINE ends in one line; the bound on its time is generous."""
    command = [sys.executable, "-m", "spectheory", "simulate", "nobody/no-such-model"]
    done = subprocess.run(
        [*command, str(folders["llama"][1])],
        capture_output=True, text=True, check=False, timeout=120, env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "the hub does not give it" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smollm", r"the hub does not give it .*; did you mean 'smollm2'\?"),
        ("nope.gguf", "the target .nope.gguf. does not exist"),
    ],
)
def test_a_name_that_is_nearly_right(name: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, ConnectionError("unreachable"))
    with pytest.raises(InvalidInputError, match=says):
        LanguageModelPair.load(name, name, device="cpu")

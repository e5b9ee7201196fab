"""Fingerprints: what a model or a tokenizer holds is told apart, and nothing else is."""

import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from models_support import save_pair, save_tokenizer
from spectheory.models import LanguageModelPair, config_identity, tokenizer_identity, weights_identity
from spectheory.models.fingerprint import VALUES_PER_PARAMETER


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return save_pair(tmp_path / "pair", "llama")


def test_one_entry_of_a_small_parameter_is_seen(folders: tuple[Path, Path]) -> None:
    model = LanguageModelPair.load(*folders, device="cpu").target_model
    before = weights_identity(model)
    assert weights_identity(LanguageModelPair.load(*folders, device="cpu").target_model) == before
    small = [entry for entry in model.parameters() if entry.numel() <= VALUES_PER_PARAMETER]
    assert len(small) > 5
    for parameter in small:
        kept = parameter.clone()
        parameter.view(-1)[-1] += 1e-3
        assert weights_identity(model) != before
        parameter.copy_(kept)
    assert weights_identity(model) == before


def test_training_a_large_parameter_further_is_seen() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(500, 100, bias=False)
    model.dtype = torch.float32  # type: ignore[assignment]
    before = weights_identity(model)
    with torch.no_grad():
        model.weight -= 1e-4 * torch.randn_like(model.weight)
    assert weights_identity(model) != before


def test_shapes_names_and_types_count() -> None:
    def identity(**parameters: torch.Tensor) -> dict[str, str]:
        model = torch.nn.Module()
        model.dtype = torch.float32  # type: ignore[assignment]
        for name, tensor in parameters.items():
            model.register_buffer(name, tensor)
        return weights_identity(model)

    zeros = torch.zeros(4)
    found = [
        identity(a=zeros),
        identity(b=zeros),
        identity(a=zeros.reshape(2, 2)),
        identity(a=zeros.bfloat16()),
        identity(a=zeros, b=zeros.clone()),
        identity(a=torch.zeros(0)),
        identity(a=torch.tensor(0.0)),
    ]
    assert len({entry["sha256"] for entry in found}) == len(found)
    assert identity(a=torch.zeros(4)) == found[0]


def test_a_type_that_was_asked_for_is_no_property_of_the_config(folders: tuple[Path, Path]) -> None:
    pair = LanguageModelPair.load(*folders, device="cpu")
    half = LanguageModelPair.load(*folders, device="cpu", dtype="bfloat16")
    of_the_file = config_identity(AutoConfig.from_pretrained(folders[0]))
    assert config_identity(pair.configs[0]) == config_identity(half.configs[0]) == of_the_file
    assert weights_identity(half.target_model)["dtype"] == "bfloat16"
    assert config_identity(pair.configs[1])["config"] != of_the_file["config"]  # the partner: a layer fewer


def test_names_are_absolute_and_the_bundled_ones_are_the_same_everywhere(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders[0].parent)
    relative = config_identity(AutoConfig.from_pretrained("target"))
    assert relative == config_identity(AutoConfig.from_pretrained(folders[0]))
    shutil.copytree(folders[0], tmp_path / "copy")
    copied = config_identity(AutoConfig.from_pretrained(tmp_path / "copy"))
    assert copied["config"] == relative["config"]
    assert copied["name"] != relative["name"]
    bundled = LanguageModelPair.load("bundled", "bundled", device="cpu")
    assert [config_identity(config)["name"] for config in bundled.configs] == ["bundled", "bundled"]


def test_tokenizers_are_told_by_their_vocabulary(folders: tuple[Path, Path]) -> None:
    first = tokenizer_identity(LanguageModelPair.load(*folders, device="cpu").tokenizer)
    assert tokenizer_identity(LanguageModelPair.load(*folders, device="cpu").tokenizer) == first
    for folder in folders:
        save_tokenizer(folder, texts=["zzzz yyyy zzzz"], vocab_size=270)
    assert tokenizer_identity(LanguageModelPair.load(*folders, device="cpu").tokenizer) != first

"""Saved pairs of tiny language models."""

from pathlib import Path

import pytest
import torch

from models_support import FAMILIES, save_pair
from spectheory.models import LanguageModelPair


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Saved pairs of both families; GPT-2's absolute positions make wrong position ids visible."""
    return {family: save_pair(tmp_path_factory.mktemp(family), family) for family in FAMILIES}


@pytest.fixture(scope="session", params=FAMILIES)
def pair(request: pytest.FixtureRequest, folders: dict[str, tuple[Path, Path]]) -> LanguageModelPair:
    torch.set_num_threads(1)
    return LanguageModelPair.load(*folders[request.param], device="cpu")


@pytest.fixture(scope="session")
def gpt2_pair(folders: dict[str, tuple[Path, Path]]) -> LanguageModelPair:
    return LanguageModelPair.load(*folders["gpt2"], device="cpu")

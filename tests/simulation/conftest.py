"""A tiny pair of language models."""

import pytest

from models_support import save_pair
from spectheory.models import LanguageModelPair


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> LanguageModelPair:
    target, draft = save_pair(tmp_path_factory.mktemp("pair"), "llama")
    return LanguageModelPair.load(target, draft, device="cpu")

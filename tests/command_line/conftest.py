"""The two-token pair and a tiny pair of language models on disk."""

from pathlib import Path

import pytest

from cli_support import write_pair


@pytest.fixture
def pair_file(tmp_path: Path) -> str:
    return write_pair(tmp_path)


@pytest.fixture(scope="module")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    from models_support import save_pair

    folder = tmp_path_factory.mktemp("tiny")
    target, draft = save_pair(folder, "llama")
    prompts = folder / "prompts.txt"
    prompts.write_text("def main(argument):\nimport argparse\nfor index in\n", encoding="utf-8")
    return [str(target), str(draft), "--prompts", str(prompts)]

"""Results on disk: rows and what they came from, the same bytes however the run was made."""

import json
import subprocess
from pathlib import Path

import pytest

from montecarlo_support import run
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair
from spectheory.simulation.manifest import MANIFEST, ROWS, git_state

ASKED = {"max_new_tokens": 4, "samples": 1}


def test_rows_and_manifest(models: LanguageModelPair, tmp_path: Path) -> None:
    found = run(models, out=tmp_path / "plain", **ASKED)
    rows = [json.loads(line) for line in (tmp_path / "plain" / ROWS).read_text().splitlines()]
    assert rows == found.rows()
    manifest = json.loads((tmp_path / "plain" / MANIFEST).read_text())
    assert manifest["settings"] == found.settings
    assert {"seed", "draft_length", "temperature", "device", "threads"} <= manifest["settings"].keys()
    assert manifest["run"]["target_weights"]["dtype"] == "float32"
    assert {"target", "draft", "tokenizer", "prompt_tokens", "verifier"} <= manifest["run"].keys()
    assert {"spectheory", "torch", "transformers", "numpy"} <= manifest["run"]["versions"].keys()
    assert (manifest["interrupted"], manifest["rows"]) == (False, 2)
    state = tmp_path / "state.jsonl"
    run(models, checkpoint=state, out=tmp_path / "first", **ASKED)
    lines = state.read_bytes().splitlines(keepends=True)
    state.write_bytes(b"".join(lines[:2]))
    run(models, checkpoint=state, out=tmp_path / "again", **ASKED)
    run(models, out=tmp_path / "other", seed=5, **ASKED)
    files = {
        folder: [(tmp_path / folder / name).read_bytes() for name in (ROWS, MANIFEST)]
        for folder in ("plain", "first", "again", "other")
    }
    assert files["plain"] == files["first"] == files["again"]
    assert all(one != other for one, other in zip(files["plain"], files["other"], strict=True))  # the partner


def test_a_file_is_no_folder(models: LanguageModelPair, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="name a folder"):
        run(models, out=tmp_path / "file", **ASKED)


def test_state_of_a_repository(tmp_path: Path) -> None:
    """Of the package's own: not of one that holds it untracked, as an environment inside a project does."""

    def git(*arguments: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *name, *arguments], check=True, capture_output=True)

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert git_state(package) is None
    git("init")
    assert git_state(package) is None
    git("add", ".")
    git("commit", "-m", "one")
    clean = git_state(package)
    assert isinstance(clean["commit"], str)
    assert clean is not None
    assert (len(clean["commit"]), clean["modified"]) == (40, False)
    (package / "__init__.py").write_text("x = 1")
    assert git_state(package) == {"commit": clean["commit"], "modified": True}

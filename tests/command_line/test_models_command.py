"""models list and models fetch."""

from pathlib import Path

import pytest

from cli_support import run_error, run_json
from spectheory.command_line.main import main
from spectheory.models.known_models import model_folder


def test_the_list_says_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bundled, smollm2, draft = run_json(capsys, "models", "list")["models"]
    assert Path(bundled["folder"]).is_dir()
    assert (smollm2["name"], smollm2["folder"]) == ("smollm2", None)
    assert draft["name"] == "smollm2-draft"
    model_folder("smollm2").mkdir(parents=True)
    assert run_json(capsys, "models", "list")["models"][1]["folder"] == str(model_folder("smollm2"))
    assert main(["models", "list"]) == 0
    assert "spectheory models fetch NAME" in capsys.readouterr().out


def test_a_model_that_is_here_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = model_folder("smollm2")
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert run_json(capsys, "models", "fetch", "smollm2") == {"name": "smollm2", "folder": str(folder)}
    assert main(["models", "fetch", "smollm2"]) == 0
    assert "smollm2" in capsys.readouterr().out
    assert "no model is called 'smolm'" in run_error(capsys, "models", "fetch", "smolm")

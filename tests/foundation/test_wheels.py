"""Wheels: what pip is asked, what is kept of its answer, and what is said without a network."""

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from audits.loading.sources import found
from audits.release_history import released_versions
from spectheory.foundation import wheels
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.wheels import WHEEL, fetch, parsed

PATTERNS = ("made_up/sampler.py",)


def pip(
    monkeypatch: pytest.MonkeyPatch, version: str, files: dict[str, str] | None, code: int = 0
) -> list[list[str]]:
    """pip, which downloads a wheel of these files, or finds none; the commands it is given."""
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if files is None:
            said = "WARNING: slow\nERROR: Could not find a version\nERROR: No matching distribution found\n"
            return subprocess.CompletedProcess(command, 1, "", said)
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / f"made_up-{version}-py3-none-any.whl", "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return subprocess.CompletedProcess(command, code, "", "ERROR: no space left\n" if code else "")

    monkeypatch.setattr(wheels.subprocess, "run", run)
    return commands


def test_a_few_files_of_a_wheel_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without dependencies, without source packages, and only once."""
    commands = pip(
        monkeypatch,
        "1.2",
        {"made_up/sampler.py": "x = 1\n", "made_up/kernel.cu": "", "made_up/__init__.py": ""},
    )
    release = fetch("made-up==1.2", PATTERNS, tmp_path)
    assert (release.package, release.version, release.folder) == ("made-up", "1.2", tmp_path / "made-up-1.2")
    kept = {str(path.relative_to(release.folder)) for path in release.folder.rglob("*") if path.is_file()}
    assert kept == {"made_up/sampler.py", WHEEL}
    assert len(json.loads((release.folder / WHEEL).read_text())["sha256"]) == 64
    assert {"--no-deps", "--only-binary", "made-up==1.2"} <= set(commands[0])
    assert fetch("made-up==1.2", PATTERNS, tmp_path) == release == found("made-up==1.2", tmp_path)
    assert len(commands) == 1


def test_a_wheel_that_pip_gave_up_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip(monkeypatch, "1.2", {"made_up/sampler.py": ""}, code=1)
    with pytest.raises(InvalidInputError, match=r"cannot download made-up==1\.2: no space left"):
        fetch("made-up==1.2", PATTERNS, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_versions_of_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first; those before a release, and after it, are left out."""
    said = "made-up (1.10.0)\nAvailable versions: 1.10.0, 1.9.1.post1, 1.9.1, 1.9.0rc1, 1.2\n"
    for code, text in ((0, said), (1, "")):
        done = subprocess.CompletedProcess([], code, text, "ERROR: No matching distribution found")
        monkeypatch.setattr(subprocess, "run", lambda *_, done=done, **__: done)
        if code:
            with pytest.raises(InvalidInputError, match="pip lists no versions of made-up: No matching"):
                released_versions("made-up")
        else:
            assert released_versions("made-up") == ["1.10.0", "1.9.1", "1.2"]


def test_offline_it_says_what_is_missing_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(
        InvalidInputError,
        match=r"made-up==1\.2 is neither fetched nor .*, run: spectheory audit fetch made-up==1\.2 --cache",
    ):
        found("made-up==1.2", tmp_path)
    pip(monkeypatch, "", None)
    with pytest.raises(
        InvalidInputError, match=r"pip cannot download made-up==1\.2: No matching distribution"
    ):
        fetch("made-up==1.2", PATTERNS, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_an_earlier_fetch_left_out_is_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands = pip(monkeypatch, "1.2", {"made_up/sampler.py": "", "made_up/kernel.py": ""})
    fetch("made-up==1.2", PATTERNS, tmp_path)
    fetch("made-up==1.2", (*PATTERNS, "made_up/k*.py"), tmp_path)
    assert (tmp_path / "made-up-1.2" / "made_up" / "kernel.py").is_file()
    assert len(commands) == 2


def test_a_wheel_of_another_shape(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip(monkeypatch, "9", {"made_up/other.py": ""})
    with pytest.raises(InvalidInputError, match=r"has no file made_up/sampler.py"):
        fetch("made-up==9", PATTERNS, tmp_path)


@pytest.mark.parametrize("text", ["", "a b", "x>=1", "--index-url", "../x==1", "x==1/2"])
def test_what_is_no_requirement(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a requirement"):
        parsed(text)

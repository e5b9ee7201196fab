"""Where the files of a library are, and which version they say they have."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from audited import released
from audits.loading.sources import fetch_commit, installed_release, release_in, release_of
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.wheels import WHEEL


def test_what_is_installed(tmp_path: Path) -> None:
    """Its version and its files; that version by name, and no other; ``None`` for what is not."""
    found: Any = installed_release("transformers", "transformers")
    assert (found.folder / "transformers" / "__init__.py").is_file()
    assert installed_release("no-such-library", "no_such_library") is None
    for version in ("", found.version):
        assert release_of("transformers", "transformers", version, "0.1", tmp_path) == found
    with pytest.raises(InvalidInputError, match=r"transformers==0\.2 is neither fetched nor installed"):
        release_of("transformers", "transformers", "0.2", "0.1", tmp_path)


def test_what_is_fetched(tmp_path: Path) -> None:
    """The tested version where none is named."""
    for version in ("1", "2"):
        (tmp_path / f"made-up-{version}").mkdir()
        (tmp_path / f"made-up-{version}" / WHEEL).touch()
        asked = "" if version == "2" else version
        found = release_of("made-up", "made_up", asked, "2", tmp_path)
        assert (found.version, found.folder) == (version, tmp_path / f"made-up-{version}")


@pytest.mark.parametrize("inside", ["", "src", "python", "made-up-1.2", "made-up-1.2/src"])
def test_where_a_checkout_has_its_package(inside: str, tmp_path: Path) -> None:
    released(tmp_path / inside, "made_up.deep.sampler", "")
    (tmp_path / "other" / "made_up").mkdir(parents=True)
    found = release_in(tmp_path, "made-up", "made_up")
    assert (found.folder, found.version) == ((tmp_path / inside).resolve(), "")


def test_a_checkout_has_its_package_before_a_folder_of_it_has(tmp_path: Path) -> None:
    """gpt-fast has ``generate.py`` at its top and in a folder for other models."""
    for folder in (tmp_path, tmp_path / "mixtral-moe"):
        folder.mkdir(exist_ok=True)
        (folder / "generate.py").touch()
    assert release_in(tmp_path, "gpt-fast", "generate").folder == tmp_path.resolve()


def test_two_packages_of_one_name_are_refused(tmp_path: Path) -> None:
    for place in ("old", "new"):
        released(tmp_path / place, "made_up.sampler", "")
    with pytest.raises(
        InvalidInputError, match=r"has made_up 2 times: .*new/made_up.*old/made_up; --from takes one"
    ):
        release_in(tmp_path, "made-up", "made_up")
    assert release_in(tmp_path / "new", "made-up", "made_up").folder == (tmp_path / "new").resolve()


def test_the_version_of_installed_metadata(tmp_path: Path) -> None:
    """Of this package, and not of another beside it."""
    released(tmp_path, "made_up.sampler", "")
    for name, version in (("made_up", "3"), ("another", "4")):
        (tmp_path / f"{name}-{version}.dist-info").mkdir()
        (tmp_path / f"{name}-{version}.dist-info" / "METADATA").write_text(f"Version: {version}\n")
    assert release_in(tmp_path, "made-up", "made_up").version == "3"


def test_what_is_not_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"has no package made_up; --from takes a folder that contains"
    ):
        release_in(tmp_path, "made-up", "made_up")
    with pytest.raises(InvalidInputError, match=r"nowhere is not a folder"):
        release_in(tmp_path / "nowhere", "made-up", "made_up")


@pytest.mark.parametrize("module", ["made_up.deep.sampler", "made_up"])
def test_a_commit_of_a_repository(module: str, tmp_path: Path) -> None:
    """Its Python files, once; a package or a module.  What git does not find is one line."""
    repository, cache = tmp_path / "repository", tmp_path / "cache"
    released(repository, module, "x = 1\n")
    (repository / "weights.bin").touch()
    git = ("git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    asked = ("made-up", "made_up", f"file://{repository}", commit, cache)
    found = fetch_commit(*asked)
    files = [file.relative_to(found.folder).as_posix() for file in found.folder.rglob("*.*")]
    assert sorted(files) == sorted([f"{module.replace('.', '/')}.py", WHEEL])
    shutil.rmtree(repository)
    assert fetch_commit(*asked) == found
    with pytest.raises(InvalidInputError, match=f"git cannot fetch {'0' * 40} of file://"):
        fetch_commit("made-up", "made_up", f"file://{repository}", "0" * 40, cache)

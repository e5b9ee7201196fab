"""Where the files of a library are: in a checkout, where it is installed, or where its wheel was unpacked.

>>> from spectheory.foundation.wheels import default_cache
>>> release = installed_release("transformers", "transformers")
>>> (release.folder / "transformers" / "__init__.py").is_file()
True
"""

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.wheels import WHEEL, Release, default_cache, parsed

INSIDE = ("", "src", "python")
"""The folders of a repository that contain the package."""


def release_of(package: str, top: str, version: str, tested: str, cache: Path | None) -> Release:
    """The files of a release; nothing is downloaded."""
    there = installed_release(package, top)
    if there is not None and version in ("", there.version):
        return there
    return found(f"{package}=={version or tested}", default_cache() if cache is None else cache)


def found(requirement: str, cache: Path) -> Release:
    """Find the fetched files of a library.  Nothing is downloaded."""
    package, version = parsed(requirement)
    folder = cache / f"{package}-{version}"
    if (folder / WHEEL).is_file():
        return Release(package, version, folder)
    raise InvalidInputError(
        f"{requirement} is neither fetched nor installed; with a network, run: "
        f"spectheory audit fetch {requirement}" + (f" --cache {cache}" if cache != default_cache() else "")
    )


def installed_release(package: str, top: str) -> Release | None:
    """The installed version of a library, whose files an editable install has elsewhere; or ``None``."""
    try:
        version = distribution(package).version
    except PackageNotFoundError:
        return None
    spec = importlib.util.find_spec(top)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return Release(package, version, Path(folders[0]).parent) if folders else None


def release_in(checkout: Path, package: str, top: str) -> Release:
    """The files of a working tree, an unpacked source distribution or any folder with the library's package.

    Args:
        checkout: the folder, that of the package, or one above them with a single such folder.
        package: as the package index has it.
        top: the package that is imported.
    """
    if not checkout.is_dir():
        raise InvalidInputError(f"{checkout} is not a folder; --from takes a checkout or unpacked sources")
    folder = checkout.resolve()
    above = [folder.parent] if folder.name == top else []
    here = dict.fromkeys((*(folder / inside for inside in INSIDE), *above))
    below = [child / inside for child in sorted(folder.glob("*/")) for inside in INSIDE]
    roots = _with_package(here, top) or _with_package(below, top)
    if len(roots) > 1:
        places = ", ".join(str((root / top).relative_to(folder.parent)) for root in roots)
        raise InvalidInputError(
            f"{checkout} has {top} {len(roots)} times: {places}; --from takes one of them"
        )
    if roots:
        return Release(package, _version_in(roots[0], folder, top), roots[0])
    raise InvalidInputError(f"{checkout} has no package {top}; --from takes a folder that contains {top}/")


def _with_package(roots: Iterable[Path], top: str) -> list[Path]:
    return [
        root
        for root in roots
        if (root / f"{top}.py").is_file() or next((root / top).rglob("*.py"), None) is not None
    ]


def fetch_commit(package: str, top: str, repository: str, commit: str, cache: Path) -> Release:
    """Fetch one commit of a public repository with git, and keep the Python files of its package.

    Args:
        package: the name of the library here.
        top: the package, or the module, that is imported.
        repository: the address.
        commit: all 40 digits of its hash.
        cache: the folder of fetched files; a commit that is there is not fetched again.
    """
    folder = cache / f"{package}-{commit}"
    if (folder / WHEEL).is_file():
        return Release(package, commit, folder)
    with TemporaryDirectory() as clone:
        git = ("git", "-C", clone, "-c", "advice.detachedHead=false")
        for words in (
            ("init", "--quiet"),
            ("fetch", "--quiet", "--depth", "1", repository, commit),
            ("checkout", "--quiet", commit, "--", "*.py"),
        ):
            done = subprocess.run([*git, *words], capture_output=True, text=True, check=False)
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["no answer"])[-1]
                raise InvalidInputError(f"git cannot fetch {commit} of {repository}: {said}")
        root = release_in(Path(clone), package, top).folder
        for file in (*root.glob(f"{top}.py"), *(root / top).rglob("*.py")):
            kept = folder / file.relative_to(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, kept)
    (folder / WHEEL).write_text(
        json.dumps({"repository": repository, "commit": commit}) + "\n", encoding="utf-8"
    )
    return Release(package, commit, folder)


def _version_in(root: Path, folder: Path, top: str) -> str:
    """The version of the metadata, else the commit and whether files are changed, else empty."""
    for file in (root / "PKG-INFO", folder / "PKG-INFO", *root.glob(f"{top}-*.dist-info/METADATA")):
        if file.is_file():
            found = re.search(r"^Version: (\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
            return found[1] if found else ""
    is_tracked = _git(root, "ls-files", "--", top, f"{top}.py")  # it may lie in another repository
    return _git(root, "describe", "--tags", "--always", "--dirty") if is_tracked else ""


def _git(folder: Path, *command: str) -> str:
    try:
        said = ["git", "-C", str(folder), *command]
        done = subprocess.run(said, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()

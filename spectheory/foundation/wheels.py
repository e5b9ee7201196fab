"""Files of released wheels: pip downloads a wheel, a few files are kept, nothing is installed."""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from spectheory.foundation.errors import InvalidInputError

REQUIREMENT = re.compile(r"(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*?)(==(?P<version>[A-Za-z0-9.+!_-]+))?")
WHEEL = "wheel.json"
"""The file with the name and the hash of the wheel, beside the unpacked files."""


class Release(NamedTuple):
    """Files of one version of a library; the folder contains the library's package."""

    package: str
    version: str
    folder: Path


def default_cache(kind: str = "audit") -> Path:
    """The default folder of fetched files of one kind, in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spectheory" / kind


def parsed(requirement: str) -> tuple[str, str]:
    """Package and version of ``package==version``, or of ``package`` with an empty version.

    Example:
        >>> parsed("sglang==0.5.23")
        ('sglang', '0.5.23')
    """
    found = REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise InvalidInputError(f"{requirement!r} is not a requirement; write package or package==version")
    return found["package"], found["version"] or ""


def released_versions(package: str) -> list[str]:
    """The released versions on the package index, the newest first, without those before a release."""
    command = (sys.executable, "-m", "pip", "index", "versions", package)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    listed = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode or listed is None:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no answer"]
        raise InvalidInputError(f"pip lists no versions of {package}: {said[-1].removeprefix('ERROR: ')}")
    return [version for version in listed[1].split(", ") if not re.search(r"[a-z]", version)]


def fetch(requirement: str, patterns: Sequence[str], cache: Path, sha256: str | None = None) -> Release:
    """Download a wheel with pip, without its dependencies, and unpack some of its files.

    Args:
        requirement: ``package==version``, or ``package`` for the newest version.
        patterns: paths inside the wheel, with ``*``; each must match a file.
        cache: the folder of fetched files; a version that is there is not downloaded again.
        sha256: of the wheel, in hexadecimal digits; None if any wheel of that version will do.

    Raises:
        InvalidInputError: pip does not find it, or the wheel has no such files or another hash.  Nothing is
            kept then.
    """
    package, version = parsed(requirement)
    folder = cache / f"{package}-{version}"
    if version and (folder / WHEEL).is_file() and all(any(folder.glob(pattern)) for pattern in patterns):
        return Release(package, version, folder)
    with TemporaryDirectory() as download:
        command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")
        done = subprocess.run(
            [*command, "--dest", download, requirement], capture_output=True, text=True, check=False
        )
        wheels = list(Path(download).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr]
            raise InvalidInputError(f"pip cannot download {requirement}: {said[-1].removeprefix('ERROR: ')}")
        digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
        if sha256 not in (None, digest):
            raise InvalidInputError(
                f"{wheels[0].name} has the SHA-256 {digest}, expected {sha256}; the index serves another file"
            )
        return _unpacked(wheels[0], package, patterns, cache, digest)


def _unpacked(wheel: Path, package: str, patterns: Sequence[str], cache: Path, digest: str) -> Release:
    version = wheel.name.split("-")[1]
    folder = cache / f"{package}-{version}"
    with zipfile.ZipFile(wheel) as archive:
        for pattern in patterns:
            names = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
            if not names:
                raise InvalidInputError(f"{wheel.name} has no file {pattern}; the version is not known")
            archive.extractall(folder, names)
    (folder / WHEEL).write_text(json.dumps({"wheel": wheel.name, "sha256": digest}) + "\n", encoding="utf-8")
    return Release(package, version, folder)


def found(requirement: str, cache: Path) -> Release:
    """The fetched files of a library; nothing is downloaded."""
    package, version = parsed(requirement)
    folder = cache / f"{package}-{version}"
    if (folder / WHEEL).is_file():
        return Release(package, version, folder)
    raise InvalidInputError(
        f"{requirement} is neither fetched nor installed; with a network, run: "
        f"spectheory audit fetch {requirement}" + (f" --cache {cache}" if cache != default_cache() else "")
    )

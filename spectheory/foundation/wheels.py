"""Fetch files of released wheels: pip downloads a wheel, we keep a few files, and nothing is installed."""

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
"""Name of the file, beside the unpacked files, that holds the name and the hash of the wheel."""


class Release(NamedTuple):
    """Unpacked files of one version of a library.  ``folder`` contains the library's package."""

    package: str
    version: str
    folder: Path


def default_cache(kind: str = "audit") -> Path:
    """Return the default folder for fetched files of one kind, in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spectheory" / kind


def parsed(requirement: str) -> tuple[str, str]:
    """Split ``package==version`` into package and version.  For ``package`` the version is empty.

    Example:
        >>> parsed("sglang==0.5.23")
        ('sglang', '0.5.23')
    """
    found = REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise InvalidInputError(f"{requirement!r} is not a requirement; write package or package==version")
    return found["package"], found["version"] or ""


def fetch(requirement: str, patterns: Sequence[str], cache: Path, sha256: str | None = None) -> Release:
    """Download a wheel with pip, without its dependencies, and unpack some of its files.

    Args:
        requirement: ``package==version``, or ``package`` for the newest version.
        patterns: paths inside the wheel, with ``*``.  Each must match a file.
        cache: the folder of fetched files.  A version in it is not downloaded again.
        sha256: the hash of the wheel in hexadecimal digits, or None to accept any wheel of this version.

    Raises:
        InvalidInputError: pip does not find the version, the wheel has no such files, or its hash differs.
            Then nothing is kept.
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

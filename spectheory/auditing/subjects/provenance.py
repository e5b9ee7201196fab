"""The code that was audited: its package, its file and a hash of it."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Provenance:
    """The code that was audited.

    Attributes:
        package, version: the installed package; empty for code outside installed packages.
        file: path relative to the folder of installed packages, or to the current directory.
        sha256: hash of the file's bytes.
        line: the first line of the function.
    """

    package: str
    version: str
    file: str
    sha256: str
    line: int = 1

    @staticmethod
    def of(function: Any) -> Provenance:
        """The provenance of a function or a class.  Without a file, only its name."""
        try:
            path = Path(inspect.getfile(inspect.unwrap(function))).resolve()
            content = path.read_bytes()
        except (TypeError, OSError):
            return Provenance("", "", getattr(function, "__qualname__", repr(function)), "")
        top = str(function.__module__).partition(".")[0]
        try:
            is_installed = any(part in path.parts for part in ("site-packages", "dist-packages"))
            package = _distributions(tuple(sys.path)).get(top, [top])[0] if is_installed else top
            installed = Path(str(distribution(package).locate_file(top))).resolve()
            number = version(package)
        except PackageNotFoundError:
            package = number = ""
        else:  # a file of one's own can have the name of an installed package
            if installed.exists() and not path.is_relative_to(installed):
                package = number = ""
        roots = [Path(entry).resolve() for entry in (*sys.path, ".") if Path(entry).is_dir()]
        inside = [str(path.relative_to(root)) for root in roots if path.is_relative_to(root)]
        name = min(inside, key=len, default=path.name)
        code = getattr(inspect.unwrap(function), "__code__", None)
        line = 1 if code is None else code.co_firstlineno
        return Provenance(package, number, name, hashlib.sha256(content).hexdigest(), line)


@cache
def _distributions(path: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Package -> its distributions on the path.  Cached, because it is slow to list all their files."""
    return packages_distributions()

"""Check the pages of docs/findings: run each reproduction, and audit the release before and after its fix.

    spectheory audit fetch all --cache FILES
    python scripts/findings.py FILES --python PYTHON --repositories CLONES

A page has the reproduction as its block of Python, the fix as lines of a diff, and the audit as a command.
The reproduction runs in the folder of the release, with PYTHON, an environment that has what the release
imports; the audits are of two copies of it.  CLONES has git repositories at the commits of the pages, for
releases that are not in FILES, as ``gpt-fast``.  The table is written to stdout.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from spectheory.auditing.subjects.libraries import LIBRARIES, ROUNDS, SUBJECTS
from spectheory.auditing.subjects.sources import installed_release
from spectheory.foundation.wheels import Release

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "findings"


class Finding(NamedTuple):
    """A page.

    Attributes:
        audit: the words after ``spectheory audit``, the sampler first.
        reproduction: a program.
        file: of the release.
        changes: (lines that are replaced, lines instead).
    """

    audit: list[str]
    reproduction: str
    file: str
    changes: list[tuple[str, str]]


def finding_of(page: str) -> Finding:
    """The parts of a page that are run.

    Raises:
        ValueError: one of them is missing.
    """
    audit = re.search(r"^\*\*Audit\.\*\* `spectheory audit ([^`]+)`", page, re.MULTILINE)
    program = re.search(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    diff = re.search(r"^```diff\n--- (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    if audit is None or program is None or diff is None:
        raise ValueError("a page has an audit, a block of Python and a diff")
    hunks = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff[2], re.MULTILINE)
    changes = [tuple(re.sub(r"^[-+]", "", part, flags=re.MULTILINE) for part in hunk) for hunk in hunks]
    return Finding(audit[1].split(), program[1], diff[1], changes)


def fixed(text: str, changes: list[tuple[str, str]]) -> str:
    """The file with the changes.

    Raises:
        ValueError: it does not have exactly these lines, once.
    """
    for old, new in changes:
        text, number = re.subn(f"^{re.escape(old)}", new.replace("\\", r"\\"), text, flags=re.MULTILINE)
        if number != 1:
            raise ValueError(f"expected once: {old}")
    return text


def release_of(package: str, files: Path, repositories: Path) -> Release:
    """The clone where there is one, then the installed release, then the fetched one."""
    library = LIBRARIES[package]
    if (repositories / package).is_dir():
        return Release(package, "", repositories / package)
    there = installed_release(package, library.top)
    return there or Release(package, library.tested, files / f"{package}-{library.tested}")


def printed(program: str, folder: Path, package: str, version: str, python: Path) -> str:
    """The last line that a program prints, next to the files of the release and their metadata."""
    with TemporaryDirectory() as beside:
        metadata = Path(beside) / f"{package}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        paths = {"PYTHONPATH": f"{folder}{os.pathsep}{beside}"}
        interpreted = {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "TORCHDYNAMO_DISABLE": "1"}
        done = subprocess.run(
            [python, "-c", program],
            cwd=folder,
            env=os.environ | paths | interpreted,
            capture_output=True,
            text=True,
            check=False,
        )
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]


def verdict(words: list[str], folder: Path) -> str:
    """Of the audit of a checkout; the first reason of a defect."""
    command = [sys.executable, "-m", "spectheory", "audit", *words, "--from", folder, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode not in (0, 1, 4):
        return done.stderr.strip().splitlines()[-1].removeprefix("error: ").partition(" (/")[0]
    found = json.loads(done.stdout)
    return ": ".join([found["verdict"], *found["reasons"][:1]])


def row(name: str, finding: Finding, release: Release, python: Path) -> str:
    """A line of the table; the fixed copy runs the reproduction too."""
    package = release.package
    cells = []
    for is_fixed in (False, True):
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "files"
            copy.mkdir()
            top = release.folder / LIBRARIES[package].top
            for file in [top] if top.is_dir() else release.folder.glob("*.py"):
                if file.is_dir():
                    shutil.copytree(file, copy / file.name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(file, copy)
            place = copy / finding.file
            if is_fixed:
                place.write_text(fixed(place.read_text(encoding="utf-8"), finding.changes), encoding="utf-8")
            version = release.version or "0"
            cells += [printed(finding.reproduction, copy, package, version, python)]
            cells += [verdict(finding.audit, copy)]
    before, found, after, mended = cells
    return f"| [{name}]({name}.md) | {before} | {found} | {after} | {mended} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--repositories", type=Path, default=Path())
    parser.add_argument("--page", action="append")
    asked = parser.parse_args()
    print("| finding | the reproduction prints | audit | with the fix it prints | audit with the fix |")
    print("|---|---|---|---|---|")
    for page in sorted(PAGES.glob("*.md")):
        if page.stem == "index" or page.stem not in (asked.page or [page.stem]):
            continue
        finding = finding_of(page.read_text(encoding="utf-8"))
        package = {**SUBJECTS, **ROUNDS}[finding.audit[0]].package
        release = release_of(package, asked.files.absolute(), asked.repositories.absolute())
        print(row(page.stem, finding, release, asked.python), flush=True)


if __name__ == "__main__":
    main()

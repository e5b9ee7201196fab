"""Results on disk: a row per estimate, and a manifest of all that they came from.

``rows.jsonl`` has one JSON object per line, as ``Simulation.rows``.  ``manifest.json`` says how they were
made: the settings as they were resolved; what the run is (models, weights, number types, prompts, verifiers
and versions, by content, as in a checkpoint); and the state of this package's repository.  It is written
last, so that a folder with a manifest is complete.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.simulation.runs import Simulation

FORMAT = "spectheory-results/1"
ROWS, MANIFEST = "rows.jsonl", "manifest.json"
GIT_SECONDS = 10


def check_folder(out: str | Path) -> Path:
    """The folder, made if it is not there; better now than after the run.

    Raises:
        InvalidInputError: it cannot be one.
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write results to {folder}: {error.strerror}; name a folder"
        ) from None
    return folder


def write_results(folder: Path, simulation: Simulation, identity: Mapping[str, Any]) -> None:
    """Write rows and manifest of a run, each at once or not at all.

    Args:
        folder: it exists.
        simulation: the run.
        identity: what the run is, as in a checkpoint.
    """
    manifest = {
        "format": FORMAT,
        "settings": simulation.settings,
        "interrupted": simulation.interrupted,
        "run": {name: part for name, part in identity.items() if name not in simulation.settings},
        "git": git_state(),
        "rows": len(simulation.estimates),
    }
    _write(folder / ROWS, "".join(f"{json.dumps(row)}\n" for row in simulation.rows()))
    _write(folder / MANIFEST, f"{json.dumps(manifest, indent=1)}\n")


def git_state(folder: Path | None = None) -> dict[str, Any] | None:
    """Commit, and whether tracked files differ from it; None where the package is no part of a checkout.

    Args:
        folder: of the package; None: of this one.
    """
    folder = Path(__file__).parent.parent if folder is None else folder

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_SECONDS)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails inside somebody else's repository
        commit, changes = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "modified": bool(changes)}


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)

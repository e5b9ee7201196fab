"""Results on disk: a row per estimate, and a manifest of everything that they came from.

``rows.jsonl`` has one JSON object per line, as ``Simulation.rows``.  ``manifest.json`` has the resolved
settings, the identity of the run as in a checkpoint, and the state of this package's repository.  It is
written last, so that a folder with a manifest is complete.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.foundation.documents import replace_file
from spectheory.foundation.errors import InvalidInputError

FORMAT = "spectheory-results/1"
ROWS, MANIFEST = "rows.jsonl", "manifest.json"
GIT_SECONDS = 10


def check_folder(out: str | Path) -> Path:
    """The folder, made before the run if it is not there."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write results to {folder}: {error.strerror}; name a folder"
        ) from None
    return folder


def write_results(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    interrupted: bool,
    identity: Mapping[str, Any],
) -> None:
    """Write rows and manifest of a run, each at once or not at all."""
    manifest = {
        "format": FORMAT,
        "settings": settings,
        "interrupted": interrupted,
        "run": {name: part for name, part in identity.items() if name not in settings},
        "git": git_state(),
        "rows": len(rows),
    }
    replace_file(folder / ROWS, "".join(f"{json.dumps(row)}\n" for row in rows))
    replace_file(folder / MANIFEST, f"{json.dumps(manifest, indent=1)}\n")


def git_state(folder: Path | None = None) -> dict[str, Any] | None:
    """The commit of a package's folder, and whether tracked files differ from it; None outside a checkout."""
    folder = Path(__file__).parent.parent if folder is None else folder

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_SECONDS)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails inside another repository
        commit, changes = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "modified": bool(changes)}

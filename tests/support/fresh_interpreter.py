"""Programs in an interpreter of their own: what they load, and how they fare without optional libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Sequence

REPORT = "\nimport json as _json, sys as _sys; print(_json.dumps(sorted(_sys.modules)), file=_sys.stderr)"
BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
"""


def modules_after(code: str) -> set[str]:
    """Names of the modules a fresh interpreter has loaded after running the code."""
    done = run_python(code + REPORT)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def top_level(modules: Collection[str]) -> set[str]:
    """The packages that these modules belong to."""
    return {name.partition(".")[0] for name in modules}


def run_python(code: str, without: Collection[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the code as if the libraries in ``without`` were not installed."""
    blocked = BLOCK.format(names=tuple(without)) + code
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)


def run_command(arguments: Sequence[str], without: Collection[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the command ``spectheory`` as if the libraries in ``without`` were not installed."""
    return run_python(
        f"from spectheory.command_line.main import main\nsys.exit(main({list(arguments)!r}))", without
    )

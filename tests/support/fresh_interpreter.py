"""Programs in a process of their own: what they load, how they fare without libraries, and forks of one."""

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

REPORT = "\nimport json as _json, sys as _sys; print(_json.dumps(sorted(_sys.modules)), file=_sys.stderr)"
BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
"""


@cache
def modules_after(code: str) -> frozenset[str]:
    done = run_python(code + REPORT)
    assert done.returncode == 0, done.stderr
    return frozenset(json.loads(done.stderr.splitlines()[-1]))


def top_level(modules: Collection[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def run_python(code: str, without: Collection[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the code as if the libraries in ``without`` were not installed."""
    blocked = BLOCK.format(names=tuple(without)) + code
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)


@cache
def forks() -> Any:
    """One server per test process: it has imported the libraries, and runs no other thread."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["transformers.models.llama.modeling_llama", "spectheory.verification.algorithms"]
    )
    return context


def run_forked(code: str) -> subprocess.CompletedProcess[str]:
    """Run the code as ``__main__`` of a fork of an interpreter that has imported torch and transformers."""
    with TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("out", "err")]
        process = forks().Process(target=_run, args=(code, files, os.getcwd(), dict(os.environ)))
        process.start()
        process.join()
        return subprocess.CompletedProcess(code, process.exitcode, *(file.read_text() for file in files))


def _run(code: str, files: Sequence[Path], folder: str, environment: dict[str, str]) -> None:
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    exec(compile(code, "<forked>", "exec"), {"__name__": "__main__"})


class Printed(NamedTuple):
    code: int
    out: str
    err: str


COMMANDS = """
import io, json
from contextlib import redirect_stderr, redirect_stdout
from spectheory.command_line.main import main

for arguments in {commands!r}:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(arguments)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def run_commands(commands: Sequence[Sequence[str]], without: Collection[str] = ()) -> list[Printed]:
    """Run ``spectheory`` with each of these arguments, in one interpreter in which libraries are missing."""
    done = run_python(COMMANDS.format(commands=[list(arguments) for arguments in commands]), without)
    assert (done.returncode, done.stderr) == (0, "")
    found = [Printed(*json.loads(line)) for line in done.stdout.splitlines()]
    assert len(found) == len(commands)
    return found

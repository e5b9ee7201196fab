"""A reader that goes away, at the first byte or the last, changes no exit status; a full disk is named."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli_support import write_pair
from deep import first_is_quick
from spectheory import instances
from spectheory.command_line.main import main
from spectheory.command_line.streams import pipes_that_may_close

DEFECT = "spectheory.verification.defective.corrections:TargetCorrection"
AUDIT = "audit --as sampler -k 1 --pair PAIR"
MODELS = "-l 2  --prompts PROMPTS"
SIMULATE = f"simulate {MODELS} -v block -n 0 --samples 2 --jobs 1"
COMMANDS = {
    "certify PAIR -v block": 0,
    f"certify PAIR -v block,{DEFECT} --csv": 1,
    "certify PAIR -v nothing": 2,
    "optimum LARGE -k 2 --time-limit 1e-9 --json": 3,
    "acceptance 1/3,2/3 2/3,1/3": 0,
    "verifiers --json": 0,
    SIMULATE: 0,
    f"decode {MODELS} -n 2": 0,
    "restrict --prompt import -l 2 -m 2": 0,
    f"{AUDIT} audits.specimens.samplers:greedy_acceptance": 1,
    f"{AUDIT} not_followed_here:sampler --csv": 4,
    "--help": 0,
}
NOT_FOLLOWED = """
import random
kept = random.Random()
def sampler(paths, target_rows, draft_rows, generator):
    row = target_rows[0, 0].tolist()
    return kept.choices(range(len(row)), row)
"""
"""Lossless, but drawn, since its generator was made before."""


class Pipe(io.RawIOBase):
    """A pipe that takes so many bytes, and then fails."""

    def __init__(self, room: int, fault: int) -> None:
        self.room, self.fault, self.taken = room, fault, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.taken >= self.room:
            raise OSError(self.fault, os.strerror(self.fault))
        took = min(len(data), self.room - self.taken)
        self.taken += took
        return took


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    write_pair(folder)
    instances.random_float(1, 10, 3, agreement=0.3).save(folder / "LARGE")
    (folder / "PROMPTS").write_text("import os\n", encoding="utf-8")
    (folder / "not_followed_here.py").write_text(NOT_FOLLOWED, encoding="utf-8")
    return folder


SLOW = tuple(command for command in COMMANDS if command.startswith(("audit", "simulate", "decode")))


@first_is_quick(
    ("command", "ends"),
    [
        *((command, command not in SLOW) for command in COMMANDS),
        *(pytest.param(command, True, marks=pytest.mark.deep) for command in SLOW),
    ],
)
def test_closed_pipes(command: str, ends: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first write, in the middle and at the last byte, of stdout, and of stdout and stderr."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))

    def run(room: float, room_of_errors: float = 1e9, fault: int = errno.EPIPE) -> tuple[int, int, str]:
        pipes = [Pipe(int(size), fault) for size in (room, room_of_errors)]
        for name, pipe in zip(("stdout", "stderr"), pipes, strict=True):
            monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BufferedWriter(pipe), "utf-8"))
        return main(command.replace("PAIR", "pair.json").split()), pipes[0].taken, pipes[1].taken

    found, size, size_of_errors = run(1e9)
    code = COMMANDS[command]
    assert found == code
    for room in {0, size // 2, max(size - 1, 0)} if ends else {size // 2}:
        assert run(room) == (code, room, size_of_errors)
    assert run(0, 0) == (code, 0, 0)
    assert run(1e9, 0, errno.ENOSPC)[0] == code  # nobody can be told that stderr is full
    if size:  # the partner: what is lost otherwise is an error
        assert run(0, fault=errno.ENOSPC)[0] == 2


def test_what_was_printed_before_stands_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it waits in a buffer."""
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "utf-8"))
    print("before")
    with pipes_that_may_close():
        print("within")
    print("after", flush=True)
    assert pipe.getvalue().split() == [b"before", b"within", b"after"]


@first_is_quick("unbuffered", ["", "1"])
def test_processes(pair_file: str, unbuffered: str) -> None:
    """The exit status of ``python -m spectheory``, which the interpreter changes where a last flush fails."""
    command = [sys.executable, "-m", "spectheory", "certify", pair_file, "-v", DEFECT]
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w") as closed, open("/dev/full", "w") as full:
        for stdout, expected in ((closed, (1, "")), (full, (2, "error: stdout: No space left on device\n"))):
            done = subprocess.run(
                command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
                env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            )  # fmt: skip
            assert (done.returncode, done.stderr) == expected


STREAMS = """
import io, sys
for name in ("stdout", "stderr"):
    setattr(sys, name, io.TextIOWrapper(getattr(sys, name).buffer, encoding="utf-8"))
from spectheory.verification.algorithms.one_path.token import Token

class Mine(Token):
    name = "mine"

    def outcome(self, *given):
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
        return super().outcome(*given)
"""


def test_a_module_may_replace_its_streams(tmp_path: Path) -> None:
    """A common line, for Windows; the status is that of the verdict."""
    (tmp_path / "my_verifiers.py").write_text(STREAMS, encoding="utf-8")
    write_pair(tmp_path)
    command = [sys.executable, "-m", "spectheory", "certify", "pair.json", "--verifier", "my_verifiers:Mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("✓ lossless (rationals): mine on this pair")


def test_a_name_that_the_output_cannot_encode_is_escaped(tmp_path: Path) -> None:
    pair = {"format": "spectheory-pair/1", "vocab": ["A", "\u732b"], "draft_length": 1, "context_free": True}
    rows = {"target": ["1/3", "2/3"], "draft": ["2/3", "1/3"]}
    (tmp_path / "pair.json").write_text(json.dumps(pair | rows), encoding="utf-8")
    command = [sys.executable, "-m", "spectheory", "certify", "pair.json", "--verbose", "-v", DEFECT]
    ascii_only = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, cwd=tmp_path, env=ascii_only, capture_output=True, text=True, check=False)
    assert (done.returncode, "\\u732b" in done.stdout) == (1, True)

"""The command line as a whole: bad input, exit codes, help, processes, and the README."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli_support import run_error, write_pair
from spectheory.command_line.main import main


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"target": ["1/3", "1/3"]}, "sums to 2/3, not 1"),
        ({"target": [0.25, 0.5], "draft": [0.5, 0.5]}, "sums to 0.75, not 1"),
        ({"target": ["4/3", "-1/3"]}, "negative entry"),
        ({"draft": [0.5, 0.5]}, "mixed"),
        ({"target": ["1/3", "x"]}, "'x' is not a rational"),
        ({"target": ["1"]}, "one per token"),
        ({"draft_length": 0}, "draft_length must be a whole number of at least 1"),
        ({"vocab": ["A", "A"]}, "repeated"),
        ({"format": "other"}, "spectheory-pair/1"),
        (
            {"context_free": False, "target": {"": ["1/3", "2/3"]}, "draft": {"": ["2/3", "1/3"]}},
            "has no row at context",
        ),
    ],
)
def test_malformed_pairs_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    path = write_pair(tmp_path, **changes)
    assert expected in run_error(capsys, "certify", path, "--verifier", "block")
    assert expected in run_error(capsys, "optimum", path)


def test_unreadable_pair_files_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.json")
    assert "missing.json" in run_error(capsys, "certify", missing, "--verifier", "block")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    assert "is not JSON" in run_error(capsys, "optimum", str(broken))
    broken.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in run_error(capsys, "optimum", str(broken))
    assert "directory" in run_error(capsys, "optimum", str(tmp_path)).lower()


@pytest.mark.parametrize("num_drafts", ["0", "-1"])
def test_num_drafts_below_one(capsys: pytest.CaptureFixture[str], pair_file: str, num_drafts: str) -> None:
    for command in (
        ("certify", pair_file, "--verifier", "block"),
        ("optimum", pair_file),
        ("acceptance", "--target", "1/3,2/3", "--draft", "2/3,1/3"),
    ):
        error = run_error(capsys, *command, "--num-drafts", num_drafts)
        assert f"num_drafts must be a whole number of at least 1, got {num_drafts}" in error


def test_unknown_verifier_suggests_the_nearest(capsys: pytest.CaptureFixture[str], pair_file: str) -> None:
    assert "did you mean 'block'?" in run_error(capsys, "certify", pair_file, "--verifier", "blok")
    assert "did you mean 'token'?" in run_error(capsys, "simulate", "--verifier", "tokn")
    assert "cannot import" in run_error(capsys, "certify", pair_file, "--verifier", "no_such_module:name")


def test_enumeration_too_large_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_pair(tmp_path, draft_length=8)
    error = run_error(capsys, "certify", path, "--verifier", "spectr", "--num-drafts", "4")
    assert "spectheory simulate" in error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["certify"], "Missing option"),
        (["certify", "x.json"], "Missing option"),
        (["certfy"], "No such command"),
        (["optimum", "x.json", "--nonsense"], "No such option"),
        (["optimum", "x.json", "--num-drafts", "two"], "not a valid integer"),
        (["acceptance", "--target", "1/3,2/3", "--draft", "1"], "one per token"),
        (["acceptance", "--target", "1/3,1/3", "--draft", "1/2,1/2"], "sums to 2/3"),
        (["acceptance", "--target", "", "--draft", ""], "rational"),
        (["simulate", "--one-call", "--samples", "1"], "at least 2"),
        (["simulate", "--verifier", ","], "at least one verifier"),
        (["simulate", "--verifier", "token,token"], "twice"),
        (["simulate", "--num-drafts", "0", "--samples", "2"], "drafts must be"),
        (["simulate", "--draft-length", "0", "--samples", "2"], "draft_length"),
        (["simulate", "--confidence", "1"], "confidence"),
        (["simulate", "--temperature", "-1"], "temperature"),
        (["simulate", "--device", "abacus"], "device must be"),
        (["simulate", "--target", "./no-such-folder"], "does not exist"),
        (["simulate", "--prompts", "no-such-file.txt"], "cannot read the prompts"),
        (["reproduce", "acceptance_lenght"], "did you mean 'acceptance_length'?"),
    ],
)
def test_usage_errors_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert expected in run_error(capsys, *arguments)


def test_users_broken_verifier_is_one_line(
    capsys: pytest.CaptureFixture[str],
    pair_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An exception in a user's code is bad input (2), not a defect that was found (1)."""
    code = "class Boom:\n    def outcome(self, *arguments):\n        raise RuntimeError('why')\n"
    (tmp_path / "users_code.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    error = run_error(capsys, "certify", pair_file, "--verifier", "users_code:Boom")
    assert "'Boom' failed: RuntimeError: why" in error


def test_solver_failure_is_one_line(
    capsys: pytest.CaptureFixture[str], pair_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import spectheory.programs
    from spectheory.errors import SolverError

    def fail(*arguments: Any, **options: Any) -> None:
        raise SolverError("the program\nended with status 'infeasible'")

    monkeypatch.setattr(spectheory.programs, "optimum", fail)
    assert "status 'infeasible'" in run_error(capsys, "optimum", pair_file)


def test_help_answers_at_once() -> None:
    """Nothing heavy is imported for --help: neither numpy nor torch nor rich."""
    code = (
        "import sys\nfrom spectheory.command_line.main import main\ncode = main(['--help'])\n"
        "heavy = {'numpy', 'torch', 'rich', 'scipy', 'matplotlib', 'cvxpy'} & set(sys.modules)\n"
        "sys.exit(code or bool(heavy))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in ("certify", "optimum", "acceptance", "simulate", "claims", "reproduce"):
        assert command in result.stdout


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("certify", "optimum", "acceptance", "simulate", "claims", "reproduce"):
        assert main([command, "--help"]) == 0
        assert "--json" in capsys.readouterr().out
    assert main([]) == 0
    assert "Usage: spectheory" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert "spectheory 0." in capsys.readouterr().out


def test_module_entry_point_and_closed_pipe(pair_file: str) -> None:
    """``python -m spectheory ... | true`` ends without a traceback."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "spectheory", "certify", pair_file, "--verifier", "block"]
    result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert result.stderr == ""
    result = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["block_efficiency"] == "20/9"


INTERRUPTED = """
import signal, sys
from spectheory.command_line.main import main

def stopped(*arguments):
    exec("signal.raise_signal(signal.SIGNAL)", {"signal": signal})

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.modules["spectheory.certificate"] = type(sys)("unfinished")
sys.modules["spectheory.certificate"].__getattr__ = stopped
sys.exit(main(["certify", "--suite", "standard", "-v", "token"]))
"""


@pytest.mark.parametrize(("stop", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupted_process(tmp_path: Path, stop: str, code: int) -> None:
    """``python -m`` ends with the exit code of main, also where the signal came in ``exec``."""
    (tmp_path / "interrupted.py").write_text(INTERRUPTED.replace("SIGNAL", stop), encoding="utf-8")
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == ""
    assert (done.returncode, done.stderr) == (code, "\nerror: interrupted before anything was finished\n")


# ------------------------------------------------------------------------------------ README

README = Path(__file__).parents[2] / "README.md"


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


CRASHES = """
class Raises:
    @property
    def name(self):
        raise ValueError("no name")

class Leaves:
    @property
    def exact(self):
        raise SystemExit(0)
    def outcome(self, *_):
        pass

class Odd:
    def outcome(self, *_):
        raise BaseException("odd")

class Generator:
    def outcome(self, *_):
        raise GeneratorExit
"""


@pytest.mark.parametrize("own", ["Raises", "Leaves", "Odd", "Generator"])
def test_whatever_a_users_object_raises_is_no_verdict(
    capsys: pytest.CaptureFixture[str],
    pair_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: str,
) -> None:
    (tmp_path / f"crashes_{own}.py").write_text(CRASHES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    run_error(capsys, "certify", pair_file, "--verifier", f"crashes_{own}:{own}")


def test_a_fault_of_the_package_is_no_verdict(
    capsys: pytest.CaptureFixture[str], pair_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would exit with 1, which is documented as: not lossless."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a fault\nof two lines")

    monkeypatch.setattr("spectheory.certificate.certify", broken)
    line = run_error(capsys, "certify", pair_file, "--verifier", "block", code=70)
    assert "in spectheory itself: RuntimeError: a fault of two lines; please report it" in line


def test_closed_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert "stdin is closed" in run_error(capsys, "certify", "-", "--verifier", "block")

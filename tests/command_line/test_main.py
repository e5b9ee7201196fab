"""The command line as a whole: exit codes, help and processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli_support import run_error
from spectheory.command_line.main import group, main


def test_solver_failure_is_one_line(
    capsys: pytest.CaptureFixture[str], pair_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import spectheory.optima
    from spectheory.foundation.errors import SolverError

    def fail(*arguments: Any, **options: Any) -> None:
        raise SolverError("the program\nended with status 'infeasible'")

    monkeypatch.setattr(spectheory.optima, "optimum", fail)
    assert "status 'infeasible'" in run_error(capsys, "optimum", pair_file)


def test_help_answers_at_once() -> None:
    """Nothing heavy is imported for --help: neither numpy nor torch nor rich."""
    code = (
        "import sys\nfrom spectheory.command_line.main import main\ncode = main(['--help'])\n"
        "heavy = {'numpy', 'torch', 'rich', 'scipy', 'matplotlib', 'cvxpy'} & set(sys.modules)\n"
        "sys.exit(code or bool(heavy))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in group.commands:
        assert command in result.stdout


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Usage: spectheory" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert "spectheory 0." in capsys.readouterr().out


def test_module_entry_point(pair_file: str) -> None:
    command = [sys.executable, "-m", "spectheory", "certify", pair_file, "--verifier", "block", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["block_efficiency"] == "20/9"


INTERRUPTED = """
import signal, sys
from spectheory.command_line.main import main

def stopped(*arguments):
    exec("signal.raise_signal(signal.SIGNAL)", {"signal": signal})

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.modules["spectheory.exact.certifying"] = type(sys)("unfinished")
sys.modules["spectheory.exact.certifying"].__getattr__ = stopped
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


CRASHES = """
class Raises:
    @property
    def name(self):
        raise ValueError("no name")

class Boom:
    def outcome(self, *_):
        raise RuntimeError("why")
"""


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("Raises", ""),
        ("Boom", "of verifier 'Boom' failed: RuntimeError: why"),
    ],
)
def test_an_exception_of_a_users_object_is_a_verdict(
    capsys: pytest.CaptureFixture[str],
    pair_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: str,
    said: str,
) -> None:
    """Not lossless (1) where it raises on drafts; bad input (2) before it is given any."""
    (tmp_path / f"crashes_{own}.py").write_text(CRASHES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    command = ["certify", pair_file, "--verifier", f"crashes_{own}:{own}"]
    if own == "Raises":
        run_error(capsys, *command)
        return
    assert main(command) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"✗ not lossless (float64): {own} fails on this pair")
    assert said in " ".join(captured.out.split())


def test_a_fault_of_the_package_is_no_verdict(
    capsys: pytest.CaptureFixture[str], pair_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would exit with 1, which is documented as: not lossless."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a fault\nof two lines")

    monkeypatch.setattr("spectheory.exact.certifying.certify", broken)
    line = run_error(capsys, "certify", pair_file, "--verifier", "block", code=70)
    assert "in spectheory itself: RuntimeError: a fault of two lines; please report it" in line


def test_closed_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert "stdin is closed" in run_error(capsys, "certify", "-", "--verifier", "block")

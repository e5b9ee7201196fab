"""``make reproduce``: scripts in processes, a line for each, and none left when it is stopped."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "good": "import sys; print('quiet')\n"
    "open(sys.argv[2] + '.made', 'a').write(' '.join(sys.argv[3:]) + '.')",
    "bad": "import sys; print('FAILED: a claim (1 of 1 failed)'); sys.exit(1)",
    "slow": "import os, sys, time; open(sys.argv[2], 'w').write(str(os.getpid())); time.sleep(60)",
    "deaf": "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "open(sys.argv[2], 'w').write(str(os.getpid())); time.sleep(60)",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout whose scripts compute nothing; the modules that scripts share are none of them."""
    for folder in ("scripts", "figures"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "scripts" / "reproduce.py", tmp_path / "scripts")
    for name, text in {**SCRIPTS, "results": "1/0", "style": "1/0"}.items():
        (tmp_path / "figures" / f"{name}.py").write_text(text)
    return tmp_path


def start(tree: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(tree / "scripts" / "reproduce.py"), "--out", str(tree / "out"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_line_for_each_script(tree: Path) -> None:
    """On stderr, which is no terminal here; what a script prints is shown where it fails."""
    process = start(tree, "good")
    assert process.communicate(timeout=60)[1].splitlines() == [
        "1 of 1: good, 0 s", f"all claims hold; see {tree / 'out'}",
    ]  # fmt: skip
    assert process.returncode == 0
    process = start(tree, "bad", "good", "--jobs", "2", "--resume")
    lines = process.communicate(timeout=60)[1].splitlines()
    assert process.returncode == 1
    assert {line.split(": ", 1)[1] for line in lines if " of 2: " in line} == {
        "bad, 0 s FAILED with status 1", "good, 0 s",
    }  # fmt: skip
    assert lines[-1] == "failed: bad"
    assert "FAILED: a claim (1 of 1 failed)" in lines
    assert "quiet" not in lines
    assert (tree / "out.made").read_text() == ".--resume."


@pytest.mark.parametrize(
    ("name", "sent", "code"),
    [("slow", signal.SIGTERM, 143), ("slow", signal.SIGINT, 130), ("deaf", signal.SIGTERM, 143)],
)
def test_stopped_it_ends_its_scripts(tree: Path, name: str, sent: signal.Signals, code: int) -> None:
    """Within seconds, also one that does not listen; a script that waited is never started."""
    process = start(tree, name, "good")
    until = time.monotonic() + 60
    while not (tree / "out").exists() or not (tree / "out").read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    script = int((tree / "out").read_text())
    process.send_signal(sent)
    process.communicate(timeout=30)
    assert process.returncode == code
    with pytest.raises(ProcessLookupError):
        os.kill(script, 0)
    assert not (tree / "out.made").exists()


def test_an_unknown_name_is_refused(tree: Path) -> None:
    process = start(tree, "god")
    assert "there is no figure god; there are bad, deaf, good, slow" in process.communicate(timeout=60)[1]
    assert process.returncode == 2

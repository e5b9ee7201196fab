"""The pytest plugin as its user runs it: in a session of its own."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

PLUGINS = ("-p", "spectheory.testing.plugin", "-p", "no:cacheprovider")


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    # The one plugin under test, whatever else is installed and in whichever way this package is.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *PLUGINS, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_test_per_pair(tmp_path: Path) -> None:
    code, printed = run_pytest(tmp_path, "--spectheory-verifier", "kseq", "-k", "rarely")
    assert code == 0, printed
    assert " passed" in printed
    assert "spectheory: lossless on the passed pairs in float64 within 1e-09 p(a) + 1.4e-14" in printed


def test_a_wrong_verifier_fails_with_its_counterexample(tmp_path: Path) -> None:
    code, printed = run_pytest(
        tmp_path, "--spectheory-verifier", "spectheory.verification.defective.corrections:DraftBonus", "-x"
    )
    assert code == 1
    assert "draft_bonus is not lossless. On" in printed
    assert "certificate.py" not in printed


def test_a_pair_that_a_verifier_is_not_meant_for_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "two_drafts.py").write_text(
        "from spectheory.foundation.errors import InvalidInputError\n"
        "from spectheory.verification.algorithms.one_path.token import Token\n"
        "class Mine(Token):\n    single_path = False\n"
        "    def bind(self, process, pair=None):\n"
        "        if process.num_drafts != 2:\n            raise InvalidInputError('two drafts')\n"
        "        return self\n"
    )
    selected = ("-k", "bernoulli_one_half-L1", "-rs")
    code, printed = run_pytest(tmp_path, "--spectheory-verifier", "two_drafts:Mine", *selected)
    assert code == 0, printed
    assert re.search(r"SKIPPED.*judged on no case of the suite: two drafts", printed)
    assert "4 passed, 5 skipped" in printed


def test_an_unknown_verifier_is_a_usage_error(tmp_path: Path) -> None:
    code, printed = run_pytest(tmp_path, "--spectheory-verifier", "blok")
    assert code == 4
    assert "no verifier is called 'blok'; did you mean 'block'?" in printed


def test_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "def test_mine(assert_lossless):\n    assert_lossless('kseq', quick=True)\n\n"
        "def test_wrong(assert_lossless):\n"
        "    from spectheory import defects\n    assert_lossless(defects['swapped_models'])\n"
    )
    code, printed = run_pytest(tmp_path)
    assert code == 1
    assert "1 failed, 1 passed" in printed


def test_the_plugin_is_found_where_the_package_is_installed() -> None:
    found = {entry.name: entry.value for entry in entry_points(group="pytest11")}
    assert found["spectheory"] == "spectheory.testing.plugin"

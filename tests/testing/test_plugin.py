"""The pytest plugin as its user runs it: in a session of its own."""

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

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


MINE = """
from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.algorithms.one_path.token import Token

class Mine(Token):
    single_path = False

    def bind(self, process, pair=None):
        if process.num_drafts != 2:
            raise InvalidInputError("two drafts")
        return self

def test_mine(assert_lossless):
    assert_lossless("kseq", quick=True)

def test_wrong(assert_lossless):
    from spectheory import defects
    assert_lossless(defects["swapped_models"])
"""


def test_one_session(tmp_path: Path) -> None:
    """A test per pair and verifier, passed, failed or skipped; and the fixture, right and wrong."""
    (tmp_path / "test_mine.py").write_text(MINE, encoding="utf-8")
    verifiers = ("kseq", "test_mine:Mine", "spectheory.verification.defective.corrections:DraftBonus")
    asked = [word for name in verifiers for word in ("--spectheory-verifier", name)]
    selected = "kseq and rarely or test_mine and bernoulli_one_half-L1 or DraftBonus and one_half-L1"
    code, printed = run_pytest(
        tmp_path, *asked, "-k", f"{selected} or test_wrong or test_mine.py", "-rs", "--junitxml", "found.xml"
    )
    assert code == 1, printed
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for case in ElementTree.parse(tmp_path / "found.xml").iter("testcase"):
        kinds = [part.tag for part in case if part.tag in ("failure", "skipped")]
        found[case.attrib["name"].partition("[")[0]][kinds[0] if kinds else "passed"] += 1
    assert found.pop("test_mine") == {"passed": 1}
    assert found.pop("test_wrong") == {"failure": 1}
    right, mine, wrong = (found[name] for name in verifiers)
    assert set(right) == {"passed"}
    assert mine == {"passed": 4, "skipped": 5}
    assert set(wrong) == {"failure"}
    assert re.search(r"SKIPPED.*judged on no case of the suite: two drafts", printed)
    assert "spectheory: lossless on the passed pairs in float64 within 1e-09 p(a) + 1.4e-14" in printed
    assert "draft_bonus is not lossless. On" in printed
    assert "certificate.py" not in printed


def test_an_unknown_verifier_is_a_usage_error(tmp_path: Path) -> None:
    code, printed = run_pytest(tmp_path, "--spectheory-verifier", "blok")
    assert code == 4
    assert "no verifier is called 'blok'; did you mean 'block'?" in printed


def test_the_plugin_is_found_where_the_package_is_installed() -> None:
    found = {entry.name: entry.value for entry in entry_points(group="pytest11")}
    assert found["spectheory"] == "spectheory.testing.plugin"

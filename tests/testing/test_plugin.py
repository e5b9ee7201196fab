"""The pytest plugin: as its user runs it, in a session of its own, and what it answers to pytest."""

import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter, defaultdict
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from spectheory import instances
from spectheory.exact.suite import SuiteCase
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import Iid
from spectheory.testing import plugin
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome

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
    assert re.search(r"SKIPPED.*two drafts", printed)
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


def test_the_option_as_pytest_shows_and_reads_it() -> None:
    """A list of names, empty without the option."""
    groups: list[str] = []
    parser = ArgumentParser(prog="pytest", usage="", add_help=False)

    def group_called(name: str) -> Any:
        groups.append(name)
        return SimpleNamespace(addoption=parser.add_argument)

    plugin.pytest_addoption(SimpleNamespace(getgroup=group_called))  # type: ignore[arg-type]
    assert groups == ["spectheory"]
    shown = "certify this verifier (a name or module:attribute) on the standard suite, a test per pair"
    assert (
        " ".join(parser.format_help().partition("options:")[2].split())
        == f"--spectheory-verifier NAME {shown}"
    )
    asked = [word for name in ("block", "kseq") for word in ("--spectheory-verifier", name)]
    assert parser.parse_args(asked).spectheory_verifier == ["block", "kseq"]
    assert parser.parse_args([]).spectheory_verifier == []


class OfNumpy(Token):
    """Runs on rows of numpy only, and is not meant for two drafts."""

    def bind(self, process: Any, pair: Any = None) -> Any:
        if process.num_drafts == 2:
            raise InvalidInputError("two drafts")
        return super().bind(process, pair)

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        if not isinstance(target_rows, np.ndarray):
            raise TypeError("not of numpy")
        return super().outcome(paths, target_rows, draft_rows)


class WithoutLaw(Token):
    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        found = super().outcome(paths, target_rows, draft_rows)
        return Outcome(2 * found.stop_probs, found.correction)


class Refuses(Token):
    """Of every pair: in ``bind``, which is a refusal, or in ``outcome``, which is a failure."""

    def __init__(self, method: str) -> None:
        self.method = method

    def bind(self, process: Any, pair: Any = None) -> Any:
        if self.method == "bind":
            raise InvalidInputError("not for this pair")
        return super().bind(process, pair)

    def outcome(self, *given: Any) -> Outcome:
        raise InvalidInputError("not for this pair")


def test_a_verifier_that_is_judged_on_no_pair_is_not_passed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectheory.verification.resolve.find_verifier", Refuses)
    with pytest.raises(pytest.UsageError, match="bind is judged on no case of the suite: not for this pair"):
        list(plugin._cases(request.session, "bind"))
    first = next(plugin._cases(request.session, "outcome"))
    with pytest.raises(InvalidInputError, match="not for this pair"):
        first.runtest()


def test_words_of_items(request: pytest.FixtureRequest) -> None:
    """How passed pairs were judged, once each in their order; skips, failures and what is no law."""
    config: Any = SimpleNamespace(stash=pytest.Stash())
    written: list[str] = []
    reporter: Any = SimpleNamespace(write_line=written.append)
    plugin.pytest_terminal_summary(reporter, config)
    assert written == []

    def item(verifier: Any, num_drafts: int) -> plugin.SuiteItem:
        case = SuiteCase("thirds", instances.two_token(1), Iid(num_drafts))
        found: Any = plugin.SuiteItem.from_parent(
            request.session, name=f"its[{case}]", verifier=verifier, case=case
        )
        found.config = config
        return found

    for verifier in (Token(), OfNumpy(), Token()):
        item(verifier, 1).runtest()
    plugin.pytest_terminal_summary(reporter, config)
    exact = "spectheory: lossless on the passed pairs in exact arithmetic, again in float64, float32"
    double, single = "float64 within 1e-09 p(a) + 1.4e-14", "float32 within 1e-05 p(a) + 7.6e-06"
    within = f"tolerance {double} on every path a; {single} on every path a"
    assert written == [
        f"{exact}, torch float64, {within}; torch {double} on every path a",
        f"{exact}, {within}; refused: torch float64",
    ]
    with pytest.raises(pytest.skip.Exception, match=r"^two drafts$"):
        item(OfNumpy(), 2).runtest()
    with pytest.raises(AssertionError, match=r"not lossless.*sum to") as raised:
        item(WithoutLaw(), 1).runtest()
    words = pytest.ExceptionInfo.from_exception(raised.value)
    assert item(Token(), 1).repr_failure(words) == str(raised.value)
    assert item(Token(), 1).reportinfo() == (
        "spectheory standard suite", None, "its[thirds, 1 draft]",
    )  # fmt: skip

"""Which tests run which lines of the package, recorded by coverage.py in one run of the quick tests.

Not seen are other processes, loops that numba compiles, and what runs while modules are imported.
"""

import ast
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from syntax_edits import function_of

ROOT = Path(__file__).resolve().parent.parent
LINES = ROOT / "build" / "tests_by_line.sqlite"
SECONDS = ROOT / "build" / "test_seconds.json"


class Recorder:
    """A plugin of pytest: every test is a context of the coverage, and its time is kept if it passes."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.not_passed = set[str]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Its set-up and its end belong to a test."""
        self.coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a part of a test."""
        self.seconds[report.nodeid] = round(self.seconds.get(report.nodeid, 0) + report.duration, 3)
        if not report.passed:
            self.not_passed.add(report.nodeid)


def record() -> int:
    """Run the quick tests and keep which lines they run; the exit code of pytest."""
    from coverage import Coverage

    os.chdir(ROOT)
    LINES.parent.mkdir(exist_ok=True)
    LINES.unlink(missing_ok=True)
    coverage = Coverage(data_file=str(LINES), source=["spectheory"], config_file=False, messages=False)
    coverage.start()
    recorder = Recorder(coverage)
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-m", "not deep"], plugins=[recorder])
    coverage.stop()
    coverage.save()
    passed = {test: time for test, time in recorder.seconds.items() if test not in recorder.not_passed}
    SECONDS.write_text(json.dumps(passed, indent=0), encoding="utf-8")
    return int(code)


class RecordedTests:
    """The record of the tests that passed."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self.lines = CoverageData(str(LINES))
        self.lines.read()
        self.seconds: dict[str, float] = json.loads(SECONDS.read_text(encoding="utf-8"))

    def of_line(
        self, path: Path, function: str, line: int, others: Sequence[str], most_seconds: float
    ) -> list[str]:
        """Tests that run a line of a function, or the function where no test runs the line itself.

        Then other tests of their files, which may use what those tests computed: the same cases first.  Of
        each kind one case of every test function, then a second case, and so on, the fastest first.

        Args:
            path: the file of the function.
            function: its qualified name.
            line: of the file.
            others: test files that are left out.
            most_seconds: of all tests together.
        """
        tests_of = self.lines.contexts_by_lineno(str(path))
        node: Any = function_of(ast.parse(path.read_text(encoding="utf-8")), function)
        body = range(node.body[0].lineno, node.end_lineno + 1)
        known = self._known(tests_of.get(line, ())) or self._known(
            test for place in body for test in tests_of.get(place, ())
        )
        files, cases = {_file(test) for test in known}, {_case(test) for test in known}
        around = {test for test in self.seconds if _file(test) in files} - known
        same_case = {test for test in around if _case(test) in cases}
        chosen, total = [], 0.0
        for test in [turn for tests in (known, same_case, around - same_case) for turn in self._turns(tests)]:
            if _file(test) not in others:
                total += self.seconds[test]
                if total > most_seconds:
                    break
                chosen.append(test)
        return chosen

    def is_run_at_import(self, path: Path, line: int) -> bool:
        """Whether a line runs outside of all tests, while modules are imported."""
        return "" in self.lines.contexts_by_lineno(str(path)).get(line, ())

    def seconds_of(self, tests: Sequence[str]) -> float:
        """How long tests and test files took."""
        return sum(seconds for test, seconds in self.seconds.items() if test in tests or _file(test) in tests)

    def _turns(self, tests: Iterable[str]) -> list[str]:
        taken: Counter[str] = Counter()
        turns = []
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            name = test.partition("[")[0]
            turns.append((taken[name], self.seconds[test], test))
            taken[name] += 1
        return [test for *_, test in sorted(turns)]

    def _known(self, tests: Iterable[str]) -> set[str]:
        return self.seconds.keys() & set(tests)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _case(test: str) -> str:
    return test.partition("[")[2]

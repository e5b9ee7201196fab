"""A mutation check: each small wrong change of the package must fail a test near it.

The changes are drawn room by room from all changes that ``syntax_edits.py`` makes of the package's functions.
Near a change are the tests of the file that mirrors its module, and tests that run the changed line
(``recorded_tests.py``).  Of the latter every test function gives one case, then every one a second case, and
so on, the fastest first, ``RECORDED_SECONDS`` in all.  ``scripts/mutants.toml`` says of
a mutant that no test can tell from the original why this is so.  The check runs on copies of the tree in a
temporary folder: in forks of a process that has collected the tests (``forked_tests.py``), and in a new
interpreter where a fork cannot apply the change or runs out of time.  What survives is given to mypy, as the
gate does; what mypy refuses is counted apart.

    python scripts/mutants.py --record                  run the quick tests and keep which lines they run
    python scripts/mutants.py --sample 150 --seed 1     150 drawn mutants, results to build/mutants.jsonl
    python scripts/mutants.py ... --resume              those without a result there
    python scripts/mutants.py ... --only ID             one in a new interpreter, with the output of its tests
    python scripts/mutants.py ... --report FILE         also write the table of results as Markdown

Exit codes: 0 every mutant is killed or argued equivalent; 1 one is not, or an argument is refuted; 2 there is
no record of the tests, or pytest itself fails.
"""

import argparse
import ast
import compileall
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue
from threading import Lock
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from forked_tests import FAILED, PASSED, Change, serve
from recorded_tests import LINES, SECONDS, RecordedTests, record
from syntax_edits import Edit, edits, function_of, functions_of, mutate, mutated

ROOT = Path(__file__).resolve().parent.parent
ARGUED = ROOT / "scripts" / "mutants.toml"
RESULTS = ROOT / "build" / "mutants.jsonl"

SERVER = multiprocessing.get_context("forkserver")
"""Forks every run from a process that has imported what is slow to import and no part of the package."""
PRELOADED = ["numpy", "scipy.sparse", "torch", "cvxpy", "sympy", "hypothesis", "highspy", "flint", "pytest"]

TESTS_FAILED, INTERRUPTED, INTERNAL_ERROR = 1, 2, 3
"""Exit codes of pytest; a mutant can keep the collection from ending, or break pytest by the plugin."""
USAGE_ERROR, IN_CONFTEST = 4, "while loading conftest"
"""A mutant can keep a ``conftest.py`` from being imported."""
OTHER_PACKAGE = 99


RECORDED_SECONDS = 30
"""Of tests that run the changed line, beside those of the file that mirrors the module."""


class CheckError(Exception):
    """There is no record of the tests, or pytest itself fails."""


@dataclass(frozen=True)
class Mutant:
    """One wrong change.

    Attributes:
        module: the module it changes, ``"spectheory.exact.law"``.
        function: the qualified name of the function in it.
        edit: the change of its syntax tree, see ``syntax_edits``.
        tests: the test files nearest to it.
        at_import: whether the changed line runs while modules are imported, as a new interpreter does.
        equivalent: why no test can tell it from the original; empty where a test must.
    """

    module: str
    function: str
    edit: str
    tests: tuple[str, ...]
    at_import: bool = False
    equivalent: str = ""

    @property
    def id(self) -> str:
        """``module:function: edit``, without the name of the package."""
        return f"{self.module.partition('.')[2]}:{self.function}: {self.edit}"

    @property
    def room(self) -> str:
        """The folder of the package it is in."""
        return self.module.split(".")[1]

    @property
    def file(self) -> Path:
        """The file it changes, from the root of the tree."""
        return Path(*self.module.split(".")).with_suffix(".py")


def drawn(count: int, seed: int, recorded: RecordedTests | None = None, root: Path = ROOT) -> list[Mutant]:
    """Mutants drawn at random, equally many from every room.

    A module is drawn by its length, a change uniformly among those of its functions.  The order is random: a
    run that was stopped is a sample of all rooms, too.
    """
    argued = tomllib.loads(ARGUED.read_text(encoding="utf-8"))
    rooms: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted((root / "spectheory").glob("*/**/*.py")):
        rooms[path.relative_to(root).parts[1]].append(path)
    rng, found = random.Random(seed), dict[str, Mutant]()
    for number, room in enumerate(sorted(rooms)):
        wanted = len(found) + (count + number) // len(rooms)
        sizes = [path.stat().st_size for path in rooms[room]]
        while len(found) < wanted:
            (path,) = rng.choices(rooms[room], sizes)
            if not (changes := _changes(path)):
                continue
            function, edit = rng.choice(changes)
            _, *folders, name = path.relative_to(root).with_suffix("").parts
            mirror = Path("tests", *folders, f"test_{name}.py")
            tests, at_import = [str(mirror)] if (root / mirror).exists() else [], False
            if recorded is not None:
                tests += recorded.of_line(path, function, edit.line, tests, RECORDED_SECONDS)
                at_import = recorded.is_run_at_import(path, edit.line)
            mutant = Mutant(
                ".".join(["spectheory", *folders, name]), function, edit.name, tuple(tests), at_import
            )
            found[mutant.id] = replace(mutant, equivalent=argued.get(mutant.id, ""))
    return rng.sample(list(found.values()), len(found))


@cache
def _changes(path: Path) -> list[tuple[str, Edit]]:
    """(function, change) of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (function, edit) for function in functions_of(tree) for edit in edits(function_of(tree, function))
    ]


class Copy:
    """A copy of the tree, in which one mutant at a time is applied and tested."""

    def __init__(self, folder: Path, tests: Sequence[str]) -> None:
        self.folder, self.tests = folder, tests
        self.process: Any = None
        self.server: Any = None
        self.connection: Any = None
        self.is_stopped = False
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        if (fetched := ROOT / "build" / "audit").is_dir():
            (folder / "build").mkdir()
            (folder / "build" / "audit").symlink_to(fetched)
        # Bytecode is checked by the hash of its source: nothing stale is ever run, whatever the clock says.
        compileall.compile_dir(
            folder / "spectheory", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )

    def test(self, tests: Sequence[str], limit: float) -> tuple[int | None, str]:
        """pytest's exit code (``None``: out of time), and what it printed."""
        output = self.folder.with_suffix(".txt")
        self.process = process = SERVER.Process(target=run_pytest, args=(self.folder, output, tuple(tests)))
        process.start()
        process.join(limit)
        if process.exitcode is None:
            self.kill()
            return None, output.read_text(encoding="utf-8")
        if self.is_stopped:
            raise KeyboardInterrupt
        return process.exitcode, output.read_text(encoding="utf-8")

    def test_mutant(self, mutant: Mutant, limit: float) -> tuple[int | None, str]:
        """The same with a mutant applied, which is taken back whatever happens."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutate(original, mutant.function, mutant.edit), encoding="utf-8")
        try:
            return self.test(mutant.tests, limit)
        finally:
            path.write_text(original, encoding="utf-8")

    def refused_by_types(self, mutant: Mutant) -> str:
        """The first error that mypy finds with a mutant and not without it; "" if there is none.

        Raises:
            CheckError: mypy finds an error without the mutant, or fails.
        """
        if not (self.folder / ".mypy_cache").is_dir():
            code, output = self._types()
            if code != 0:
                raise CheckError(f"mypy finds errors without a mutant:\n{output[-3000:]}")
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutate(original, mutant.function, mutant.edit), encoding="utf-8")
        try:
            code, output = self._types()
        finally:
            path.write_text(original, encoding="utf-8")
        if code not in (0, 1):
            raise CheckError(f"{mutant.id}: mypy ended with exit code {code}:\n{output[-3000:]}")
        return output.partition("\n")[0] if code else ""

    def _types(self) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "mypy"], check=False, cwd=self.folder, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    def forked(self, mutant: Mutant) -> tuple[str, str]:
        """Killed by a test that passes without the mutant; timeout, survived, or an empty text: unknown."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        change = (mutant.module, original, mutated(original, mutant.function, mutant.edit))
        try:
            if self.connection is None:
                self.collect()
            path.write_text(
                mutate(original, mutant.function, mutant.edit), encoding="utf-8"
            )  # for what the tests start
            code, by = self.ask(change, mutant.tests)
            path.write_text(original, encoding="utf-8")
            if code == FAILED and by and self.ask(None, [by])[0] == PASSED:
                return "killed", by
            if code is None and self.ask(None, mutant.tests)[0] == PASSED:
                return "timeout", ""
        except (EOFError, OSError):
            output = self.folder.with_suffix(".forks.txt").read_text(encoding="utf-8")
            raise CheckError(f"the tests cannot be collected:\n{output[-3000:]}") from None
        finally:
            path.write_text(original, encoding="utf-8")
        return ("survived", "") if code == PASSED and not mutant.at_import else ("", "")

    def collect(self) -> None:
        """Start the process that is forked, and wait until it has collected the tests."""
        self.connection, theirs = SERVER.Pipe()
        arguments = (self.folder, self.folder.with_suffix(".forks.txt"), self.tests, theirs)
        self.server = SERVER.Process(target=serve, args=arguments)
        self.server.start()
        theirs.close()
        self.connection.recv()

    def ask(self, change: Change | None, tests: Sequence[str]) -> tuple[int | None, str]:
        """What a fork says, see ``Forks``."""
        self.connection.send((change, tests))
        answer: tuple[int | None, str] = self.connection.recv()
        return answer

    def kill(self) -> None:
        """End the tests that run here, and what they started."""
        if self.process is not None and self.process.pid is not None and self.process.exitcode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()

    def stop(self) -> None:
        """End what runs here; nothing is said of the mutant."""
        self.is_stopped = True
        self.kill()
        if self.server is not None and self.server.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.server.pid, signal.SIGKILL)
            self.server.join()


def run_pytest(folder: Path, output: Path, tests: Sequence[str]) -> None:
    """In a process of its own: pytest on a copy of the tree; ends with its exit code."""
    os.setsid()
    stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(stream, standard)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder)
    import pytest

    code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not deep", *tests]))
    package = sys.modules.get("spectheory")
    if package is not None and not Path(str(package.__file__)).is_relative_to(folder):
        print(f"the package is imported from {package.__file__}, not from {folder}")
        code = OTHER_PACKAGE
    sys.stdout.flush()
    os._exit(code)


class Check:
    """Runs mutants, each in a free copy, and writes every result as soon as it is there."""

    def __init__(
        self, copies: Sequence[Copy], results: Path, recorded: RecordedTests, say: bool = False
    ) -> None:
        self.copies: Queue[Copy] = Queue()
        for copy in copies:
            self.copies.put(copy)
        self.results, self.recorded, self.say = results, recorded, say
        self.lock = Lock()

    def run(self, mutant: Mutant) -> dict[str, Any]:
        """The result of one mutant.

        Raises:
            CheckError: pytest itself fails.
        """
        copy = self.copies.get()
        try:
            start = time.monotonic()
            result, by = ("survived", "") if not mutant.tests else ("", "")
            if not result and not self.say:
                result, by = copy.forked(mutant)
            if not result:
                result, by = self.in_new_interpreter(copy, mutant)
            if result == "survived" and (error := copy.refused_by_types(mutant)):
                result, by = "refused", error
        finally:
            self.copies.put(copy)
        seconds = round(time.monotonic() - start, 1)
        record = {"id": mutant.id, "result": result, "by": by, "seconds": seconds}
        with self.lock, self.results.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        return record

    def in_new_interpreter(self, copy: Copy, mutant: Mutant) -> tuple[str, str]:
        """The result and the test that failed; a test that fails without the mutant, too, does not count.

        Raises:
            CheckError: as ``run``.
        """
        code, output = copy.test_mutant(mutant, 120 + 3 * self.recorded.seconds_of(mutant.tests))
        if self.say:
            print(output)
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        by = failed[1] if failed else ""
        if code == USAGE_ERROR and IN_CONFTEST in output:
            code = INTERRUPTED
        if code not in (None, 0, TESTS_FAILED, INTERRUPTED, INTERNAL_ERROR) and code > 0:  # type: ignore[operator]
            raise CheckError(f"{mutant.id}: pytest ended with exit code {code}:\n{output[-3000:]}")
        if code == 0 or (code == TESTS_FAILED and by and copy.test([by], 600)[0] != 0):
            return "survived", by
        return ("timeout", "") if code is None else ("killed", by)


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """The results in a file of JSON lines, by mutant; the latest one counts, a torn last line does not."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[record["id"]] = record
    return found


def unexpected(mutants: Iterable[Mutant], results: dict[str, dict[str, Any]]) -> list[str]:
    """Survivors without an argument, and arguments that a test refutes."""
    found = []
    for mutant in mutants:
        result = results.get(mutant.id, {}).get("result")
        if result == "survived" and not mutant.equivalent:
            found.append(f"{mutant.id} survived {len(mutant.tests)} tests and files")
        if result in ("killed", "timeout", "refused") and mutant.equivalent:
            found.append(f"{mutant.id} is argued equivalent, but {results[mutant.id]['by'] or result}")
    return found


def report(mutants: Sequence[Mutant], results: dict[str, dict[str, Any]]) -> str:
    """The results as Markdown: counts by folder, and the survivors with their arguments."""
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        rooms[mutant.room][results.get(mutant.id, {}).get("result", "not run")] += 1
    total = sum(rooms.values(), Counter())
    head = ("room", "mutants", "killed", "of them by time limit", "refused by mypy", "survived")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for room, counts in [*sorted(rooms.items()), ("**all**", total)]:
        killed = counts["killed"] + counts["timeout"]
        cells = (room, counts.total(), killed, counts["timeout"], counts["refused"], counts["survived"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if total["not run"]:
        lines += ["", f"{total['not run']} have no result."]
    survivors = [mutant for mutant in mutants if results.get(mutant.id, {}).get("result") == "survived"]
    if survivors:
        lines += ["", "| survivor | why no test can tell |", "|---|---|"]
    for mutant in survivors:
        why = " ".join((mutant.equivalent or "**not argued**").split())
        lines.append(f"| `{mutant.id.replace('|', chr(92) + '|')}` | {why} |")
    return "\n".join(lines) + "\n"


def check(
    mutants: Sequence[Mutant], recorded: RecordedTests, jobs: int, results: Path, say: bool = False
) -> None:
    """Run mutants, with one line of progress each on stderr.

    Raises:
        CheckError: as ``Check``.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        tests = tuple(dict.fromkeys(test.partition("::")[0] for mutant in mutants for test in mutant.tests))
        copies = [Copy(Path(folder) / str(number), tests) for number in range(min(jobs, len(mutants)))]
        running = Check(copies, results, recorded, say)
        waiting = [pool.submit(running.run, mutant) for mutant in mutants]
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                found = future.result()
                print(
                    f"[{done}/{len(mutants)}] {found['result']:8} {found['id']} "
                    f"({found['seconds']} s) {found['by']}",
                    file=sys.stderr,
                    flush=True,
                )
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for copy in copies:
                copy.stop()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Each small wrong change must fail a test near it.")
    parser.add_argument("--record", action="store_true", help="record which tests run which lines, and stop")
    parser.add_argument("--sample", type=int, default=150, metavar="N", help="mutants to draw (150)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
    parser.add_argument("--only", metavar="ID", action="append", help="this mutant, with its tests' output")
    parser.add_argument("--resume", action="store_true", help="run only what has no result yet")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="copies tested at a time (1)")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="JSON lines")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the results as Markdown, too")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    SERVER.set_forkserver_preload(PRELOADED)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if arguments.record:
            return record()
        if not LINES.exists() or not SECONDS.exists():
            raise CheckError("no record of the tests; make it with --record")
        recorded = RecordedTests()
        mutants = drawn(arguments.sample, arguments.seed, recorded)
        chosen = [mutant for mutant in mutants if not arguments.only or mutant.id in arguments.only]
        if unknown := set(arguments.only or ()) - {mutant.id for mutant in mutants}:
            raise CheckError(f"there is no mutant {', '.join(sorted(unknown))} in this sample")
        if not arguments.resume and not arguments.only:
            arguments.results.unlink(missing_ok=True)
        known = read_results(arguments.results) if arguments.resume else {}
        left = [mutant for mutant in chosen if mutant.id not in known]
        if left:
            check(left, recorded, max(1, arguments.jobs), arguments.results, say=bool(arguments.only))
    except CheckError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    results = read_results(arguments.results)
    text = report(chosen, results)
    print(text, end="")
    if arguments.report:
        arguments.report.write_text(text, encoding="utf-8")
    found = unexpected(chosen, results)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

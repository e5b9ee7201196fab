"""A mutation check: each small wrong change of the package must fail a test near it.

``scripts/mutants.toml`` names functions of the package and changes of their syntax trees, which
``syntax_edits.py`` makes; ``--sample N`` draws N from all changes of all functions, room by room.
The nearest tests of a module are those that mirror it, and those that the list adds.  A mutant that no test
can tell from the original says why in ``equivalent``.  The check runs on copies of the tree in a temporary
folder: in forks of a process that has collected the tests (``forked_tests.py``), and in a new interpreter
where a fork cannot apply the change or runs out of time.

    python scripts/mutants.py                           the listed ones, results to build/mutants.jsonl
    python scripts/mutants.py --sample 150 --seed 1     150 drawn ones
    python scripts/mutants.py --resume                  those without a result there
    python scripts/mutants.py --only ID                 one in a new interpreter, with the output of its tests
    python scripts/mutants.py --report FILE             also write the table of results as Markdown

Exit codes: 0 every mutant is killed or argued equivalent; 1 one is not, or an argument is refuted; 2 the list
does not fit the tree, or the tests fail without a mutant.
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
from syntax_edits import edits, function_of, functions_of, mutate, mutated

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts" / "mutants.toml"
RESULTS = ROOT / "build" / "mutants.jsonl"

SERVER = multiprocessing.get_context("forkserver")
"""Forks every run from a process that has imported what is slow to import and no part of the package."""
PRELOADED = ["numpy", "scipy.sparse", "torch", "cvxpy", "sympy", "hypothesis", "highspy", "flint", "pytest"]

TESTS_FAILED, INTERRUPTED, INTERNAL_ERROR = 1, 2, 3
"""Exit codes of pytest; a mutant can keep the collection from ending, or break pytest by the plugin."""
OTHER_PACKAGE = 99


class TableError(Exception):
    """The list of mutants does not fit the tree, or the tests fail without any mutant."""


@dataclass(frozen=True)
class Mutant:
    """One wrong change.

    Attributes:
        module: the module it changes, ``"spectheory.exact.law"``.
        function: the qualified name of the function in it.
        edit: the change of its syntax tree, see ``syntax_edits``.
        tests: the test files nearest to it.
        equivalent: why no test can tell it from the original; empty where a test must.
    """

    module: str
    function: str
    edit: str
    tests: tuple[str, ...]
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

    def applied_to(self, text: str) -> str:
        """The text of the file with the change.

        Raises:
            TableError: there is no such function, or no place for the change in it.
        """
        try:
            return mutate(text, self.function, self.edit)
        except LookupError as error:
            raise TableError(f"{self.module}: {error}; bring the mutant up to date") from error


def nearest_tests(module: str, more: dict[str, list[str]], root: Path = ROOT) -> tuple[str, ...]:
    """A module's examples, the test file that mirrors it, and those that the list adds for it or around it.

    ``{name}`` in an entry of the list is the module's name.  What the list adds for a folder is near its
    modules without a test file.  Empty where there are only examples.
    """
    _, *folders, name = module.split(".")
    own = Path("tests", *folders, f"test_{name}.py")
    found = [str(own)] if (root / own).exists() else []
    source = root.joinpath(*module.split(".")).with_suffix(".py")
    has_examples = source.is_file() and ">>> " in source.read_text(encoding="utf-8")
    examples = [f"tests/test_doctests.py::test_examples_of_the_module[{module}]"] if has_examples else []
    while not (added := more.get(module, [])) and not found and "." in module:
        module = module.rpartition(".")[0]
    near = [*found, *(test.replace("{name}", name) for test in added)]
    return tuple(dict.fromkeys([*examples, *near])) if near else ()


def read_table(table: Path = TABLE, root: Path = ROOT) -> list[Mutant]:
    """All listed mutants.

    Raises:
        TableError: one is listed twice, or has no tests.
    """
    document = tomllib.loads(table.read_text(encoding="utf-8"))
    mutants = []
    for name, changes in document["mutants"].items():
        module, _, function = name.partition(":")
        for edit, why in changes.items() if isinstance(changes, dict) else [(edit, "") for edit in changes]:
            tests = nearest_tests(module, document["tests"], root)
            if not tests:
                raise TableError(f"{name}: no tests; add those of {module} to [tests]")
            mutants.append(Mutant(module, function, edit, tests, why))
    repeated = [name for name, count in Counter(mutant.id for mutant in mutants).items() if count > 1]
    if repeated:
        raise TableError(f"listed twice: {', '.join(repeated)}")
    return mutants


def drawn(count: int, seed: int, table: Path = TABLE, root: Path = ROOT) -> list[Mutant]:
    """Mutants drawn at random, equally many from every room.

    A module is drawn by its length, a change uniformly among those of its functions.  Modules without tests
    near them are left out.  The order is random: a run that was stopped is a sample of all rooms, too.
    """
    document = tomllib.loads(table.read_text(encoding="utf-8"))
    argued = document["argued"]
    rooms: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted((root / "spectheory").glob("*/**/*.py")):
        if nearest_tests(_module(path, root), document["tests"], root):
            rooms[path.relative_to(root).parts[1]].append(path)
    rng, found = random.Random(seed), dict[str, Mutant]()
    for number, room in enumerate(sorted(rooms)):
        wanted = len(found) + (count + number) // len(rooms)
        sizes = [path.stat().st_size for path in rooms[room]]
        while len(found) < wanted:
            (path,) = rng.choices(rooms[room], sizes)
            module = _module(path, root)
            if changes := _changes(path):
                function, edit = rng.choice(changes)
                tests = nearest_tests(module, document["tests"], root)
                mutant = Mutant(module, function, edit, tests)
                found[mutant.id] = replace(mutant, equivalent=argued.get(mutant.id, ""))
    return rng.sample(list(found.values()), len(found))


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


@cache
def _changes(path: Path) -> list[tuple[str, str]]:
    """(function, change) of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (function, edit.name)
        for function in functions_of(tree)
        for edit in edits(function_of(tree, function))
    ]


def complaints(mutants: Iterable[Mutant], root: Path = ROOT) -> list[str]:
    """What does not fit the tree: a function, a place for the change or a test that is gone."""
    found = []
    for mutant in mutants:
        path = root / mutant.file
        try:
            if not path.is_file():
                raise TableError(f"{mutant.id}: there is no file {mutant.file}")
            mutant.applied_to(path.read_text(encoding="utf-8"))
        except TableError as error:
            found.append(str(error))
        found += [
            f"{mutant.id}: there is no test {test}"
            for test in mutant.tests
            if not (root / test.partition("::")[0]).is_file()
        ]
    return found


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
        path.write_text(mutant.applied_to(original), encoding="utf-8")
        try:
            return self.test(mutant.tests, limit)
        finally:
            path.write_text(original, encoding="utf-8")

    def forked(self, mutant: Mutant) -> tuple[str, str]:
        """Killed by a test that passes without the mutant; timeout, survived, or an empty text: unknown."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        change = (mutant.module, original, mutated(original, mutant.function, mutant.edit))
        try:
            if self.connection is None:
                self.collect()
            path.write_text(mutant.applied_to(original), encoding="utf-8")  # for what the tests start
            code, by = self.ask(change, mutant.tests)
            path.write_text(original, encoding="utf-8")
            if code == FAILED and by and self.ask(None, [by])[0] == PASSED:
                return "killed", by
            if code is None and self.ask(None, mutant.tests)[0] == PASSED:
                return "timeout", ""
        except (EOFError, OSError):
            output = self.folder.with_suffix(".forks.txt").read_text(encoding="utf-8")
            raise TableError(f"the tests cannot be collected:\n{output[-3000:]}") from None
        finally:
            path.write_text(original, encoding="utf-8")
        return ("survived", "") if code == PASSED else ("", "")

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

    def __init__(self, copies: Sequence[Copy], results: Path, say: bool = False) -> None:
        self.copies: Queue[Copy] = Queue()
        for copy in copies:
            self.copies.put(copy)
        self.results, self.say = results, say
        self.seconds: dict[str, float] = {}
        self.lock = Lock()

    def limit(self, copy: Copy, tests: tuple[str, ...]) -> float:
        """Seconds a mutant may take: 20 and three times what its tests take without it.

        Raises:
            TableError: they fail without it, or there are none.
        """
        with self.lock:
            for test in tests:
                if test not in self.seconds:
                    start = time.monotonic()
                    code, output = copy.test([test], 600)
                    if code != 0:
                        raise TableError(f"{test} does not pass without a mutant:\n{output[-3000:]}")
                    self.seconds[test] = time.monotonic() - start
            return 20 + 3 * sum(self.seconds[test] for test in tests)

    def run(self, mutant: Mutant) -> dict[str, Any]:
        """The result of one mutant.

        Raises:
            TableError: as ``limit``, and where pytest itself fails.
        """
        copy = self.copies.get()
        try:
            start = time.monotonic()
            result, by = ("", "") if self.say else copy.forked(mutant)
            if not result:
                result, by = self.in_new_interpreter(copy, mutant)
        finally:
            self.copies.put(copy)
        seconds = round(time.monotonic() - start, 1)
        record = {"id": mutant.id, "result": result, "by": by, "seconds": seconds}
        with self.lock, self.results.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        return record

    def in_new_interpreter(self, copy: Copy, mutant: Mutant) -> tuple[str, str]:
        """The result and the test that failed.

        Raises:
            TableError: as ``run``.
        """
        code, output = copy.test_mutant(mutant, self.limit(copy, mutant.tests))
        if code not in (None, 0, TESTS_FAILED, INTERRUPTED, INTERNAL_ERROR) and code > 0:  # type: ignore[operator]
            raise TableError(f"{mutant.id}: pytest ended with exit code {code}:\n{output[-3000:]}")
        if self.say:
            print(output)
        result = "timeout" if code is None else "survived" if code == 0 else "killed"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        return result, failed[1] if failed and result == "killed" else ""


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
            found.append(f"{mutant.id} survived {' '.join(mutant.tests)}")
        if result in ("killed", "timeout") and mutant.equivalent:
            found.append(f"{mutant.id} is argued equivalent, but {results[mutant.id]['by'] or result}")
    return found


def report(mutants: Sequence[Mutant], results: dict[str, dict[str, Any]]) -> str:
    """The results as Markdown: counts by folder, and the survivors with their arguments."""
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        rooms[mutant.room][results.get(mutant.id, {}).get("result", "not run")] += 1
    total = sum(rooms.values(), Counter())
    lines = ["| room | mutants | killed | of them by time limit | survived |", "|---|---|---|---|---|"]
    for room, counts in [*sorted(rooms.items()), ("**all**", total)]:
        killed = counts["killed"] + counts["timeout"]
        lines.append(f"| {room} | {counts.total()} | {killed} | {counts['timeout']} | {counts['survived']} |")
    if total["not run"]:
        lines += ["", f"{total['not run']} have no result."]
    survivors = [mutant for mutant in mutants if results.get(mutant.id, {}).get("result") == "survived"]
    if survivors:
        lines += ["", "| survivor | why no test can tell |", "|---|---|"]
    for mutant in survivors:
        why = " ".join((mutant.equivalent or "**not argued**").split())
        lines.append(f"| `{mutant.id.replace('|', chr(92) + '|')}` | {why} |")
    return "\n".join(lines) + "\n"


def check(mutants: Sequence[Mutant], jobs: int, results: Path, say: bool = False) -> None:
    """Run mutants, with one line of progress each on stderr.

    Raises:
        TableError: as ``Check``.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        copies = [Copy(Path(folder) / str(number), tests) for number in range(min(jobs, len(mutants)))]
        running = Check(copies, results, say)
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
    parser.add_argument("--sample", type=int, metavar="N", help="draw N from all changes of all functions")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
    parser.add_argument("--list", action="store_true", help="list the mutants and stop")
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
        mutants = read_table() if arguments.sample is None else drawn(arguments.sample, arguments.seed)
        if wrong := complaints(mutants):
            raise TableError("\n".join(wrong))
        if arguments.list:
            for mutant in mutants:
                print(mutant.id, "(argued equivalent)" if mutant.equivalent else "")
            return 0
        chosen = [mutant for mutant in mutants if not arguments.only or mutant.id in arguments.only]
        if unknown := set(arguments.only or ()) - {mutant.id for mutant in mutants}:
            raise TableError(f"there is no mutant {', '.join(sorted(unknown))}; --list shows all")
        if not arguments.resume and not arguments.only:
            arguments.results.unlink(missing_ok=True)
        known = read_results(arguments.results) if arguments.resume else {}
        left = [mutant for mutant in chosen if mutant.id not in known]
        if left:
            check(left, max(1, arguments.jobs), arguments.results, say=bool(arguments.only))
    except TableError as error:
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

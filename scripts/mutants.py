"""A mutation check: each small wrong change of the package must fail a test near it.

``scripts/mutants/*.toml`` lists the changes.  A mutant replaces one text of one file; ``[nearest]`` names the
tests of a file, ``tests`` those of one mutant.  A mutant that no test can tell from the original says why
in ``equivalent``.  The check runs on copies of the tree in a temporary folder, never on the tree itself.

    python scripts/mutants.py                           all of them, results to build/mutants.jsonl
    python scripts/mutants.py --resume                  those without a result there
    python scripts/mutants.py --only ID                 one, with the output of its tests
    python scripts/mutants.py --report FILE             also write the table of results as Markdown

Exit codes: 0 every mutant is killed or argued equivalent; 1 one is not, or an argument is refuted; 2 the list
does not fit the tree, or the tests fail without a mutant.
"""

from __future__ import annotations

import argparse
import compileall
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue
from threading import Lock
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts" / "mutants"
RESULTS = ROOT / "build" / "mutants.jsonl"

SERVER = multiprocessing.get_context("forkserver")
"""Forks every run from a process that has imported what is slow to import and no part of the package."""
PRELOADED = ["numpy", "scipy.sparse", "torch", "cvxpy", "sympy", "hypothesis", "highspy", "flint", "pytest"]

TESTS_FAILED, INTERRUPTED = 1, 2
"""Exit codes of pytest; a mutant that cannot be imported interrupts the collection."""
OTHER_PACKAGE = 99


class TableError(Exception):
    """The list of mutants does not fit the tree, or the tests fail without any mutant."""


@dataclass(frozen=True)
class Mutant:
    """One wrong change.

    Attributes:
        id: its name.
        file: the file it changes.
        old, new: the text that is replaced, and by what.
        tests: the tests nearest to it: files, or single tests as pytest names them.
        index: which occurrence of ``old`` is meant, from 0; ``None`` where there is only one.
        equivalent: why no test can tell it from the original; empty where a test must.
    """

    id: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    index: int | None = None
    equivalent: str = ""

    def applied_to(self, text: str) -> str:
        """The text of the file with the change.

        Raises:
            TableError: the text to replace is not there, or there more than once without an index.
        """
        parts = text.split(self.old)
        count = len(parts) - 1
        place = 0 if self.index is None and count == 1 else self.index
        if place is None or not 0 <= place < count:
            wanted = "once" if self.index is None else f"more than {self.index} times"
            raise TableError(
                f"{self.id}: {self.file} holds {self.old!r} {count} times, expected {wanted}; bring "
                f"the mutant up to date"
            )
        left, right = self.old.join(parts[: place + 1]), self.old.join(parts[place + 1 :])
        return left + self.new + right


def read_table(folder: Path = TABLE) -> list[Mutant]:
    """All mutants, in the order of the files.

    Raises:
        TableError: two mutants share a name, or one has no tests.
    """
    mutants = []
    for path in sorted(folder.glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        for fields in document["mutant"]:
            tests = fields.pop("tests", None) or document.get("nearest", {}).get(fields["file"])
            if not tests:
                raise TableError(f"{fields['id']}: no tests; name them, or those of {fields['file']}")
            mutants.append(Mutant(**fields, tests=tuple(tests)))
    repeated = [name for name, count in Counter(mutant.id for mutant in mutants).items() if count > 1]
    if repeated:
        raise TableError(f"mutants share a name: {', '.join(repeated)}")
    return mutants


def complaints(mutants: Iterable[Mutant], root: Path = ROOT) -> list[str]:
    """What does not fit the tree: texts that moved, changes of nothing, tests that do not exist."""
    found = []
    for mutant in mutants:
        path = root / mutant.file
        try:
            if not path.is_file():
                raise TableError(f"{mutant.id}: there is no file {mutant.file}")
            if mutant.applied_to(path.read_text(encoding="utf-8")) == path.read_text(encoding="utf-8"):
                raise TableError(f"{mutant.id}: it changes nothing")
        except TableError as error:
            found.append(str(error))
        for test in mutant.tests:
            file, *names = re.sub(r"\[.*\]$", "", test).split("::")
            here = root / file
            if not here.is_file() or any(f"def {name}(" not in here.read_text("utf-8") for name in names):
                found.append(f"{mutant.id}: there is no test {test}")
    return found


class Copy:
    """A copy of the tree, in which one mutant at a time is applied and tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: Any = None
        self.is_stopped = False
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
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


def run_pytest(folder: Path, output: Path, tests: Sequence[str]) -> None:
    """In a process of its own: pytest on a copy of the tree; ends with its exit code."""
    os.setsid()
    stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(stream, standard)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder)
    import pytest

    code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
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
        self.limits: dict[tuple[str, ...], float] = {}
        self.lock = Lock()

    def limit(self, copy: Copy, tests: tuple[str, ...]) -> float:
        """Seconds a mutant may take: 20 and three times what its tests take without it.

        Raises:
            TableError: they fail without it, or there are none.
        """
        with self.lock:
            if tests not in self.limits:
                start = time.monotonic()
                code, output = copy.test(tests, 600)
                if code != 0:
                    raise TableError(f"{' '.join(tests)} do not pass without a mutant:\n{output[-3000:]}")
                self.limits[tests] = 20 + 3 * (time.monotonic() - start)
            return self.limits[tests]

    def run(self, mutant: Mutant) -> dict[str, Any]:
        """The result of one mutant.

        Raises:
            TableError: as ``limit``, and where pytest itself fails.
        """
        copy = self.copies.get()
        try:
            limit = self.limit(copy, mutant.tests)
            start = time.monotonic()
            code, output = copy.test_mutant(mutant, limit)
            seconds = round(time.monotonic() - start, 1)
        finally:
            self.copies.put(copy)
        if code not in (None, 0, TESTS_FAILED, INTERRUPTED) and code > 0:  # type: ignore[operator]
            raise TableError(f"{mutant.id}: pytest ended with exit code {code}:\n{output[-3000:]}")
        if self.say:
            print(output)
        result = "timeout" if code is None else "survived" if code == 0 else "killed"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        by = failed[1] if failed and result == "killed" else ""
        record = {"id": mutant.id, "file": mutant.file, "result": result, "by": by, "seconds": seconds}
        with self.lock, self.results.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        return record


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
    rooms: dict[str, Counter[str]] = {}
    for mutant in mutants:
        room = mutant.file.removeprefix("spectheory/").rpartition("/")[0] or "spectheory"
        rooms.setdefault(room, Counter())[results.get(mutant.id, {}).get("result", "not run")] += 1
    total = sum(rooms.values(), Counter())
    lines = ["| folder | mutants | killed | of them by time limit | survived |", "|---|---|---|---|---|"]
    for room, counts in [*sorted(rooms.items()), ("**all**", total)]:
        killed = counts["killed"] + counts["timeout"]
        lines.append(f"| {room} | {counts.total()} | {killed} | {counts['timeout']} | {counts['survived']} |")
    if total["not run"]:
        lines += ["", f"{total['not run']} have no result."]
    survivors = [mutant for mutant in mutants if results.get(mutant.id, {}).get("result") == "survived"]
    if survivors:
        lines += ["", "| survivor | change | why no test can tell |", "|---|---|---|"]
    for mutant in survivors:
        change = " → ".join(" ".join(text.split()) or "(nothing)" for text in (mutant.old, mutant.new))
        why = " ".join((mutant.equivalent or "**not argued**").split())
        lines.append(f"| {mutant.id} | `{change.replace('|', chr(92) + '|')}` | {why} |")
    return "\n".join(lines) + "\n"


def check(mutants: Sequence[Mutant], jobs: int, results: Path, say: bool = False) -> None:
    """Run mutants, with one line of progress each on stderr.

    Raises:
        TableError: as ``Check``.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies = [Copy(Path(folder) / str(number)) for number in range(min(jobs, len(mutants)))]
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
        mutants = read_table()
        if wrong := complaints(mutants):
            raise TableError("\n".join(wrong))
        if arguments.list:
            for mutant in mutants:
                print(mutant.id, mutant.file, "(argued equivalent)" if mutant.equivalent else "")
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

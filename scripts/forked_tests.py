"""Tests of a mutant without a new interpreter: a process has collected the tests, and its forks run them.

In a fork the functions of the package get the code of the mutant before its tests run.  What was computed
while modules were imported stays as it was.  So a mutant that only changes that survives here; a killed one
is killed anywhere.
"""

import ast
import gc
import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

PASSED, FAILED, NOT_APPLIED = 0, 1, 7
"""Exit codes of a fork: all tests pass, one fails, the code of a loaded function cannot be exchanged."""
Change = tuple[str, str, ast.Module]
"""A module, its source, and the syntax tree of the mutant."""
SECONDS = 120
"""Of processor time that a fork may take; five times as many on the clock."""


class Forks:
    """A plugin of pytest: instead of the tests it runs forks, one for each mutant that it is sent.

    Args:
        connection: receives (change or ``None``, tests) and sends (exit code or ``None``: out of time, the
            test that failed); ``None`` ends it.  First it sends ``None``: the tests are collected.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.failed: int | None = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer until there is nothing left to do."""
        gc.collect()
        gc.freeze()
        self.connection.send(None)
        while (request := self.connection.recv()) is not None:
            self.connection.send(self._forked(session, *request))
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure ends the fork."""
        if report.failed and self.failed is not None:
            os.write(self.failed, report.nodeid.encode())
            os._exit(FAILED)

    def _forked(
        self, session: pytest.Session, change: Change | None, tests: Sequence[str]
    ) -> tuple[int | None, str]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            self.failed = writing
            code = FAILED
            with suppress(BaseException):
                code = self._run(session, change, tests)
            os._exit(code)
        os.close(writing)
        status = _wait(child, 5 * SECONDS)
        failed = os.read(reading, 10_000).decode()
        os.close(reading)
        return status, failed

    def _run(self, session: pytest.Session, change: Change | None, tests: Sequence[str]) -> int:
        if change is not None and not exchange_code(*change):
            return NOT_APPLIED
        items = [item for test in tests for item in session.items if _is_of(item.nodeid, test)]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return PASSED


def exchange_code(module: str, source: str, tree: ast.Module) -> bool:
    """Give the loaded functions of a module their code in another tree; false where it does not fit.

    It does not fit where a default, a closure or nothing changes, where no such function is loaded, and where
    numba may have compiled it.
    """
    file = str(importlib.import_module(module).__file__)
    old = dict(_codes(compile(source, file, "exec", dont_inherit=True)))
    new = dict(_codes(compile(tree, file, "exec", dont_inherit=True)))
    changed = {
        place: code for place, code in new.items() if old.get(place) != code and place[0] != "<module>"
    }
    if any(place not in old or old[place].co_freevars != new[place].co_freevars for place in changed):
        return False
    gc.unfreeze()
    functions = [
        (function, changed[place])
        for function in gc.get_objects()
        if type(function) is FunctionType and function.__code__.co_filename == file
        if (place := _place(function.__code__)) in changed
    ]
    gc.freeze()
    if any(hasattr(function.__globals__.get(function.__name__), "py_func") for function, _ in functions):
        return False
    for function, code in functions:
        function.__code__ = code
    return bool(functions)


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    yield _place(code), code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _is_of(item: str, test: str) -> bool:
    return item == test or item.startswith((f"{test}::", f"{test}["))


def _wait(child: int, limit: float) -> int | None:
    """The exit code of a child; ``None`` where it is killed for its time."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what its tests started
            code = os.waitstatus_to_exitcode(status)
            return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def serve(folder: Path, output: Path, tests: Sequence[str], connection: Any) -> None:
    """In a process of its own: collect the tests on a copy of the tree, and answer."""
    os.setsid()
    stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(stream, standard)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder)
    options = ["-q", "-p", "no:cacheprovider", "-m", "not deep"]
    os._exit(int(pytest.main([*options, *dict.fromkeys(tests)], plugins=[Forks(connection)])))

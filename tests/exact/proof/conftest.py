"""Processes that share a walk, in one."""

from typing import Any

import pytest

from spectheory.exact.proof import shared_walk


class Here:
    """A pool that does everything in this process, one part at a time."""

    def __init__(self, jobs: int, context: Any, begin: Any, arguments: Any) -> None:
        begin(*arguments)

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def submit(self, function: Any, *arguments: Any) -> Any:
        future: Any = shared_walk.Future()
        future.set_result(function(*arguments))
        return future


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_walk, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(shared_walk, "SECONDS", 0.0)

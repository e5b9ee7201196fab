"""How simulate and decode end when they are stopped or the disk is full, and what is printed by then."""

import itertools
import json
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_support import one_call, run_error, run_json
from deep import first_is_quick
from spectheory.command_line import model_commands
from spectheory.command_line.main import main

STOPS = first_is_quick(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Background jobs ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stop_at(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, call: int, stop: signal.Signals) -> None:
    """Raise a signal in a call of a function, the calls numbered from 0."""
    function, calls = getattr(module, name), itertools.count()

    def stopped(*arguments: Any, **settings: Any) -> Any:
        if next(calls) == call:
            signal.raise_signal(stop)
        return function(*arguments, **settings)

    monkeypatch.setattr(module, name, stopped)


@STOPS
def test_simulate_interrupted(
    capsys: pytest.CaptureFixture[str],
    tiny_models: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: signal.Signals,
    code: int,
) -> None:
    """A signal at the second prompt: what is finished is printed, "interrupted" is true, a line on stderr."""
    from spectheory.models import drafting

    stop_at(monkeypatch, drafting, "_score", 2, stop)
    checkpoint = tmp_path / "checkpoint.jsonl"
    arguments = one_call(tiny_models, "--batch-size", "1")
    assert main([*arguments, "--checkpoint", str(checkpoint), "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("error: interrupted; the estimates rest on the ")
    assert captured.err.endswith(f"draws that were finished, which are kept in {checkpoint}\n")
    assert captured.err.count("\n") == 1
    assert json.loads(captured.out)["interrupted"] is True
    assert checkpoint.read_bytes().count(b"\n") == 2  # what was asked for, and one batch of three
    resumed = run_json(capsys, *arguments, "--checkpoint", str(checkpoint))
    assert resumed == run_json(capsys, *arguments)


@STOPS
def test_texts_that_are_interrupted(
    capsys: pytest.CaptureFixture[str],
    tiny_models: list[str],
    monkeypatch: pytest.MonkeyPatch,
    stop: signal.Signals,
    code: int,
) -> None:
    """The texts of finished batches are printed: the first of three."""
    from spectheory.decoding import decoded_texts

    arguments = ["decode", *tiny_models, "--draft-length", "2", "-n", "3"]
    monkeypatch.setattr(model_commands, "BATCH_SIZE", 1)
    whole = run_json(capsys, *arguments)
    stop_at(monkeypatch, decoded_texts, "prefill", 1, stop)
    assert main([*arguments, "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == "error: interrupted; 1 of 3 texts were finished\n"
    assert json.loads(captured.out)["texts"] == whole["texts"][:1]


def test_what_is_kept_is_said_with_the_error(
    capsys: pytest.CaptureFixture[str],
    tiny_models: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from spectheory.models import drafting

    score, calls = drafting._score, itertools.count()

    def fail(*arguments: Any) -> Any:
        if next(calls) == 2:
            raise MemoryError
        return score(*arguments)

    monkeypatch.setattr(drafting, "_score", fail)
    file = str(tmp_path / "checkpoint.jsonl")
    arguments = one_call(tiny_models, "--batch-size", "1")
    error = run_error(capsys, *arguments, "--checkpoint", file)
    assert error.startswith("error: memory ran out while drafting for 1 prompts at a time; use fewer drafts")
    assert error.endswith(f"; 1 finished lines are kept in {file}\n")
    assert run_json(capsys, *arguments, "--checkpoint", file) == run_json(capsys, *arguments)


def test_a_full_disk(capsys: pytest.CaptureFixture[str], tiny_models: list[str], tmp_path: Path) -> None:
    """The file is named, and how much of the run it holds; it goes on from there when there is room."""
    file = tmp_path / "checkpoint.jsonl"
    arguments = one_call(tiny_models, "--batch-size", "1", "--checkpoint", str(file))
    whole = run_json(capsys, *arguments)
    size, limits = file.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    file.unlink()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 10, limits[1]))
        error = run_error(capsys, *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error == f"error: {file}: File too large; 2 finished lines are kept in {file}\n"
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out).items() >= whole.items()

"""Runs that are stopped, and the files they go on from: every other file is refused."""

import os
from pathlib import Path

import numpy as np
import pytest

from deep import first_is_quick
from montecarlo_support import run
from spectheory.foundation.errors import InvalidInputError, Notice
from spectheory.models import LanguageModelPair
from spectheory.simulation.estimates import Tally
from spectheory.simulation.finished_lines import open_lines


@pytest.fixture(scope="module")
def written(models: LanguageModelPair, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a finished checkpoint: a header and three batches."""
    state = tmp_path_factory.mktemp("written") / "state.jsonl"
    run(models, state)
    lines = state.read_bytes().splitlines(keepends=True)
    assert len(lines) == 4
    return lines


def test_an_exception_keeps_what_is_finished_and_says_so(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"

    def fail(done: int, total: int) -> None:
        if done == 7:
            raise InvalidInputError("why")

    with pytest.raises(InvalidInputError, match="why") as caught:
        run(models, state, progress=fail)
    assert caught.value.__notes__ == [f"2 finished lines are kept in {state}"]
    assert state.read_bytes().count(b"\n") == 3
    with pytest.raises(InvalidInputError) as caught:  # the partner: without a file nothing is kept
        run(models, progress=fail)
    assert not hasattr(caught.value, "__notes__")
    assert run(models, state) == run(models)


@first_is_quick("kept", [0.0, 0.01, 0.5, 0.99], quick=4)
@first_is_quick("whole", [0, 1, 3])
def test_a_torn_last_line_is_cut_off(
    models: LanguageModelPair, written: list[bytes], tmp_path: Path, whole: int, kept: float
) -> None:
    """Killed in the middle of a write, of the header too: the line is dropped, said, and written again."""
    state = tmp_path / "state.jsonl"
    torn = written[whole][: int(kept * len(written[whole]))]
    state.write_bytes(b"".join(written[:whole]) + torn)
    if torn and whole:
        with pytest.warns(Notice, match="last line of the checkpoint .* was not finished and is dropped"):
            again = run(models, state)
    else:
        again = run(models, state)
    assert again == run(models)
    assert state.read_bytes() == b"".join(written)


@pytest.mark.parametrize("line", [b"\n", b"\xff\xfe\n", b"\0" * 99 + b"\n", b'{"token": \n'])
def test_a_damaged_line_is_named(
    models: LanguageModelPair, written: list[bytes], tmp_path: Path, line: bytes
) -> None:
    """And the file is left as it is; undamaged, it is taken."""
    state = tmp_path / "state.jsonl"
    content = b"".join([*written[:2], line, written[3]])
    state.write_bytes(content)
    with pytest.raises(
        InvalidInputError, match=r"^line 3 of the checkpoint .* is damaged \(.*remove it with"
    ):
        run(models, state)
    assert state.read_bytes() == content
    state.write_bytes(b"".join(written))
    run(models, state)


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"not json\n",
        b"[]\n",
        b'{"settings": {}}\n',
        b'{"format": "spectheory-checkpoint/4"}\n',
        b"\x00" * 100,
    ],
)
def test_other_files_are_no_checkpoints(models: LanguageModelPair, tmp_path: Path, content: bytes) -> None:
    state = tmp_path / "state.jsonl"
    state.write_bytes(content)
    with pytest.raises(InvalidInputError, match="is not a checkpoint: its first line"):
        run(models, state)
    assert state.read_bytes() == content


def test_places_that_cannot_be_written_to(models: LanguageModelPair, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="lies in a folder that does not exist"):
        run(models, tmp_path / "missing" / "state.jsonl")
    with pytest.raises(InvalidInputError, match="is a folder"):
        run(models, tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InvalidInputError, match=r"cannot use the checkpoint .*loop: Too many levels"):
        run(models, tmp_path / "loop")


@pytest.mark.parametrize("name", ["state.jsonl", "link.jsonl"])
def test_two_runs_on_one_file_are_refused(models: LanguageModelPair, tmp_path: Path, name: str) -> None:
    """By whatever name it is called."""
    state = tmp_path / "state.jsonl"
    (tmp_path / "link.jsonl").symlink_to(state)
    refused = []

    def second(done: int, total: int) -> None:
        if done == 4:
            with pytest.raises(InvalidInputError, match="is in use by another process") as caught:
                run(models, tmp_path / name)
            refused.append(caught)

    first = run(models, state, progress=second)
    assert len(refused) == 1
    assert run(models, state) == first


@pytest.mark.deep
def test_a_stopped_run_goes_on_from_its_checkpoint(models: LanguageModelPair, tmp_path: Path) -> None:
    """Ctrl-C in the second prompt: the first is kept, and going on gives what an unbroken run gives."""
    whole = run(models)

    def stop(done: int, total: int) -> None:
        assert total == 9
        if done == 4:
            raise KeyboardInterrupt

    stopped = run(models, tmp_path / "state.jsonl", progress=stop)
    assert stopped.interrupted
    assert stopped.estimates[0].samples == 3
    assert stopped.to_document()["interrupted"] is True
    steps: list[int] = []
    finished = run(models, tmp_path / "state.jsonl", progress=lambda done, total: steps.append(done))
    assert steps[0] == 3  # the finished prompt is not drawn again
    assert finished == whole
    assert stopped != whole


def test_interrupted_before_anything_is_finished(models: LanguageModelPair) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(models, progress=stop)


def test_lines_survive_the_file_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are on disk at once; without a file they are in memory only."""
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: sizes.append(os.fstat(number).st_size))
    tally, state = Tally.zeros(2, 3), tmp_path / "state.jsonl"
    laws = np.array([[[2 / 3, 1 / 3, 0, 0], [0.25] * 4]])
    tally.add(np.array([[4 / 3, 2.5]]), np.array([[0, 3]]), laws)
    with open_lines(state, {"seed": 0}) as first:
        header = state.stat().st_size
        first.add(tally.to_document())
        assert sizes == [header, state.stat().st_size]
    with open_lines(state, {"seed": 0}) as again:
        (line,) = again.lines
        for name, sums in vars(tally).items():
            np.testing.assert_array_equal(getattr(Tally.from_document(line), name), sums)
    with open_lines(None, {}) as unwritten:
        unwritten.add("a line")
        assert unwritten.lines == ["a line"]


def test_numbers_of_numpy_are_settings_too(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    numbers = {"drafts": 2, "draft_length": 3, "samples": 3, "batch_size": 1, "seed": 4}
    as_numpy = {name: np.int64(value) for name, value in numbers.items()}
    first = run(models, state, confidence=np.float32(0.5), **as_numpy)
    assert run(models, state, confidence=0.5, **numbers).estimates == first.estimates

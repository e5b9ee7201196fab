"""Runs that are stopped, and the files they go on from: every other file is refused."""

import json
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from montecarlo_support import run
from spectheory.foundation.errors import InvalidInputError, Notice
from spectheory.models import LanguageModelPair
from spectheory.simulation.checkpoint import Checkpoint, open_checkpoint
from spectheory.simulation.estimates import Tally


@pytest.fixture(scope="module")
def written(models: LanguageModelPair, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a finished checkpoint: a header and three batches."""
    state = tmp_path_factory.mktemp("written") / "state.jsonl"
    run(models, state)
    lines = state.read_bytes().splitlines(keepends=True)
    assert len(lines) == 4
    return lines


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


def test_an_exception_keeps_what_is_finished_and_says_so(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"

    def fail(done: int, total: int) -> None:
        if done == 7:
            raise InvalidInputError("why")

    with pytest.raises(InvalidInputError, match="why") as caught:
        run(models, state, progress=fail)
    assert caught.value.__notes__ == ["2 of 3 batches are finished and kept in the checkpoint"]
    assert state.read_bytes().count(b"\n") == 3
    with pytest.raises(InvalidInputError) as caught:  # the partner: without a file nothing is kept
        run(models, progress=fail)
    assert not hasattr(caught.value, "__notes__")
    assert run(models, state) == run(models)


def test_the_order_of_the_lines_is_of_no_account(
    models: LanguageModelPair, written: list[bytes], tmp_path: Path
) -> None:
    state = tmp_path / "state.jsonl"
    state.write_bytes(b"".join([written[0], written[3], written[1]]))
    assert run(models, state).to_document() == run(models).to_document()


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("whole", [0, 1, 3])
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


def edited(line: bytes, change: Any, with_checksum: str | None = None) -> bytes:
    """A line with its content changed; with the chain given, under a checksum that fits."""
    record = json.loads(line)
    change(record["content"])
    if with_checksum is not None:
        text = with_checksum + json.dumps(record["content"], sort_keys=True)
        record["sha256"] = sha256(text.encode()).hexdigest()
    return json.dumps(record).encode() + b"\n"


def block(content: dict[str, Any]) -> dict[str, Any]:
    return content["tallies"]["block"]


DAMAGES: list[tuple[Any, str]] = [
    (lambda content: block(content)["length_probs"][0].pop(), "length_probs is not an array"),
    (lambda content: block(content)["expected"].__setitem__(0, float("nan")), "expected is not an array"),
    (
        lambda content: content["tallies"].update(spectr=content["tallies"].pop("block")),
        "its verifiers are not",
    ),
    (lambda content: content.update(batch=3), "batch 3 is not of this run"),
    (lambda content: content.update(batch=0), "stands there twice"),
    (lambda content: block(content).update(bonus=[1.0]), "fields that are not known"),
    (lambda content: content.pop("tallies"), "tallies"),
    (lambda content: content.update(batch=[0]), "is not of this run"),
    (lambda content: block(content)["expected"].__setitem__(0, 10**400), "expected is not an array"),
    (lambda content: block(content)["expected"].__setitem__(0, 100.0), "expected is not the mean"),
    (lambda content: block(content).update(expected=["4", "5"]), "expected is not an array"),
    (lambda content: block(content)["counted"].__setitem__(0, 1.0), "counted is not the sum"),
    (lambda content: block(content)["counted_squared"].__setitem__(0, 1.0), "counted_squared is not the sum"),
    (lambda content: block(content)["counted_lengths"][0].__setitem__(0, -1), "not whole numbers"),
    (lambda content: block(content)["length_probs"][0].__setitem__(0, 50.0), "do not sum to"),
    (lambda content: block(content)["length_probs"][0].__setitem__(0, -50.0), "are negative"),
]
"""A change, and the words that name it."""


@pytest.mark.parametrize(("change", "words"), DAMAGES)
def test_a_damaged_line_is_named(
    models: LanguageModelPair, written: list[bytes], tmp_path: Path, change: Any, words: str
) -> None:
    """A wrong checksum is refused; so is what no run of these settings writes, under a right one."""
    state = tmp_path / "state.jsonl"
    chain = json.loads(written[0])["sha256"]
    for damaged, expected in (
        (edited(written[2], change), "its checksum is wrong"),
        (edited(written[2], change, chain), words),
    ):
        content = b"".join([written[0], written[1], damaged, written[3]])
        state.write_bytes(content)
        with pytest.raises(InvalidInputError, match=f"^line 3 of the checkpoint .* is damaged .*{expected}"):
            run(models, state)
        assert state.read_bytes() == content
    state.write_bytes(b"".join(written))  # the partner: undamaged, it is taken
    run(models, state)


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", b"\0" * 99 + b"\n", b"[" * 10**5 + b"\n"]
)
def test_a_line_of_something_else_is_named(
    models: LanguageModelPair, written: list[bytes], tmp_path: Path, line: bytes
) -> None:
    state = tmp_path / "state.jsonl"
    state.write_bytes(b"".join([*written[:2], line, written[2]]))
    with pytest.raises(InvalidInputError, match=r"^line 3 of the checkpoint .* is damaged") as caught:
        run(models, state)
    assert "\n" not in str(caught.value)
    assert "utf-32" not in str(caught.value)


def test_a_line_of_another_run_is_refused(
    models: LanguageModelPair, written: list[bytes], tmp_path: Path
) -> None:
    other, state = tmp_path / "other.jsonl", tmp_path / "state.jsonl"
    run(models, other, seed=5)
    state.write_bytes(b"".join([*written[:2], other.read_bytes().splitlines(keepends=True)[2]]))
    with pytest.raises(InvalidInputError, match=r"line 3 .* is damaged \(its checksum is wrong"):
        run(models, state)


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"not json\n",
        b"[]\n",
        b'{"settings": {}}\n',
        b'{"sha256": "0", "content": {"format": "spectheory-checkpoint/4", "identity": {}}}\n',
        b'{"sha256": "0", "content": []}\n',
        b"\x00" * 100,
        b"[" * 10**5,
    ],
)
def test_other_files_are_no_checkpoints(models: LanguageModelPair, tmp_path: Path, content: bytes) -> None:
    state = tmp_path / "state.jsonl"
    state.write_bytes(content)
    with pytest.raises(InvalidInputError, match="is not a checkpoint of a simulation"):
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


@pytest.fixture
def synchronised(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is forced to the disk: folders, and files with the number of bytes that they hold by then."""
    found: list[Any] = []

    def fsync(number: int) -> None:
        status = os.fstat(number)
        found.append("folder" if stat.S_ISDIR(status.st_mode) else status.st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_a_checkpoint_holds_what_it_was_given(tmp_path: Path, synchronised: list[Any]) -> None:
    """Sums survive the file bit by bit and are on disk at once; without a file they are in memory only."""
    tally = Tally.zeros(2, 3)
    laws = np.array([[[2 / 3, 1 / 3, 0, 0], [0.25] * 4]])
    tally.add(np.array([[4 / 3, 2.5]]), np.array([[0, 3]]), laws)
    run_of_two = ({"seed": 0}, ["token"], [2, 2], 3)
    with open_checkpoint(tmp_path / "state.jsonl", *run_of_two) as first:
        first.add(1, {"token": tally})
        assert synchronised == ["folder", (tmp_path / "state.jsonl").stat().st_size]
    with open_checkpoint(tmp_path / "state.jsonl", *run_of_two) as again:
        assert again.tallies.keys() == {1}
        for name, sums in vars(tally).items():
            np.testing.assert_array_equal(getattr(again.tallies[1]["token"], name), sums)
    unwritten = Checkpoint()
    unwritten.add(0, {"token": tally})
    assert unwritten.tallies[0]["token"] is tally


def test_numbers_of_numpy_are_settings_too(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    numbers = {"drafts": 2, "draft_length": 3, "samples": 3, "batch_size": 1, "seed": 4}
    as_numpy = {name: np.int64(value) for name, value in numbers.items()}
    first = run(models, state, confidence=np.float32(0.5), **as_numpy)
    assert run(models, state, confidence=0.5, **numbers).estimates == first.estimates

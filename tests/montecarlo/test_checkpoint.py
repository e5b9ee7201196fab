"""Runs that are stopped, and the files they go on from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from montecarlo_support import run
from spectheory.errors import InvalidInputError
from spectheory.models import LanguageModelPair
from spectheory.montecarlo.checkpoint import Checkpoint
from spectheory.montecarlo.estimates import Tally


def test_a_stopped_run_goes_on_from_its_checkpoint(models: LanguageModelPair, tmp_path: Path) -> None:
    """Ctrl-C in the second prompt: the first is kept, and going on gives what an unbroken run gives."""
    whole = run(models)

    def stop(done: int, total: int) -> None:
        assert total == 9
        if done == 4:
            raise KeyboardInterrupt

    stopped = run(models, tmp_path / "state.json", progress=stop)
    assert stopped.interrupted
    assert stopped.estimates[0].samples == 3
    assert stopped.to_document()["interrupted"] is True
    steps: list[int] = []
    finished = run(models, tmp_path / "state.json", progress=lambda done, total: steps.append(done))
    assert steps[0] == 3  # the finished prompt is not drawn again
    assert finished.estimates == whole.estimates
    assert not finished.interrupted


def test_interrupted_before_anything_is_finished(models: LanguageModelPair) -> None:
    """Nothing to report: the interrupt goes through."""

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(models, progress=stop)


def test_a_checkpoint_of_other_settings_is_refused(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    run(models, state)
    with pytest.raises(InvalidInputError, match=r"other settings \(seed\)"):
        run(models, state, seed=5)
    with pytest.raises(InvalidInputError, match="folder"):
        run(models, tmp_path / "missing" / "state.json")


@pytest.mark.parametrize(
    "content",
    [
        "not json",
        "[]",
        '{"settings": {}}',
        '{"settings": [], "batches": {}}',
        '{"settings": {}, "batches": []}',
        '{"settings": {}, "batches": {"first": {}}}',
        '{"settings": {}, "batches": {"0": {"token": {"sums": [1]}}}}',
    ],
)
def test_other_files_are_no_checkpoints(models: LanguageModelPair, tmp_path: Path, content: str) -> None:
    state = tmp_path / "state.json"
    state.write_text(content)
    with pytest.raises(InvalidInputError, match="is not a checkpoint of a simulation"):
        run(models, state)


def test_a_checkpoint_holds_what_it_was_given(tmp_path: Path) -> None:
    """Sums survive the file bit by bit; without a file they are kept in memory only."""
    tally = Tally.zeros(2, 3)
    tally.add(np.array([[1 / 3, 2.5]]), np.array([[0, 3]]), np.full((1, 2, 4), 0.25))
    written = Checkpoint(tmp_path / "state.json", {"seed": 0})
    written.add(1, {"token": tally})
    again = Checkpoint(tmp_path / "state.json", {"seed": 0}).tallies
    assert again.keys() == {1}
    for name, sums in vars(tally).items():
        np.testing.assert_array_equal(getattr(again[1]["token"], name), sums)
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
    unwritten = Checkpoint(None, {"seed": 0})
    unwritten.add(0, {"token": tally})
    assert unwritten.tallies[0]["token"] is tally


def test_numbers_of_numpy_are_settings_too(models: LanguageModelPair, tmp_path: Path) -> None:
    """A checkpoint written with numpy's whole numbers is gone on from with Python's."""
    state = tmp_path / "state.json"
    numbers = {"num_drafts": 2, "draft_length": 3, "samples": 3, "batch_size": 1, "seed": 4}
    as_numpy = {name: np.int64(value) for name, value in numbers.items()}
    first = run(models, state, confidence=np.float32(0.5), **as_numpy)
    assert run(models, state, confidence=0.5, **numbers).estimates == first.estimates

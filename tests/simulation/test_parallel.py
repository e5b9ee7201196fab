"""One run by one process, by several, by a cluster: the same numbers and the same bytes."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import joblib
import pytest
from joblib.externals import loky

from fresh_interpreter import forks
from later import Later
from models_support import save_pair
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.models import LanguageModelPair
from spectheory.simulation import Simulation, parallel, simulate

dask = Later("dask")
distributed = Later("distributed")

PROMPTS = [f"import module{number}" for number in range(6)]


@pytest.fixture(scope="module")
def workers_are_forks() -> Iterator[None]:
    """Workers of joblib and of dask begin with the libraries, not with their import."""
    forks()
    loky.backend.context.set_start_method("forkserver", force=True)
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield
    loky.get_reusable_executor().shutdown()
    loky.backend.context.set_start_method(None, force=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return save_pair(tmp_path_factory.mktemp("spread"), "llama")


@pytest.fixture(scope="module")
def pair(folders: tuple[Path, Path]) -> LanguageModelPair:
    return LanguageModelPair.load(*folders, device="cpu", weights_now=False)


def run(pair: LanguageModelPair, checkpoint: Path | None, **changes: Any) -> Simulation:
    settings: dict[str, Any] = {
        "drafts": [1, 2], "draft_length": 2, "max_new_tokens": 5, "batch_size": 2, "seed": 3,
    }  # fmt: skip
    names = settings | changes
    return simulate(pair, PROMPTS, ["token", "spectr"], checkpoint=checkpoint, **names)


@pytest.fixture(scope="module")
def whole(pair: LanguageModelPair, tmp_path_factory: pytest.TempPathFactory) -> tuple[Simulation, bytes]:
    file = tmp_path_factory.mktemp("whole") / "whole.jsonl"
    return run(pair, file), file.read_bytes()


@pytest.fixture(scope="module")
def cluster(workers_are_forks: None) -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.mark.usefixtures("workers_are_forks")
def test_two_processes(pair: LanguageModelPair, whole: tuple[Simulation, bytes], tmp_path: Path) -> None:
    """All of it, the rest of a run that was cut off, and one call after each prompt."""
    file, part = tmp_path / "two.jsonl", tmp_path / "part.jsonl"
    steps: list[tuple[int, int]] = []
    assert run(pair, file, jobs=2, progress=lambda *now: steps.append(now)) == whole[0]
    assert file.read_bytes() == whole[1]
    assert steps == [(done, 18) for done in range(2, 19, 2)]
    part.write_bytes(b"".join(whole[1].splitlines(keepends=True)[:2]))
    assert run(pair, part, jobs=2) == whole[0]
    assert part.read_bytes() == whole[1]
    settings: dict[str, Any] = {"max_new_tokens": None, "samples": 2}
    assert run(pair, None, jobs=2, **settings) == run(pair, None, **settings)


def test_a_dask_cluster_of_two_workers(
    pair: LanguageModelPair, whole: tuple[Simulation, bytes], cluster: Any, tmp_path: Path
) -> None:
    """The tasks are done there and not here, whether a run or joblib's configuration names it."""
    assert cluster.scheduler is not None
    address = cluster.scheduler.address
    for name, configured in (("named", nullcontext()), ("dask", joblib.parallel_config(backend="dask"))):
        with configured:
            given = {"cluster": address} if name == "named" else {}
            assert run(pair, tmp_path / name, **given) == whole[0]
        assert (tmp_path / name).read_bytes() == whole[1]
    loaded = cluster.run(lambda: "spectheory.simulation.parallel" in sys.modules)
    assert len(loaded) == 2
    assert any(loaded.values())


def test_a_cluster_whose_worker_dies(
    pair: LanguageModelPair, whole: tuple[Simulation, bytes], cluster: Any, tmp_path: Path
) -> None:
    """Another worker does the task; the file has the bytes of one process."""
    before, killed = cluster.run(os.getpid), list[int]()

    def kill(done: int, total: int) -> None:
        if 0 < done < total and not killed:
            killed.append(next(iter(before.values())))
            os.kill(killed[0], signal.SIGKILL)

    assert cluster.scheduler is not None
    spread = tmp_path / "spread.jsonl"
    assert run(pair, spread, cluster=cluster.scheduler.address, progress=kill) == whole[0]
    assert killed
    assert spread.read_bytes() == whole[1]
    cluster.wait_for_workers(2, timeout=60)
    assert killed[0] not in cluster.run(os.getpid).values()


class NoLaw:
    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        from spectheory import verifiers
        from spectheory.verification.outcome import Outcome

        right = verifiers["block"].outcome(paths, target_rows, draft_rows)
        return Outcome(2 * right.stop_probs, right.correction)


@pytest.mark.usefixtures("workers_are_forks")
def test_what_fails_in_another_process_fails_here(pair: LanguageModelPair) -> None:
    with pytest.raises(InvalidOutcomeError, match="stop probabilities that are not a law"):
        simulate(pair, PROMPTS, [NoLaw()], draft_length=1, max_new_tokens=2, batch_size=2, jobs=2)


TWO_THAT_SLEEP = """
import fcntl, os, signal, sys, time
from pathlib import Path
from spectheory.command_line.main import _signals_as_interrupts
from spectheory.simulation import parallel

class Sleeps:
    threads = None

    def do(self, task, step):
        with (Path(sys.argv[1]) / str(os.getpid())).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(300)

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
with _signals_as_interrupts():
    list(parallel.results(Sleeps(), [1, 2], 2, print))
"""


def is_running(file: Path) -> bool:
    """Whether the worker that made the file still holds its lock, which ends with the process."""
    with file.open() as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        (signal.SIGTERM, 10),
        *(pytest.param(stop, 60, marks=pytest.mark.deep) for stop in (signal.SIGINT, signal.SIGKILL)),
    ],
)
def test_workers_end_with_a_stopped_parent(tmp_path: Path, stop: signal.Signals, seconds: int) -> None:
    """In the middle of tasks of five minutes; before the stop they are there."""
    script = TWO_THAT_SLEEP.replace("sys.argv[1]", repr(str(tmp_path)))
    parent = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while sum(map(is_running, tmp_path.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.2)
    workers = list(tmp_path.iterdir())
    assert len(workers) == 2
    assert all(map(is_running, workers))
    parent.send_signal(stop)
    until = time.monotonic() + seconds
    parent.wait(seconds)
    while any(map(is_running, workers)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not any(map(is_running, workers))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"jobs": "auto"}, "jobs must be a whole number"),
    ],
)
def test_what_is_refused(pair: LanguageModelPair, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        run(pair, None, **changes)


def test_a_cluster_that_does_not_answer_is_named(
    pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "SCHEDULER_SECONDS", 0.5)
    with pytest.raises(InvalidInputError, match=r"no dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        run(pair, None, cluster="tcp://127.0.0.1:9")

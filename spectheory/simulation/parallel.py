"""Divide a run into independent tasks, and run them in one process or in several.

A task runs some verifiers on one batch of strata.  The processes are started by joblib, or by the backend
that ``joblib.parallel_config`` names.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from spectheory.foundation.errors import InsufficientMemoryError, InvalidInputError
from spectheory.foundation.extras import installed
from spectheory.simulation.estimates import Tally
from spectheory.simulation.judging import Source, Stream
from spectheory.verification.user import UserVerifier


class Task(NamedTuple):
    """Names of the streams to run on one batch."""

    batch: int
    streams: tuple[str, ...]


@dataclass(eq=False)
class Work:
    """Everything that a task needs.  The numbers of a task depend only on seed, batch and streams.

    Attributes:
        threads: number of CPU threads in every process; None does not change it.
    """

    source: Source
    streams: dict[str, Stream]
    threads: int | None = None

    def tasks(self, batches: Sequence[int]) -> list[Task]:
        """List the tasks of some batches: one per batch if the verifiers share draws, else one per stream."""
        names = tuple(self.streams)
        groups = [names] if self.source.shares_draws else [(name,) for name in names]
        return [Task(batch, streams) for batch in batches for streams in groups]

    def draws(self, task: Task) -> int:
        """Count the draws of a task.  A draw is K paths, or a text, after one prompt."""
        source = self.source
        of_a_stratum = source.settings.samples_per_prompt * source.draws_per_sample
        return of_a_stratum * source.strata_per_batch[task.batch]

    def check_users_own(self) -> None:
        """Check on the first batch that users' verifiers are functions of their inputs."""
        for stream in self.streams.values():
            if isinstance(stream.verifier, UserVerifier):
                with _memory(self.source.strata_per_batch[0]):
                    self.source.check_users_own(stream.verifier, stream.num_drafts)

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """Compute the sums of every stream of a task.

        Args:
            step: called with the number of new draws during the task.
        """
        streams = {name: self.streams[name] for name in task.streams}
        with _memory(self.source.strata_per_batch[task.batch]):
            return self.source.tally(streams, task.batch, step)


@contextmanager
def _memory(strata: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        out_of_memory = isinstance(error, MemoryError)
        if "torch" in sys.modules:
            from spectheory.models.device import is_out_of_memory

            out_of_memory = is_out_of_memory(error)
        if not out_of_memory:
            raise
        advice = (
            f"try batch_size {strata // 2} (--batch-size {strata // 2})"
            if strata > 1
            else "use fewer drafts, a shorter draft, or fewer prompt tokens (--max-prompt-tokens)"
        )
        raise InsufficientMemoryError(
            f"memory ran out while drafting for {strata} prompts at a time; {advice}"
        ) from error


class TaskWork(Protocol):
    """Interface of an object that runs one task.

    Implemented by ``Work`` (single calls) and ``measuring.Texts`` (decoding of whole texts).
    """

    threads: int | None

    def draws(self, task: Task) -> int: ...

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]: ...


SCHEDULER_SECONDS = 10.0
"""Seconds to wait for a dask scheduler."""


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Run the tasks of runs with ``jobs=None`` on the workers of a dask cluster.

    If a worker dies, another one repeats its task.

    Args:
        address: address of the scheduler, such as ``"tcp://10.0.0.1:8786"``.  None changes nothing.

    Raises:
        InvalidInputError: no scheduler answers there.
        MissingDependencyError: the extra ``[cluster]`` is not installed.
    """
    if address is None:
        yield
        return
    with installed():
        from distributed import Client
        from joblib import parallel_config
    try:
        client = Client(address, timeout=SCHEDULER_SECONDS, set_as_default=True)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"no dask scheduler answers at {address!r} ({error}); start one with: dask scheduler"
        ) from None
    with client, parallel_config(backend="dask"):
        yield


def results(
    work: TaskWork, tasks: Sequence[Task], jobs: int | None, step: Callable[[int], None]
) -> Generator[dict[str, Tally]]:
    """Run the tasks, and yield their sums in the order of the tasks.

    Args:
        jobs: number of processes.  None uses the active configuration of joblib, by default 1.
        step: called with the number of new draws.
    """
    # If joblib was not imported, nobody has configured it.
    if jobs == 1 or len(tasks) < 2 or (jobs is None and "joblib" not in sys.modules):
        for task in tasks:
            yield work.do(task, step)
        return
    with installed():
        import cloudpickle
        from joblib import Parallel, delayed, effective_n_jobs
    jobs = min(jobs, len(tasks)) if jobs is not None else None
    if effective_n_jobs(jobs) == 1:
        yield from results(work, tasks, 1, step)
        return
    packed = cloudpickle.dumps(work)
    found = Parallel(n_jobs=jobs, return_as="generator")(delayed(_do)(packed, task) for task in tasks)
    try:
        for task, tallies in zip(tasks, found, strict=True):
            step(work.draws(task))
            yield tallies
    finally:
        found.close()  # start no further task


def _do(packed: bytes, task: Task) -> dict[str, Tally]:
    """Run one task in another process, which keeps its loaded models for the next task."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
        _end_with_parent()
    from spectheory.models.device import cpu_threads

    work = _unpacked(packed)
    with nullcontext() if work.threads is None else cpu_threads(work.threads):
        return work.do(task, lambda draws: None)


@lru_cache(maxsize=1)
def _end_with_parent() -> None:
    """End this process when its parent process dies."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> TaskWork:
    import cloudpickle

    from spectheory.models import quiet_loading

    quiet_loading()
    return cloudpickle.loads(packed)

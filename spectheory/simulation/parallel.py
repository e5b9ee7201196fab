"""The work of a run, in tasks that do not depend on one another, in one process or in many.

A task is some verifiers over a batch of strata.  The processes are joblib's here, or whatever
``joblib.parallel_config`` names.
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
    """Some streams over one batch."""

    batch: int
    streams: tuple[str, ...]


@dataclass(eq=False)
class Work:
    """All that a task needs; a task's numbers depend on (seed, batch, stream) alone.

    Attributes:
        threads: of the CPU, in every process; None leaves them as they are.
    """

    source: Source
    streams: dict[str, Stream]
    threads: int | None = None

    def tasks(self, batches: Sequence[int]) -> list[Task]:
        """Batch by batch.  Verifiers that judge the same drafts are one task, texts are one per stream."""
        names = tuple(self.streams)
        groups = [names] if self.source.shares_draws else [(name,) for name in names]
        return [Task(batch, streams) for batch in batches for streams in groups]

    def draws(self, task: Task) -> int:
        """How many draws a task makes: K paths after one prompt, or a text behind it."""
        source = self.source
        of_a_stratum = source.settings.samples_per_prompt * source.draws_per_sample
        return of_a_stratum * source.strata_per_batch[task.batch]

    def check_users_own(self) -> None:
        """Refuse a user's verifier that is not a function of its inputs, on the first batch."""
        for stream in self.streams.values():
            if isinstance(stream.verifier, UserVerifier):
                with _memory(self.source.strata_per_batch[0]):
                    self.source.check_users_own(stream.verifier, stream.num_drafts)

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """The sums of every stream of a task.

        Args:
            step: called with the draws that were made, as soon as they are.
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
    """All that tasks need, in any process."""

    threads: int | None

    def draws(self, task: Task) -> int: ...

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]: ...


SCHEDULER_SECONDS = 10.0
"""How long a scheduler is given to answer."""


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Have the workers of a dask cluster do the tasks of runs with ``jobs=None``; None: nothing changes.

    A task whose worker died is done by another one.

    Args:
        address: of the scheduler, as ``"tcp://10.0.0.1:8786"``.

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
    """The sums of all tasks in their order, whatever process does them and in whatever order they end.

    Args:
        jobs: the number of processes; None: as many as a surrounding configuration of joblib says, or one.
        step: called with the draws that were made.
    """
    # Where joblib was not imported, it is not configured either.
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
        found.close()  # no further task is begun


def _do(packed: bytes, task: Task) -> dict[str, Tally]:
    """One task in another process, which keeps the models that it has loaded."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has the results
        _end_with_parent()
    from spectheory.models.device import cpu_threads

    work = _unpacked(packed)
    with nullcontext() if work.threads is None else cpu_threads(work.threads):
        return work.do(task, lambda draws: None)


@lru_cache(maxsize=1)
def _end_with_parent() -> None:
    """End this process once the process that collects the results was killed."""
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

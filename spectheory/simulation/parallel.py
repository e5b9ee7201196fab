"""Tasks in one process or in many: joblib's processes here, or whatever ``joblib.parallel_config`` names."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from math import ceil
from statistics import fmean
from typing import Protocol

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.extras import installed
from spectheory.simulation.estimates import Tally
from spectheory.simulation.settings import Jobs
from spectheory.simulation.work import Task


class TaskWork(Protocol):
    """All that tasks need, in any process."""

    threads: int | None

    def draws(self, task: Task) -> int: ...

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]: ...


def processes(jobs: Jobs, threads: int | None) -> int | None:
    """The number that joblib is asked for.

    Args:
        jobs: as in ``SimulationSettings``.
        threads: of the CPU, in each process; None: the models are on another device.
    """
    if not isinstance(jobs, str):
        return jobs
    if threads is None:
        return 1
    with installed():
        from joblib import cpu_count
    return max(cpu_count() // threads, 1)


SCHEDULER_SECONDS = 10.0
"""How long a scheduler is given to answer."""
START_SECONDS = 6.0
"""How long a process takes until it begins: imports, compiled loops, weights."""


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
    work: TaskWork, tasks: Sequence[Task], jobs: Jobs, step: Callable[[int], None]
) -> Generator[dict[str, Tally]]:
    """The sums of all tasks in their order, whatever process does them and in whatever order they end.

    Args:
        jobs: as in ``SimulationSettings``; with "auto" this process begins alone, and others are started as
            soon as what is left, at the speed so far, pays for their start.
        step: called with the draws that were made.
    """
    if not isinstance(jobs, str):
        yield from _spread(work, tasks, jobs, step)
        return
    count = processes(jobs, work.threads) or 1
    seconds: list[float] = []
    while (done := len(seconds)) < len(tasks) and not _pays(count, seconds, len(tasks) - done):
        begun = time.monotonic()
        found = work.do(tasks[done], step)
        seconds.append(time.monotonic() - begun)
        yield found
    yield from _spread(work, tasks[done:], count, step)


def _pays(count: int, seconds: Sequence[float], left: int) -> bool:
    """Whether so many processes are done sooner with the tasks that are left, by the seconds of those done.

    In the first one loops may be compiled, and caches are filled.
    """
    if not seconds:
        return False
    first, *later = seconds
    each = fmean(later) if later else first - START_SECONDS
    return START_SECONDS + each * ceil(left / count) < each * left


def _spread(
    work: TaskWork, tasks: Sequence[Task], jobs: int | None, step: Callable[[int], None]
) -> Generator[dict[str, Tally]]:
    """The tasks in so many processes; None: as many as a surrounding configuration says, or one."""
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
        yield from _spread(work, tasks, 1, step)
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

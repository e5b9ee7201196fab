"""Tasks in one process or in many: joblib's processes here, or whatever ``joblib.parallel_config`` names."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.extras import installed
from spectheory.foundation.validation import check_count
from spectheory.simulation.estimates import Tally
from spectheory.simulation.work import Task, Work

Jobs = int | str | None
"""How many processes: a number; ``"auto"``, as many as there are cores; or None, as joblib is configured."""


def processes(jobs: Jobs, threads: int | None) -> int | None:
    """The number that joblib is asked for.

    Args:
        jobs: as it was asked for.
        threads: of the CPU, in each process; None: the models are on another device.

    Raises:
        InvalidInputError: it is no number of processes.

    Example:
        >>> processes(3, 1), processes(None, 1), processes("auto", None)
        (3, None, 1)
    """
    if jobs is None:
        return None
    if jobs != "auto":
        if isinstance(jobs, str):
            raise InvalidInputError(f"jobs must be a whole number of at least 1 or 'auto', got {jobs!r}")
        return check_count("jobs", jobs)
    if threads is None:
        return 1
    with installed():
        from joblib import cpu_count
    return max(cpu_count() // threads, 1)


def results(
    work: Work, tasks: Sequence[Task], jobs: int | None, step: Callable[[int], None]
) -> Generator[dict[str, Tally]]:
    """The sums of all tasks, in their order, whoever does them and in whatever order they are finished.

    Args:
        work: what a task needs.
        tasks: to be done.
        jobs: how many processes; None: as many as a surrounding ``joblib.parallel_config`` says, or one.
        step: called with the draws that were made.

    Yields:
        What ``Work.do`` returns.
    """
    # Where joblib was not imported, nobody has configured it.
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
        found.close()  # what was not asked for is not begun


def _do(packed: bytes, task: Task) -> dict[str, Tally]:
    """One task in another process, which keeps the models that it has loaded."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has the results
        _end_with_parent()
    return _unpacked(packed).do(task, lambda draws: None)


@lru_cache(maxsize=1)
def _end_with_parent() -> None:
    """Watch the process that has the results: once it was killed, nobody waits for this one's."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Work:
    import cloudpickle

    from spectheory.models import quiet_loading

    quiet_loading()
    return cloudpickle.loads(packed)

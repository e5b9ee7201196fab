"""Show progress on stderr if it is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

DRAWN_PER_SECOND = 2
"""Updates per second: enough to show that a command is alive, and few for recorded sessions."""


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; it is updated by calling the yielded function with (done, total)."""
    with _line(label, "BarColumn", "MofNCompleteColumn", "TimeRemainingColumn") as update:
        yield lambda done, total: update(completed=done, total=total)


@contextmanager
def interval_line() -> Iterator[Callable[[int, float, float], None]]:
    """Show an interval; it is updated by calling the yielded function with (round, lower, upper)."""
    with _line("solving") as update:
        yield lambda rounds, lower, upper: update(
            description=f"step {rounds}: the optimum lies in {lower:.9f} to {upper:.9f}"
        )


@contextmanager
def _line(label: str, *columns: str) -> Iterator[Callable[..., None]]:
    """Show a line on stderr until the end, and yield a function that updates its rich columns."""
    if sys.stderr is None or not sys.stderr.isatty():  # None if closed by 2>&-
        yield lambda **now: None
        return
    from rich import progress
    from rich.console import Console

    # We give the console the current stderr.  With ``stderr=True`` it would read ``sys.stderr`` at each
    # drawing.  While user code runs, ``sys.stderr`` is a stream whose text is printed above the line.  Each
    # drawing would then add lines to the screen, thousands per minute.
    made: list[Any] = [getattr(progress, name)() for name in columns]
    with progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        *made,
        console=Console(file=sys.stderr),
        transient=True,
        refresh_per_second=DRAWN_PER_SECOND,
    ) as shown:
        yield partial(shown.update, shown.add_task(label, total=None))

"""Progress on stderr; nothing where stderr is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

DRAWN_PER_SECOND = 2
"""Enough to show that a command is alive; the record of a long session stays small."""


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar, driven by progress(done, total)."""
    with _line(label, "BarColumn", "MofNCompleteColumn", "TimeRemainingColumn") as update:
        yield lambda done, total: update(completed=done, total=total)


@contextmanager
def interval_line() -> Iterator[Callable[[int, float, float], None]]:
    """One line that follows an interval as it closes, driven by report(round, lower, upper)."""
    with _line("solving") as update:
        yield lambda rounds, lower, upper: update(
            description=f"step {rounds}: the optimum lies in {lower:.9f} to {upper:.9f}"
        )


@contextmanager
def _line(label: str, *columns: str) -> Iterator[Callable[..., None]]:
    """One line on stderr, gone at the end; its label and these columns of rich change with update(..)."""
    if sys.stderr is None or not sys.stderr.isatty():  # None where it is closed: 2>&-
        yield lambda **now: None
        return
    from rich import progress
    from rich.console import Console

    # The console keeps the stream of this moment.  With ``stderr=True`` it takes ``sys.stderr`` anew whenever
    # it draws.  While user code runs, that is a stream whose text is printed above the line: so each drawing
    # added lines to the screen, thousands in a minute.
    made: list[Any] = [getattr(progress, name)() for name in columns]
    with progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        *made,
        console=Console(file=sys.stderr),
        transient=True,
        refresh_per_second=DRAWN_PER_SECOND,
    ) as shown:
        yield partial(shown.update, shown.add_task(label, total=None))

"""Progress on stderr; nothing where stderr is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar, driven by progress(done, total)."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:  # older releases of rich end even a disabled bar with a line
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield progress


@contextmanager
def interval_line() -> Iterator[Callable[[int, float, float], None]]:
    """One line that follows an interval as it closes, driven by report(round, lower, upper)."""
    shown = sys.stderr is not None and sys.stderr.isatty()  # None where it is closed: 2>&-

    def report(rounds: int, lower: float, upper: float) -> None:
        if shown:
            print(f"\rstep {rounds}: the optimum lies in [{lower:.9f}, {upper:.9f}]", end="", file=sys.stderr)

    try:
        yield report
    finally:
        if shown:
            print(file=sys.stderr)

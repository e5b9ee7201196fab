"""Print tables and decoded texts on stdout."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from spectheory.foundation.documents import count_text
from spectheory.foundation.results import Result, Table


def _console() -> Console:
    """Make the console on stdout.  Files and pipes have no width, so we use 120 columns."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120
    return console


_CONTROLS = re.compile(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]")


def _shown(text: str, style: str = "") -> Text:
    """Replace characters that control the terminal by their escapes."""
    return Text(_CONTROLS.sub(lambda found: repr(found[0])[1:-1], text), style=style)


def print_judgement(result: Result, is_verbose: bool) -> None:
    """Print the verdict and its basis, then the main answer, then a table of the other facts.

    The main answer is a counterexample or a gap.  Facts in fine print are shown only if ``is_verbose``.
    """
    console = _console()
    found = result.judgement()
    if found is None:
        raise ValueError(f"{type(result).__name__} has no verdict")
    verdict, about = found
    mark, colour = _mark(verdict)
    console.print(_shown(f"{mark} {verdict}", style=f"bold {colour}"), _shown(f": {about}"), sep="")
    first, *others = result.tables()
    facts, hidden = first.texts(), () if is_verbose else result.fine_print
    labels = {label for label, _ in facts}
    answer = next((label for label in result.answers if label in labels), None)
    for label, text in facts:
        if label == answer:
            console.print(_shown(f"{label}: {text}"))
    rest = [fact for fact in facts if fact[0] != answer and fact[0] not in hidden]
    console.print(_grid(replace(first, title=""), [], rest))
    print_tables(others)


def _mark(verdict: str) -> tuple[str, str]:
    """Mark and colour of a verdict: ✗ if not lossless or refuted, ? if undecided, else ✓."""
    if verdict.startswith(("not lossless", "refuted")):
        return "✗", "red"
    return ("?", "yellow") if verdict.startswith(("undecided", "solver")) else ("✓", "green")


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables with title and note; cells that do not fit are folded."""
    console = _console()
    for table in tables:
        console.print(_grid(table, table.header(), table.texts()))
        if table.note:
            console.print(_shown(table.note))


def _grid(table: Table, labels: Sequence[str], texts: Sequence[Sequence[str]]) -> Grid:
    has_lines = any("\n" in text for row in texts for text in row)
    grid = Grid(title=_shown(table.title), show_header=bool(labels), show_lines=has_lines)
    for number, is_numeric in enumerate(table.numeric() or [False] * len(labels)):
        grid.add_column(
            _shown(labels[number]) if labels else "",
            justify="right" if is_numeric else "left",
            style=None if labels or number else "bold",
            overflow="fold",
            no_wrap=number == 0,
        )
    for row in texts:
        grid.add_row(*map(_shown, row))
    return grid


def print_texts(document: dict[str, Any]) -> None:
    """Print every text after its prompt.

    Accepted drafts are underlined on a terminal, else put between ‹ and ›.
    """
    console = _console()
    marks = ("", "") if console.is_terminal else ("‹", "›")
    for text in document["texts"]:
        line = _shown(text["prompt"], style="dim")
        for piece in text["pieces"]:
            if piece["accepted"]:
                line.append(_shown(marks[0] + piece["text"] + marks[1], style="green underline"))
            else:
                line.append(_shown(piece["text"], style="not dim"))
        console.print(line, soft_wrap=True)
        beyond = sum(text["accepted_per_call"]) + text["calls"] - text["tokens"]
        console.print(
            f"\n{count_text(text['tokens'], 'token')}, {count_text(text['calls'], 'call')} of the target, "
            f"{text['tokens_per_call']:.2f} tokens per call"
            + (f" with {beyond} beyond the end" if beyond else "")
            + f"; ended by {text['finished']}\n",
            style="bold",
        )

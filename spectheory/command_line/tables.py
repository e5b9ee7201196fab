"""Tables and decoded texts for people, on stdout."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from spectheory.foundation.documents import count_text
from spectheory.foundation.results import Table


def _console() -> Console:
    """Stdout; a file or a pipe has no width and gets a wide one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def print_tables(tables: Sequence[Table]) -> None:
    """Every table with its title and note; cells that do not fit are folded."""
    console = _console()
    for table in tables:
        texts, labels = table.texts(), table.header()
        has_lines = bool(labels) and any("\n" in text for row in texts for text in row)
        grid = Grid(title=Text(table.title), show_header=bool(labels), show_lines=has_lines)
        for number, is_numeric in enumerate(table.numeric() or [False] * len(labels)):
            grid.add_column(
                Text(labels[number]) if labels else "",
                justify="right" if is_numeric else "left",
                style=None if labels or number else "bold",
                overflow="fold",
                no_wrap=number == 0,
            )
        for row in texts:
            grid.add_row(*map(Text, row))
        console.print(grid)
        if table.note:
            console.print(Text(table.note))


def print_texts(document: dict[str, Any]) -> None:
    """Every text behind its prompt; accepted drafts are underlined, in a file within ‹ and ›."""
    console = _console()
    marks = ("", "") if console.is_terminal else ("‹", "›")
    for text in document["texts"]:
        line = Text(text["prompt"], style="dim")
        for piece in text["pieces"]:
            if piece["accepted"]:
                line.append(marks[0] + piece["text"] + marks[1], style="green underline")
            else:
                line.append(piece["text"], style="not dim")
        console.print(line, soft_wrap=True)
        beyond = sum(text["accepted_per_call"]) + text["calls"] - text["tokens"]
        console.print(
            f"\n{count_text(text['tokens'], 'token')}, {count_text(text['calls'], 'call')} of the target, "
            f"{text['tokens_per_call']:.2f} tokens per call"
            + (f" with {beyond} beyond the end" if beyond else "")
            + f"; ended by {text['finished']}\n",
            style="bold",
        )

"""Print the results of all commands as tables, one JSON object, CSV or LaTeX, and errors as one line.

The form is an option of the whole command line.
"""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.foundation.results import Result, Table

LONGEST_ERROR = 900
"""Largest number of characters of an error on stderr, as numbers can have thousands of digits."""
EXIT_NOT_LOSSLESS = 1
EXIT_BAD_INPUT = 2
EXIT_SHORT_OF_THE_GAP = 3
EXIT_NOT_DECIDED = 4
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
FORMS = ("json", "csv", "latex")


def _asked() -> Mapping[str, bool]:
    """Return the values of the options of the whole command line."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.find_root().params


def form() -> str:
    """Return the requested form: ``"json"``, ``"csv"``, ``"latex"`` or, by default, ``"table"``."""
    return next((name for name in FORMS if _asked().get(name)), "table")


def is_verbose() -> bool:
    return bool(_asked().get("verbose"))


def check_form(asked: Mapping[str, bool]) -> None:
    """Refuse more than one form."""
    given = [f"--{name}" for name in FORMS if asked.get(name)]
    if len(given) > 1:
        raise InvalidInputError(f"{' and '.join(given)} were both given; ask for one of them")


def print_found(document: dict[str, Any], tables: Sequence[Table], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a result in the requested form: the document as JSON, the rows as CSV, or the tables."""
    if form() == "json":
        print_json(document)
    elif form() == "csv":
        print_csv(rows)
    elif form() == "latex":
        click.echo("\n\n".join(table.to_latex() for table in tables))
    else:
        from spectheory.command_line.tables import print_tables

        print_tables(tables)


def print_results(found: Sequence[Result], *, name: str = "results", title: str | None = None) -> None:
    """Print one or several results of one class.

    Args:
        found: the results, at least one.
        name: the JSON field that holds several results.
        title: title of the table.  By default, each result has its own tables and titles.
    """
    from spectheory.foundation.results import compared

    if form() == "table" and title is None and all(result.judgement() for result in found):
        from spectheory.command_line.tables import print_judgement

        for result in found:
            print_judgement(result, is_verbose())
        return
    tables = [table for result in found for table in result.tables()]
    if title is not None:
        tables = [compared(title, found) if len(found) > 1 else replace(tables[0], title=title)]
    documents = [result.to_document() for result in found]
    document = documents[0] if len(found) == 1 else {name: documents}
    print_found(document, tables, [row for result in found for row in result.rows()])


def print_json(document: dict[str, Any]) -> None:
    """Print the JSON object of a command, preceded by its format (docs/schemas) and the package version.

    A document with its own format, such as a pair file, is printed unchanged.
    """
    from spectheory import __version__

    context = click.get_current_context(silent=True)
    if context is not None and not {"format", "$schema"} & document.keys():
        command = "-".join(context.command_path.split())
        document = {"format": f"{command}/1", "spectheory": __version__, **document}
    click.echo(json.dumps(_finite(document), ensure_ascii=False, allow_nan=False))


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as CSV with a header.  Unknown values are empty, and nested values are JSON."""
    text = io.StringIO()
    fields = dict.fromkeys(field for row in rows for field in row)
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        nested = {field: value for field, value in row.items() if isinstance(value, (dict, list, tuple))}
        texts = {field: json.dumps(_finite(value), ensure_ascii=False) for field, value in nested.items()}
        writer.writerow({**row, **texts})
    click.echo(text.getvalue(), nl=False)


def note(message: str) -> None:
    """Print a note about a correct result, as one line on stderr."""
    echo_line("note: " + " ".join(message.split()), err=True)


def fail(message: str, code: int) -> int:
    """Print an error as one line on stderr, cutting the middle of a long one, and return the exit code."""
    line = " ".join(message.split())
    if len(line) > LONGEST_ERROR:
        line = f"{line[: LONGEST_ERROR // 2]} … {line[-LONGEST_ERROR // 2 :]}"
    echo_line("error: " + line, err=True)
    return code


def echo_line(line: str, err: bool = False) -> None:
    """Print a line.  In a terminal it is wrapped between words."""
    stream = sys.stderr if err else sys.stdout
    if stream is not None and stream.isatty():
        columns = shutil.get_terminal_size().columns
        line = textwrap.fill(line, columns, break_long_words=False, break_on_hyphens=False)
    click.echo(line, err=err)


def _finite(value: Any) -> Any:
    """Replace infinities and NaN in a value by None, because JSON has neither."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, (list, tuple)) else value

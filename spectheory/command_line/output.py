"""The one printer of all commands: tables, one JSON object, CSV or LaTeX; one line about an error.

The form is an option of the whole command line, which may stand anywhere on it.
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
"""Characters of an error on stderr; numbers of thousands of digits are cut."""
EXIT_NOT_LOSSLESS = 1
EXIT_BAD_INPUT = 2
EXIT_SHORT_OF_THE_GAP = 3
EXIT_NOT_DECIDED = 4
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
FORMS = ("json", "csv", "latex")


def _asked() -> Mapping[str, bool]:
    """The options of the whole command line."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.find_root().params


def form() -> str:
    """``"json"``, ``"csv"`` or ``"latex"``, as asked for, else ``"table"``."""
    return next((name for name in FORMS if _asked().get(name)), "table")


def is_verbose() -> bool:
    return bool(_asked().get("verbose"))


def check_form(asked: Mapping[str, bool]) -> None:
    """Refuse two forms at once."""
    given = [f"--{name}" for name in FORMS if asked.get(name)]
    if len(given) > 1:
        raise InvalidInputError(f"{' and '.join(given)} were both given; ask for one of them")


def print_found(document: dict[str, Any], tables: Sequence[Table], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a document, its tables or its rows, in the form that was asked for."""
    if form() == "json":
        print_json(document)
    elif form() == "csv":
        print_csv(rows)
    elif form() == "latex":
        click.echo("\n\n".join(table.to_latex() for table in tables))
    else:
        from spectheory.command_line.tables import print_tables

        print_tables(tables)


def print_results(
    found: Sequence[Result],
    *,
    name: str = "results",
    title: str | None = None,
    beside: Sequence[Result] = (),
) -> None:
    """Print one result; or several, of one class, as a JSON object with one field and as one table.

    Args:
        found: the results, at least one.
        name: the field of several results.
        title: of the table; by default the headline of a single result.  Several results without a title have
            a table each.
        beside: further results, each with a table.
    """
    from spectheory.foundation.results import compared

    if form() == "table" and title is None and all(result.judgement() for result in found):
        from spectheory.command_line.tables import print_judgement, print_tables

        for result in found:
            print_judgement(result, is_verbose())
        print_tables([table for result in beside for table in result.tables()])
        return
    tables = [table for result in found for table in result.tables()]
    if title is not None:
        tables = [compared(title, found) if len(found) > 1 else replace(tables[0], title=title)]
    documents = [result.to_document() for result in found]
    document = documents[0] if len(found) == 1 else {name: documents}
    for result in beside:
        tables, document = [*tables, *result.tables()], document | result.to_document()
    print_found(document, tables, [row for result in found for row in result.rows()])


def print_json(document: dict[str, Any]) -> None:
    """The one object of a command, after its format (docs/schemas) and the version of the package.

    A document with a format of its own, as a pair file, is printed as it is.
    """
    from spectheory import __version__

    context = click.get_current_context(silent=True)
    if context is not None and not {"format", "$schema"} & document.keys():
        command = "-".join(context.command_path.split())
        document = {"format": f"{command}/1", "spectheory": __version__, **document}
    click.echo(json.dumps(_finite(document), ensure_ascii=False, allow_nan=False))


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as CSV on stdout, a header first; an unknown value is empty, and a nested value is JSON."""
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
    """One line on stderr beside a correct result."""
    echo_line("note: " + " ".join(message.split()), err=True)


def fail(message: str, code: int) -> int:
    """One line on stderr, a long one without its middle; returns the exit code."""
    line = " ".join(message.split())
    if len(line) > LONGEST_ERROR:
        line = f"{line[: LONGEST_ERROR // 2]} … {line[-LONGEST_ERROR // 2 :]}"
    echo_line("error: " + line, err=True)
    return code


def echo_line(line: str, err: bool = False) -> None:
    """Print a line, which is folded in a terminal, where words would be cut at the margin."""
    stream = sys.stderr if err else sys.stdout
    if stream is not None and stream.isatty():
        columns = shutil.get_terminal_size().columns
        line = textwrap.fill(line, columns, break_long_words=False, break_on_hyphens=False)
    click.echo(line, err=err)


def _finite(value: Any) -> Any:
    """A value with null for infinities, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, (list, tuple)) else value

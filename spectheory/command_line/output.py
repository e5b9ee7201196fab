"""What every command ends with: one JSON object or one line that says what is wrong, and an exit code."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from spectheory.errors import InvalidInputError

LONGEST_ERROR = 900
"""Characters of an error on stderr; numbers of thousands of digits are cut."""
EXIT_DEFECT = 1
EXIT_BAD_INPUT = 2
EXIT_SHORT_OF_THE_GAP = 3
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on one line of stdout."""
    click.echo(json.dumps(_finite(document), ensure_ascii=False, allow_nan=False))


def table_wanted(as_json: bool, as_csv: bool) -> bool:
    """Neither form for machines was asked for.

    Raises:
        InvalidInputError: both were.
    """
    if as_csv and as_json:
        raise InvalidInputError("--csv and --json were both given; ask for one of them")
    return not (as_csv or as_json)


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as CSV on stdout, a header first; what is not known is empty, and a nested value is JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(dict.fromkeys(field for row in rows for field in row)), lineterminator="\n"
    )
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                field: json.dumps(_finite(value), ensure_ascii=False)
                if isinstance(value, (dict, list, tuple))
                else value
                for field, value in row.items()
            }
        )
    click.echo(text.getvalue(), nl=False)


def note(message: str) -> None:
    """One line on stderr about a result that is right."""
    click.echo("note: " + " ".join(message.split()), err=True)


def fail(message: str, code: int) -> int:
    """One line on stderr, a long one without its middle; returns the exit code."""
    line = " ".join(message.split())
    if len(line) > LONGEST_ERROR:
        line = f"{line[: LONGEST_ERROR // 2]} … {line[-LONGEST_ERROR // 2 :]}"
    click.echo("error: " + line, err=True)
    return code


def _finite(value: Any) -> Any:
    """JSON has no infinity: a bound that certifies nothing is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, (list, tuple)) else value

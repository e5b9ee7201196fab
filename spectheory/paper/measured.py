"""What benchmarks measured on a stated machine, as data for exhibits: times are not computed again with them.

One file per benchmark, written by the command that it names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectheory.foundation.documents import replace_file

FOLDER = Path(__file__).parent / "measurements"


@dataclass(frozen=True)
class Measurement:
    """Rows of a benchmark.

    Attributes:
        command: that measured them, in a checkout.
        machine: what it ran on, in a line.
        columns: names, with units.
        rows: numbers and texts, one per column.
    """

    command: str
    machine: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def write(self, name: str) -> None:
        """Into the package, as ``measurements/name.json``, a row a line."""
        rows = ",\n  ".join(json.dumps(list(row)) for row in self.rows)
        head = {"command": self.command, "machine": self.machine, "columns": list(self.columns)}
        text = json.dumps(head, indent=1).removesuffix("\n}") + f',\n "rows": [\n  {rows}\n ]\n}}\n'
        replace_file(FOLDER / f"{name}.json", text)

    def select(self, **wanted: Any) -> list[dict[str, Any]]:
        """The rows with these entries, as mappings."""
        records = (dict(zip(self.columns, row, strict=True)) for row in self.rows)
        return [record for record in records if all(record[key] == value for key, value in wanted.items())]


def measurement(name: str) -> Measurement:
    """What ``write`` wrote under this name.

    Example:
        >>> measurement("optimum_at_scale").columns[0]
        'method'
    """
    return Measurement(**json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))

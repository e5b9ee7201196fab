"""Times that benchmarks measured on a stated machine, as data for figures, which do not measure them again.

One file per benchmark, written by the command that the file names.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures.results import lines_of_rows, select
from spectheory.foundation.documents import replace_file, to_json

FOLDER = Path(__file__).parents[1] / "measurements"


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
        """Into ``figures/measurements/name.json``, a row a line."""
        replace_file(FOLDER / f"{name}.json", lines_of_rows(to_json(self)) + "\n")

    def select(self, **wanted: Any) -> list[dict[str, Any]]:
        """The rows with these entries, as mappings."""
        return select(self.columns, self.rows, wanted)


def measurement(name: str) -> Measurement:
    """Read a measurement that ``write`` stored under this name."""
    return Measurement(**json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))

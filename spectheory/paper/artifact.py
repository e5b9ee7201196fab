"""What a reproduction yields: tables, figures and checks, and how they are written to files."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from spectheory.documents import plain
from spectheory.paper.style import save_figure


@dataclass(frozen=True)
class ResultTable:
    """Numbers in rows; the source of the CSV, the JSON, the report and every plotted point.

    Attributes:
        name: the stem of its files.
        columns: column names.
        rows: Fractions, floats, integers, booleans or texts, one per column.
        caption: what the rows are, with units.
    """

    name: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    caption: str

    def column(self, name: str) -> list[Any]:
        """All entries of one column."""
        return [row[self.columns.index(name)] for row in self.rows]

    def select(self, **wanted: Any) -> list[dict[str, Any]]:
        """The rows with these entries, as mappings."""
        records = (dict(zip(self.columns, row, strict=True)) for row in self.rows)
        return [record for record in records if all(record[key] == value for key, value in wanted.items())]


@dataclass(frozen=True)
class Artifact:
    """One reproduced figure or table.

    Attributes:
        name: as on the command line; the stem of the figure's files.
        title: what it shows.
        source: the paper's figure, table or equation.
        explanation: how to read it, in a few sentences.
        settings: seeds and sizes, everything that determines the numbers.
        tables: all numbers.
        figures: stem -> figure.
        failures: one sentence per check that did not hold.
        checks: what was checked, in words.
    """

    name: str
    title: str
    source: str
    explanation: str
    settings: Mapping[str, Any]
    tables: Sequence[ResultTable]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    failures: Sequence[str] = ()
    checks: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether every check held."""
        return not self.failures

    @property
    def files(self) -> list[str]:
        """Names of the files ``write_artifact`` makes."""
        figures = [f"{stem}.{ending}" for stem in self.figures for ending in ("pdf", "png")]
        return figures + [f"{table.name}.{ending}" for table in self.tables for ending in ("csv", "json")]

    def to_document(self) -> dict[str, Any]:
        """Name, verdict and files, for ``spectheory reproduce --json``."""
        return {
            "name": self.name,
            "title": self.title,
            "passed": self.passed,
            "failures": list(self.failures),
            "files": self.files,
        }


def write_artifact(artifact: Artifact, folder: Path) -> None:
    """Figures as PDF and PNG, tables as CSV and JSON; the same artifact gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, figure in artifact.figures.items():
        save_figure(figure, folder / stem)
    for table in artifact.tables:
        with (folder / f"{table.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows([plain(value) for value in row] for row in table.rows)
        records = [
            {name: plain(value) for name, value in zip(table.columns, row, strict=True)} for row in table.rows
        ]
        document = {"caption": table.caption, "settings": dict(artifact.settings), "rows": records}
        (folder / f"{table.name}.json").write_text(
            json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )

"""Figures and tables of the papers: what was found is written first, and the pictures read what was written.

An exhibit is a function that computes ``Findings`` and one that draws them.  The drawing gets plain values
(texts for rationals) whether they come from memory or from a file, so a restyled picture needs no
computation.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory import __version__
from spectheory.foundation.documents import replace_file, to_json
from spectheory.foundation.errors import InvalidInputError
from spectheory.paper.parameters import Parameter, parameters_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[["Findings"], "Mapping[str, Figure]"]
FORMATS = ("pdf", "png", "svg")
DEFAULT_FORMATS = ("pdf", "png")
_FIELDS = ("explanation", "settings", "tables", "checks")


@dataclass(frozen=True)
class ResultTable:
    """Numbers in rows; the source of the CSV, the JSON, the report and every plotted point.

    Attributes:
        name: the stem of its CSV file.
        columns: column names.
        rows: Fractions, floats, integers, booleans or texts, one per column.
        caption: what the rows are, with units.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str

    def column(self, name: str) -> list[Any]:
        """All entries of one column."""
        return [row[self.columns.index(name)] for row in self.rows]

    def select(self, **wanted: Any) -> list[dict[str, Any]]:
        """The rows with these entries, as mappings."""
        records = (dict(zip(self.columns, row, strict=True)) for row in self.rows)
        return [record for record in records if all(record[key] == value for key, value in wanted.items())]

    def to_csv(self) -> str:
        """The CSV file: a line of column names, then the rows."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([to_json(value) for value in row] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True)
class Check:
    """A claim that was put to the test.

    Attributes:
        claim: one sentence.
        passed: whether it held.
        evidence: on how many cases it was tried; where it failed, the first cases.
    """

    claim: str
    passed: bool
    evidence: str

    @staticmethod
    def of(claim: str, tried: int, failures: Sequence[str]) -> Check:
        """A check of ``tried`` cases, with a text for each that failed.

        Example:
            >>> Check.of("no verifier exceeds the optimum", 2, ["token does: 3 > 2"]).evidence
            '1 of 2 failed: token does: 3 > 2'
        """
        if tried < 1:
            raise InvalidInputError(f"the check {claim!r} was tried on nothing")
        if not failures:
            return Check(claim, True, f"{tried} of {tried}")
        shown = "; ".join(failures[:3]) + ("; ..." if len(failures) > 3 else "")
        return Check(claim, False, f"{len(failures)} of {tried} failed: {shown}")


@dataclass(frozen=True)
class Findings:
    """What one exhibit computed.

    Attributes:
        explanation: how to read it, in a few sentences.
        settings: seeds and sizes, everything that determines the numbers.
        tables: all numbers.
        checks: the claims that were tested.
    """

    explanation: str
    settings: Mapping[str, Any]
    tables: Sequence[ResultTable]
    checks: Sequence[Check]

    @property
    def passed(self) -> bool:
        """Whether every check held."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> list[str]:
        """One text per check that did not hold."""
        return [f"{check.claim}: {check.evidence}" for check in self.checks if not check.passed]

    def table(self, name: str) -> ResultTable:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)

    def to_document(self) -> dict[str, Any]:
        """The JSON object with all of it; rationals are texts."""
        return {field: to_json(getattr(self, field)) for field in _FIELDS}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Findings:
        """What ``to_document`` wrote, in plain values."""
        return Findings(
            document["explanation"],
            document["settings"],
            [ResultTable(**table) for table in document["tables"]],
            [Check(**check) for check in document["checks"]],
        )


class Exhibit:
    """One figure or table: call it with its parameters to compute, ``draw`` what it found.

    Attributes:
        name: as on the command line; the stem of its files.
        title: what it shows.
        source: the paper's figure, table or equation.
        parameters: what can be changed about it.
    """

    def __init__(self, compute: Callable[..., Findings], title: str, source: str, draw: Draw | None) -> None:
        update_wrapper(self, compute)
        self.compute, self.title, self.source, self._draw = compute, title, source, draw
        self.name = compute.__name__
        self.parameters: tuple[Parameter, ...] = parameters_of(compute)

    def __call__(self, *arguments: Any, **parameters: Any) -> Findings:
        """Compute, with other parameters than the default ones if they are given."""
        return self.compute(*arguments, **parameters)

    def draw(self, findings: Findings) -> dict[str, Figure]:
        """The figures of what was found, by the stem of their files."""
        as_written = Findings.from_document(json.loads(json.dumps(findings.to_document())))
        return {} if self._draw is None else dict(self._draw(as_written))


def exhibit(
    *, title: str, source: str, draw: Draw | None = None
) -> Callable[[Callable[..., Findings]], Exhibit]:
    """Decorate the function that computes an exhibit."""
    return lambda compute: Exhibit(compute, title, source, draw)


# ------------------------------------------------------------------------- files


@dataclass(frozen=True)
class Written:
    """An exhibit as it lies in a folder.

    Attributes:
        name, title, source: of the exhibit.
        findings: in plain values.
        files: names of all its files but the JSON one.
        made_with: versions of this package and of the libraries that computed it.
        parameters: those that were given, in plain values; empty for the defaults.
    """

    name: str
    title: str
    source: str
    findings: Findings
    files: Sequence[str]
    made_with: Mapping[str, str]
    parameters: Mapping[str, Any]

    def to_document(self) -> dict[str, Any]:
        """Name, verdict and files, for ``spectheory reproduce --json``."""
        return {
            "name": self.name,
            "title": self.title,
            "passed": self.findings.passed,
            "failures": self.findings.failures,
            "files": [*self.files, f"{self.name}.json"],
        }


def write_exhibit(
    shown: Exhibit,
    findings: Findings,
    folder: Path,
    formats: Collection[str] = DEFAULT_FORMATS,
    parameters: Mapping[str, Any] | None = None,
) -> Written:
    """Write the numbers as CSV and JSON, then the pictures; every file is replaced whole.

    The JSON file comes last: where it lies in the folder, the exhibit is finished.  The same findings
    give the same bytes.

    Args:
        shown: the exhibit.
        findings: what it computed.
        folder: made if it is not there.
        formats: of the pictures.
        parameters: those it was computed with, in plain values, where they are not the defaults.
    """
    from spectheory.paper.style import figure_bytes

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for table in findings.tables:
        files.append(f"{table.name}.csv")
        replace_file(folder / files[-1], table.to_csv())
    for stem, figure in shown.draw(findings).items():
        for ending in formats:
            files.append(f"{stem}.{ending}")
            replace_file(folder / files[-1], figure_bytes(figure, ending))
    written = Written(
        shown.name, shown.title, shown.source, findings, files, _versions(), dict(parameters or {})
    )
    document = {
        "name": shown.name,
        "title": shown.title,
        "source": shown.source,
        "made_with": dict(written.made_with),
        **({"parameters": dict(written.parameters)} if written.parameters else {}),
        "files": files,
        **findings.to_document(),
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    replace_file(folder / f"{shown.name}.json", text + "\n")
    return written


def read_exhibit(name: str, folder: Path) -> Written | None:
    """What ``write_exhibit`` wrote; ``None`` where there is no such file.

    Raises:
        InvalidInputError: the file is not one of an exhibit.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return Written(
            document["name"],
            document["title"],
            document["source"],
            Findings.from_document(document),
            document["files"],
            document["made_with"],
            document.get("parameters", {}),
        )
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{path} is not a file that reproduce wrote; remove it, or compute {name} anew"
        ) from error


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {"spectheory": __version__} | {
        name: version(name) for name in ("numpy", "scipy", "matplotlib", "torch")
    }

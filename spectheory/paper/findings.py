"""Findings of an exhibit: tables of numbers, and claims that were tested."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from spectheory.foundation.documents import to_json
from spectheory.foundation.errors import InvalidInputError

RATIONAL = re.compile(r"-?\d+(/\d+)?")


@dataclass
class ResultTable:
    """Numbers in rows; the source of the data file, the report and every plotted point.

    Attributes:
        caption: what the rows are, with units.
        rows: Fractions, floats, integers, booleans or texts, one per column.

    Example:
        >>> table = ResultTable("acceptance", "The optimum by number of drafts.")
        >>> table.add(num_drafts=1, optimum=Fraction(2, 3))
        >>> table.add(num_drafts=2, optimum=Fraction(1))
        >>> table.column("optimum"), table.where(num_drafts=2)["optimum"]
        ([Fraction(2, 3), Fraction(1, 1)], [1.0])
    """

    name: str
    caption: str
    columns: Sequence[str] = ()
    rows: list[Sequence[Any]] = field(default_factory=list)

    def add(self, **entries: Any) -> None:
        """Append a row; the first row names the columns.

        Raises:
            InvalidInputError: the row has other columns than the first.
        """
        self.columns = self.columns or tuple(entries)
        if tuple(entries) != tuple(self.columns):
            raise InvalidInputError(
                f"a row of {self.name} has the columns {', '.join(self.columns)}, got {', '.join(entries)}"
            )
        self.rows.append(tuple(entries.values()))

    def column(self, name: str) -> list[Any]:
        """All entries of one column, as they are."""
        return [row[self.columns.index(name)] for row in self.rows]

    def __getitem__(self, name: str) -> list[Any]:
        """All entries of one column as they are drawn: rationals, also those in texts, as floats."""
        return [as_float(value) for value in self.column(name)]

    def distinct(self, name: str) -> list[Any]:
        """The entries of one column as they are, each once, in the order of their first rows."""
        return list(dict.fromkeys(self.column(name)))

    def select(self, **wanted: Any) -> list[dict[str, Any]]:
        """The rows with these entries, as mappings."""
        return select(self.columns, self.rows, wanted)

    def where(self, **wanted: Any) -> ResultTable:
        """The rows with these entries, as a table."""
        rows = (tuple(record.values()) for record in self.select(**wanted))
        return ResultTable(self.name, self.caption, self.columns, list(rows))


def select(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], wanted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows with the wanted entries, as mappings."""
    records = (dict(zip(columns, row, strict=True)) for row in rows)
    return [record for record in records if all(record[key] == value for key, value in wanted.items())]


def as_float(value: Any) -> Any:
    """A rational, or the text of a rational, as a float; any other value as it is."""
    if isinstance(value, Fraction) or (isinstance(value, str) and RATIONAL.fullmatch(value)):
        return float(Fraction(value))
    return value


@dataclass
class Check:
    """A claim that was put to the test.

    Attributes:
        claim: one sentence.
        tried: the number of cases.
        failures: a text for each case in which it does not hold.
    """

    claim: str
    tried: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.tried > 0 and not self.failures

    @property
    def evidence(self) -> str:
        """The number of cases; where the claim failed, also the first cases."""
        if not self.failures:
            return f"{self.tried} of {self.tried}"
        shown = "; ".join(self.failures[:3]) + ("; ..." if len(self.failures) > 3 else "")
        return f"{len(self.failures)} of {self.tried} failed: {shown}"


class Checks(list[Check]):
    """The claims of an exhibit, each tried case by case.

    Example:
        >>> checks = Checks()
        >>> checks.expect("squares are not negative", 2**2 >= 0, "at 2")
        >>> checks.expect("squares are not negative", 1j**2 == 0, "at i")
        >>> [(check.passed, check.evidence) for check in checks]
        [(False, '1 of 2 failed: at i')]
    """

    def expect(self, claim: str, holds: Any, where: str) -> None:
        """Try a claim in one case.

        Args:
            claim: one sentence, the same in every case.
            holds: whether it holds here.
            where: the case, with the numbers that a reader needs where it does not hold.
        """
        check = next((check for check in self if check.claim == claim), None)
        if check is None:
            check = Check(claim)
            self.append(check)
        check.tried += 1
        if not holds:
            check.failures.append(where)


@dataclass(frozen=True)
class Findings:
    """The tables and checks that an exhibit computed.

    Attributes:
        explanation: how to read it, in a few sentences.
        settings: the arguments that determine the numbers; the exhibit records them.
    """

    explanation: str
    tables: Sequence[ResultTable]
    checks: Sequence[Check]
    settings: Mapping[str, Any] = field(default_factory=dict)

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
        fields = ("settings", "explanation", "checks", "tables")
        return {name: to_json(getattr(self, name)) for name in fields}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Findings:
        """Read a document of ``to_document``, in plain values.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        tables = [ResultTable(**table) for table in document["tables"]]
        if any(len(row) != len(table.columns) for table in tables for row in table.rows):
            raise ValueError("a row has another length than its table has columns")
        return Findings(
            document["explanation"],
            tables,
            [Check(**check) for check in document["checks"]],
            document["settings"],
        )


def lines_of_rows(value: Any, depth: int = 0) -> str:
    """JSON in which every row of a table is one line."""
    entries = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    if depth > 3 or not any(isinstance(entry, (dict, list)) and entry for entry in entries):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    lines = [lines_of_rows(entry, depth + 1) for entry in entries]
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(value, lines, strict=True)]
    start, end = "{}" if isinstance(value, dict) else "[]"
    space = "\n" + " " * depth
    return start + ",".join(f"{space} {line}" for line in lines) + space + end

"""What a script of this folder computes and writes: tables, claims that were put to the test, and files.

A script has a function that computes ``Findings``, and one that draws them.  ``@result(...)`` joins the two.
The numbers are written as ``NAME.json``, and the picture is drawn from the numbers as they are written.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import update_wrapper
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory import __version__
from spectheory.foundation.documents import replace_file, to_json
from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent
RATIONAL = re.compile(r"-?\d+(/\d+)?")


@dataclass
class ResultTable:
    """Numbers in rows: the source of the data file and of every plotted point.

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
    """The claims of a result, each tried case by case.

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
    """The tables and checks that a result computed.

    Attributes:
        explanation: how to read it, in a few sentences.
        settings: the arguments that determine the numbers; ``Result`` records them.
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
        """Read a document of ``to_document``, in plain values."""
        tables = [ResultTable(**table) for table in document["tables"]]
        checks = [Check(**check) for check in document["checks"]]
        return Findings(document["explanation"], tables, checks, document["settings"])


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


@dataclass(eq=False)
class Result:
    """One figure or table: call it to compute, ``write`` to write its files.

    Attributes:
        compute: makes the findings; its name is that of the script and of the files.
        source: the paper's figure, table or equation.
        draw: draws findings in plain values; ``None`` for a table without a picture.
        small: arguments of a version that takes seconds, for the tests.
    """

    compute: Callable[..., Findings]
    title: str
    source: str
    draw: Callable[[Findings], Figure] | None
    small: Mapping[str, Any]

    def __post_init__(self) -> None:
        update_wrapper(self, self.compute)

    @property
    def name(self) -> str:
        return self.compute.__name__

    def settings(self, **arguments: Any) -> dict[str, Any]:
        """All arguments of a call that are not None, the default ones too, in plain values."""
        bound = inspect.signature(self.compute).bind(**arguments)
        bound.apply_defaults()
        return {name: to_json(value) for name, value in bound.arguments.items() if value is not None}

    def __call__(self, **arguments: Any) -> Findings:
        """Compute, with other arguments than the default ones if they are given.

        Raises:
            InvalidInputError: no claim was tested.
        """
        found = self.compute(**arguments)
        if not found.checks:
            raise InvalidInputError(f"{self.name} tested no claim; call checks.expect(claim, holds, where)")
        return replace(found, settings=self.settings(**arguments))

    def picture(self, findings: Findings) -> Figure | None:
        """The figure of the findings, drawn from the numbers as they are written."""
        written = Findings.from_document(json.loads(json.dumps(findings.to_document())))
        return None if self.draw is None else self.draw(written)

    def write(self, findings: Findings, folder: Path) -> None:
        """Write ``NAME.pdf`` and ``NAME.png``, then ``NAME.json``; the same findings give the same bytes."""
        folder.mkdir(parents=True, exist_ok=True)
        figure = self.picture(findings)
        if figure is not None:
            from figures.style import figure_bytes

            for ending in ("pdf", "png"):
                replace_file(folder / f"{self.name}.{ending}", figure_bytes(figure, ending))
        head = {"name": self.name, "title": self.title, "source": self.source, "made_with": self.made_with()}
        document: dict[str, Any] = {**head, **findings.to_document()}
        replace_file(folder / f"{self.name}.json", lines_of_rows(document) + "\n")

    def made_with(self) -> dict[str, str]:
        """A hash of the script and of what scripts share, and the versions of the libraries."""
        files = {Path(inspect.getfile(self.compute)), FOLDER / "results.py", FOLDER / "style.py"}
        for shared in ("common/*.*", "measurements/*.json", "*.mplstyle"):
            files |= {*FOLDER.glob(shared)}
        script = sha256(b"".join(sha256(file.read_bytes()).digest() for file in sorted(files)))
        libraries = ("numpy", "scipy", "matplotlib", "torch")
        versions = {name: version(name) for name in libraries if find_spec(name)}
        return {"script": script.hexdigest()[:16], "spectheory": __version__} | versions

    def is_finished(self, folder: Path, **arguments: Any) -> bool:
        """Whether the folder has it, of this script, this version and these arguments, all claims true."""
        try:
            document = json.loads((folder / f"{self.name}.json").read_text(encoding="utf-8"))
            made, settings = self.made_with(), json.loads(json.dumps(self.settings(**arguments)))
            same = all(document["made_with"][key] == made[key] for key in ("script", "spectheory"))
            return same and document["settings"] == settings and Findings.from_document(document).passed
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def main(self) -> None:
        """Compute and write as the command line asks; exits with 1 if a claim failed."""
        parser = argparse.ArgumentParser(description=f"{self.title}.  {self.source}.")
        parser.add_argument("--out", type=Path, default=Path("build/figures"), help="folder for the files")
        parser.add_argument("--resume", action="store_true", help="leave what the folder has finished")
        known = inspect.signature(self.compute).parameters
        if "pair" in known:
            parser.add_argument("--pair", metavar="FILE", help="your own pair, a pair file")
        if "verifiers" in known:
            parser.add_argument("--verifiers", nargs="+", metavar="NAME", help="names, or module:attribute")
        given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
        folder, resume = given.pop("out"), given.pop("resume")
        if resume and self.is_finished(folder, **given):
            sys.exit(0)
        findings = self(**given)
        self.write(findings, folder)
        for check in findings.checks:
            print(f"{'checked' if check.passed else 'FAILED'}: {check.claim} ({check.evidence})")
        sys.exit(not findings.passed)


def result(
    *,
    title: str,
    source: str,
    draw: Callable[[Findings], Figure] | None = None,
    small: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Findings]], Result]:
    """Decorate the function that computes a result; the arguments are the attributes of ``Result``."""
    return lambda compute: Result(compute, title, source, draw, small or {})

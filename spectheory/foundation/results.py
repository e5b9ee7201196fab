"""Results: each has a headline, a JSON object, and rows from which all tables are made.

CSV files and data frames contain the rows of a result unchanged.  The terminal, notebooks and LaTeX insert
the fields of the rows into templates, one per column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar

from spectheory.foundation.documents import value_text
from spectheory.foundation.errors import NoVerdictError
from spectheory.foundation.extras import installed

if TYPE_CHECKING:
    import pandas

Row = Mapping[str, Any]
"""One row of data: field -> value."""
Templates = Mapping[str, str]
"""Column label -> template of its cells, with fields in braces as in ``str.format``."""

SHORT = "short"
"""A format of fields: ``"{prob:short}"`` writes a rational without its decimal."""
LOSSLESS, NOT_LOSSLESS, UNDECIDED = "lossless", "not lossless", "undecided"
"""The three verdicts.  The basis of a verdict says how we found it, such as *rationals* or *proved*."""
LONGEST_LATEX_CELL = 60
"""The most characters of a cell in a LaTeX column that is not wrapped."""


def no_verdict(result: Any, ask: str) -> NoVerdictError:
    """Make the error that ``__bool__`` of a result without a verdict raises.  By default it would be true.

    Args:
        result: the law, optimum or estimate.
        ask: the attribute to use instead.

    Example:
        >>> from spectheory import instances, optimum
        >>> try:
        ...     assert optimum(instances.two_token(1))
        ... except NoVerdictError as error:
        ...     print(error)
        Solution has no verdict, so it is neither true nor false; ask .value
    """
    kind = type(result).__name__
    return NoVerdictError(f"{kind} has no verdict, so it is neither true nor false; ask {ask}")


@dataclass(frozen=True)
class Table:
    """Rows of data, and the templates that show them to people.

    Attributes:
        title: a line above the table.
        rows: the data.
        columns: a template per column; by default every field is a column.  A line of a template is left out
            if one of its fields is empty.
        note: a line below the table.
        is_record: True if there is one row, whose fields are listed below one another, without a header.

    Example:
        >>> from fractions import Fraction
        >>> row = {"efficiency": Fraction(20, 9), "bound": None}
        >>> shown = {"efficiency": "{efficiency} tokens", "bound": "at most {bound}"}
        >>> Table("block", [row], shown, is_record=True).texts()
        [['efficiency', '20/9 = 2.222222 tokens']]
    """

    title: str
    rows: Sequence[Row]
    columns: Templates | None = None
    note: str = ""
    is_record: bool = False

    def __bool__(self) -> bool:
        raise no_verdict(self, ".rows")

    def labels(self) -> list[str]:
        if self.columns is not None:
            return list(self.columns)
        return [field.replace("_", " ") for field in _fields(self.rows)]

    def header(self) -> list[str]:
        """List the labels above the columns.  A record has none."""
        return [] if self.is_record else self.labels()

    def texts(self) -> list[list[str]]:
        """List the cells of every row.  A record gives [label, line] pairs."""
        if self.columns is None:
            fields = _fields(self.rows)
            cells = [
                ["" if _is_empty(row.get(name)) else value_text(row[name]) for name in fields]
                for row in self.rows
            ]
        else:
            cells = [[_filled(template, row) for template in self.columns.values()] for row in self.rows]
        if not self.is_record:
            return cells
        facts = [fact for row in cells for fact in zip(self.labels(), row, strict=True) if fact[1]]
        return [[label, line] for label, text in facts for line in text.split("\n")]

    def numeric(self) -> list[bool]:
        """Return, for each column, whether all its nonempty cells are numbers.

        Tables right-align such columns.  For a record all entries are False.
        """
        columns = zip(*self.texts(), strict=True)
        return [
            not self.is_record and all(text.lstrip("+-")[:1].isdigit() for text in column if text)
            for column in columns
        ]

    def to_html(self) -> str:
        """Write an HTML table with a caption."""

        def line(texts: Sequence[str], tags: str) -> str:
            cells = (f"<{tag}>{_html(text)}</{tag}>" for tag, text in zip(tags.split(), texts, strict=True))
            return f"<tr>{''.join(cells)}</tr>"

        header, body = self.header(), self.texts()
        lines = [line(header, "th " * len(header))] if header else []
        lines += [line(texts, "th" + " td" * (len(texts) - 1)) for texts in body]
        note = f"<p>{_html(self.note)}</p>" if self.note else ""
        return f"<table><caption>{_html(self.title)}</caption>{''.join(lines)}</table>{note}"

    def to_latex(self) -> str:
        r"""Write a LaTeX ``table`` environment for the package ``booktabs``.

        Text that is not ASCII stays unchanged, for LaTeX with UTF-8.
        """
        header, body = self.header(), self.texts()
        wide = [
            any("\n" in text or len(text) > LONGEST_LATEX_CELL for text in cells)
            for cells in zip(*body, strict=True)
        ]
        columns = [
            rf"p{{{0.9 / len(wide):.2f}\linewidth}}" if is_wide else "r" if is_numeric else "l"
            for is_wide, is_numeric in zip(wide, self.numeric(), strict=True)
        ] or ["l"] * len(header)
        lines = [" & ".join(map(_latex, texts)) + r" \\" for texts in ([header] if header else []) + body]
        if header:
            lines.insert(1, r"\midrule")
        note = [r"\par " + self.note.translate(_LATEX)] if self.note else []
        return "\n".join(
            (
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_latex(self.title.replace(chr(10), ', '))}}}",
                rf"\begin{{tabular}}{{{''.join(columns)}}}",
                r"\toprule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                *note,
                r"\end{table}",
            )
        )


class Result(ABC):
    """A result of the package.  Results of the same class are equal if their documents are equal.

    A result with a verdict is true in Python if and only if the verdict is *lossless*, so that
    ``assert certify(...)`` is a test.  For other results ``bool`` raises ``NoVerdictError``.

    Attributes:
        facts: the templates that show one result as a record.
        columns: the templates that show several rows.
        answers: labels of facts.  The terminal shows the first that is not empty below the verdict.
        fine_print: labels of facts that the terminal shows with ``--verbose`` only.
    """

    facts: ClassVar[Templates | None] = None
    columns: ClassVar[Templates | None] = None
    answers: ClassVar[tuple[str, ...]] = ()
    fine_print: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def to_document(self) -> dict[str, Any]:
        """Return the JSON object, with rationals as strings such as ``"20/9"``."""

    @abstractmethod
    def headline(self) -> str:
        """Write the result in one line."""

    @abstractmethod
    def __bool__(self) -> bool:
        """True if the verdict is *lossless*.  A class without a verdict raises ``no_verdict``."""

    def judgement(self) -> tuple[str, str] | None:
        """Return the verdict with its basis, and the subject of the verdict.  None without a verdict."""
        return None

    def rows(self) -> list[dict[str, Any]]:
        """Return the data of the tables, by default one row, the document."""
        return [self.to_document()]

    def shown(self) -> dict[str, Any]:
        """Return further fields for the templates, such as exact numbers and sentences."""
        return {}

    def tables(self) -> list[Table]:
        """Make the tables for people: the facts as a record if there are any, otherwise rows and columns."""
        rows, is_record = [{**row, **self.shown()} for row in self.rows()], self.facts is not None
        return [Table(self.headline(), rows, self.facts or self.columns, is_record=is_record)]

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame.  Nested objects stay unchanged."""
        with installed():
            import pandas

        return pandas.DataFrame(self.rows())

    def to_latex(self) -> str:
        """Write the tables in LaTeX, for the package ``booktabs``."""
        return "\n\n".join(table.to_latex() for table in self.tables())

    def __repr__(self) -> str:
        return f"<{self.headline()}>"

    def _repr_html_(self) -> str:
        return "".join(table.to_html() for table in self.tables())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.to_document() == self.to_document()

    def __hash__(self) -> int:
        return hash(self.headline())


def compared(title: str, results: Sequence[Result]) -> Table:
    """Make one table of several results of the same class, with the columns of the class.

    Example:
        >>> from spectheory import certify, instances
        >>> certificates = [certify(name, instances.two_token(1)) for name in ("token", "block")]
        >>> compared("verifiers", certificates).texts()[1]
        ['block', 'yes', '5/3 = 1.666667', '0.000000', '0']
    """
    rows = [{**row, **result.shown()} for result in results for row in result.rows()]
    return Table(title, rows, results[0].columns)


class _Cell:
    """A value in a template, which ``str.format`` writes for people."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        if spec and spec != SHORT:
            return format(self.value if isinstance(self.value, int) else float(self.value), spec)
        return value_text(self.value, decimal=spec != SHORT)

    def __repr__(self) -> str:
        return repr(self.value)


def _fields(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(field for row in rows for field in row))


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", (), [], {})


def _filled(template: str, row: Row) -> str:
    """Fill the template with the fields of the row, and drop lines with an empty field."""
    lines = []
    for line in template.split("\n"):
        fields = {name: row.get(name) for _, name, _, _ in Formatter().parse(line) if name}
        if not any(map(_is_empty, fields.values())):
            lines.append(line.format_map({name: _Cell(value) for name, value in fields.items()}))
    return "\n".join(lines)


def _html(text: str) -> str:
    return escape(text).replace("\n", "<br/>")


_LATEX = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "\n": r"\newline "}
)


def _latex(text: str) -> str:
    r"""Escape the text of a cell; ``{}`` keeps ``\\`` from reading a first bracket or star as an argument."""
    return ("{}" if text.startswith(("[", "*")) else "") + text.translate(_LATEX)

"""report.md and report.html: every reproduced figure and table on one page.

Both are written from the same blocks, so that they say the same.  report.html has the pictures inside: it
needs no other file and no network.
"""

import base64
from collections.abc import Iterator, Sequence
from fractions import Fraction
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from spectheory.foundation.documents import decimal_text, number_text, replace_file
from spectheory.paper.claims.page import claims_counts, markdown_table
from spectheory.paper.exhibits import Written
from spectheory.paper.findings import RATIONAL, ResultTable

TITLE = "Reproduced figures and tables"
CLAIMS = "The statements of the papers by verdict; `spectheory claims` lists them with their evidence."
LONG_TABLE = 12
"""Rows up to which a table is shown open."""
LONGEST_TABLE = 60
"""Rows up to which it is shown at all; longer ones are in the data file."""

Block = tuple[Any, ...]
"""A kind of block and its contents."""


def write_report(exhibits: Sequence[Written | None], folder: Path) -> None:
    """Write both next to the files of the exhibits; no dates, so that they are reproducible."""
    blocks = list(_blocks([written for written in exhibits if written is not None]))
    replace_file(folder / "report.md", "\n\n".join(map(_markdown, blocks)) + "\n")
    page = "\n".join(_html(block, folder) for block in blocks)
    head = (files("spectheory.paper") / "report_head.html").read_text(encoding="utf-8")
    replace_file(folder / "report.html", f"{head}{page}\n</body>\n</html>\n")


def pictures(files: Sequence[str]) -> list[str]:
    """The first file in a format that browsers show, if there is one.

    Example:
        >>> pictures(["a.pdf", "a.svg", "a.png"]), pictures(["c.pdf"])
        (['a.png'], [])
    """
    return [file for ending in (".png", ".svg") for file in files if file.endswith(ending)][:1]


def cell_text(value: Any) -> str:
    """A cell of a table, or a setting.

    Example:
        >>> cell_text([1, True, None, 2 / 3]), cell_text("8/9")
        ('1; yes; ; 0.666667', '8/9 = 0.888889')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return decimal_text(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(cell_text(entry) for entry in value)
    if isinstance(value, str) and RATIONAL.fullmatch(value):
        value = Fraction(value)
    return number_text(value) if isinstance(value, Fraction) else str(value)


def _blocks(exhibits: Sequence[Written]) -> Iterator[Block]:
    versions = dict.fromkeys(
        ", ".join(f"{name} {number}" for name, number in written.made_with.items()) for written in exhibits
    )
    yield "title", TITLE
    yield "text", f"Made by `spectheory reproduce` with {'; '.join(versions)}."
    passed = all(written.findings.passed for written in exhibits)
    yield "verdicts", [(passed, "All checks passed." if passed else "Some checks failed.")]
    rows = [
        [("link", f"#{one.name}", one.title), one.source, ("verdict", one.findings.passed)]
        for one in exhibits
    ]
    yield "table", ["result", "source", "checks"], rows
    for written in exhibits:
        yield from _section(written)
    yield "heading", "claims", "Claims"
    yield "text", CLAIMS
    header, *counts = claims_counts()
    yield "table", header, counts


def _section(written: Written) -> Iterator[Block]:
    findings = written.findings
    yield "heading", written.name, written.title
    yield "text", f"Source: {written.source}."
    yield "text", findings.explanation
    for file in pictures(written.pictures):
        yield "picture", file, written.title
    for table in findings.tables:
        yield "text", table.caption
        yield from _rows(table, f"{written.name}.json")
    yield "verdicts", [(check.passed, f"{check.claim} ({check.evidence})") for check in findings.checks]
    settings = [f"{key} {cell_text(value)}" for key, value in findings.settings.items()]
    if settings:
        yield "text", f"Settings: {', '.join(settings)}."
    yield "files", written.files


def _rows(table: ResultTable, file: str) -> Iterator[Block]:
    if len(table.rows) > LONGEST_TABLE:
        yield "text", f"{len(table.rows)} rows of `{table.name}`, in {file}."
    else:
        rows = [[cell_text(value) for value in row] for row in table.rows]
        yield "table" if len(rows) <= LONG_TABLE else "folded", table.columns, rows


def _markdown(block: Block) -> str:
    match block:
        case "title", text:
            return f"# {text}"
        case "heading", name, text:
            return f'<a id="{name}"></a>\n\n## {text}'
        case "picture", file, title:
            return f"![{title}]({file})"
        case "verdicts", verdicts:
            return "\n".join(
                f"- {'checked' if passed else '**failed**'}: {text}" for passed, text in verdicts
            )
        case "files", files:
            return "Files: " + ", ".join(f"[{file}]({file})" for file in files) + "."
        case "table", header, rows:
            return markdown_table(header, [[*map(_markdown_cell, row)] for row in rows])
        case "folded", header, rows:
            table = _markdown(("table", header, rows))
            return f"<details><summary>{len(rows)} rows</summary>\n\n{table}\n\n</details>"
    return str(block[1])


def _markdown_cell(cell: Any) -> str:
    match cell:
        case "link", target, text:
            return f"[{text}]({target})"
        case "verdict", passed:
            return "passed" if passed else "FAILED"
    return str(cell)


def _html(block: Block, folder: Path) -> str:
    match block:
        case "title", text:
            return f"<h1>{escape(text)}</h1>"
        case "heading", name, text:
            return f'<h2 id="{name}">{escape(text)}</h2>'
        case "picture", file, title:
            return _html_picture(folder / file, title)
        case "verdicts", verdicts:
            lines = (f'<li class="{_verdict(passed)}">{escape(text)}</li>' for passed, text in verdicts)
            return f"<ul>{''.join(lines)}</ul>"
        case "files", files:
            return "<p>Files: " + ", ".join(f'<a href="{file}">{file}</a>' for file in files) + ".</p>"
        case "table", header, rows:
            cells = "".join(f"<th>{escape(name)}</th>" for name in header)
            cells_of_rows = [cells, *("".join(map(_html_cell, row)) for row in rows)]
            body = "\n".join(f"<tr>{line}</tr>" for line in cells_of_rows)
            return f'<div class="table"><table>\n{body}\n</table></div>'
        case "folded", header, rows:
            table = _html(("table", header, rows), folder)
            return f"<details><summary>{len(rows)} rows</summary>{table}</details>"
    start, *code = escape(block[1]).split("`")
    marked = (f"<code>{part}</code>" if number % 2 == 0 else part for number, part in enumerate(code))
    return f"<p>{start}{''.join(marked)}</p>"


def _html_cell(cell: Any) -> str:
    match cell:
        case "link", target, text:
            return f'<td><a href="{target}">{escape(text)}</a></td>'
        case "verdict", passed:
            return f'<td class="{_verdict(passed)}"></td>'
    return f"<td>{escape(str(cell))}</td>"


def _html_picture(path: Path, title: str) -> str:
    content = path.read_bytes()
    kind, size = "image/svg+xml", ""
    if path.suffix == ".png":
        pixels = int.from_bytes(content[16:20], "big")  # the width, in the header
        kind, size = "image/png", f' width="{pixels * 120 // 200}"'  # drawn at 200 dpi, shown at 120
    data = base64.b64encode(content).decode("ascii")
    return f'<p><img{size} alt="{escape(title)}" src="data:{kind};base64,{data}"></p>'


def _verdict(passed: bool) -> str:
    return "passed" if passed else "failed"

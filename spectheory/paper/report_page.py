"""report.html: all figures, tables and checks in one file that needs no other and no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from spectheory.paper.claims.page import claims_counts
from spectheory.paper.exhibit import ResultTable, Written
from spectheory.paper.report_text import (
    CLAIMS,
    LONG_TABLE,
    LONGEST_TABLE,
    TITLE,
    cell_text,
    made_with,
    pictures,
    settings_text,
)

PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
body { font: 16px/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 3.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
a { color: #0072b2; }
img { max-width: 100%; height: auto; }
.table { overflow-x: auto; margin: 0.5rem 0 1.5rem; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.7rem; text-align: left; border-bottom: 1px solid #e4e4e4; }
th { white-space: nowrap; border-bottom-color: #777; }
ul { list-style: none; padding: 0; }
.passed::before { content: "✓ "; color: #007052; }
.failed::before { content: "✗ "; color: #d55e00; font-weight: bold; }
.source, .small { color: #555; font-size: 0.9rem; }
summary { cursor: pointer; }
@media print { h2 { break-before: page; } }
</style>
</head>
<body>
<h1>$title</h1>
<p>Made by <code>spectheory reproduce</code> with $made_with.</p>
<p class="$verdict"><b>$verdict_text</b></p>
<div class="table"><table>
<tr><th>result</th><th>source</th><th>checks</th></tr>
$contents
</table></div>
$sections
<h2 id="claims">Claims</h2>
<p>$claims_text</p>
$claims
</body>
</html>
""")


def html_report(exhibits: Sequence[Written], folder: Path) -> str:
    """The page.

    Args:
        exhibits: in the order in which they are shown.
        folder: where their files lie; the pictures become part of the page.
    """
    passed = all(written.findings.passed for written in exhibits)
    contents = (
        f'<tr><td><a href="#{written.name}">{escape(written.title)}</a></td><td>{escape(written.source)}</td>'
        f'<td class="{_verdict(written.findings.passed)}">{len(written.findings.checks)}</td></tr>'
        for written in exhibits
    )
    return PAGE.substitute(
        title=TITLE,
        made_with=escape(made_with(exhibits)),
        verdict=_verdict(passed),
        verdict_text="All checks passed." if passed else "Some checks failed.",
        contents="\n".join(contents),
        sections="\n".join(_section(written, folder) for written in exhibits),
        claims_text=escape(CLAIMS).replace("`spectheory claims`", "<code>spectheory claims</code>"),
        claims=_rows(claims_counts()),
    )


def _verdict(passed: bool) -> str:
    return "passed" if passed else "failed"


def _section(written: Written, folder: Path) -> str:
    findings = written.findings
    checks = (
        f'<li class="{_verdict(check.passed)}">{escape(check.claim)} ({escape(check.evidence)})</li>'
        for check in findings.checks
    )
    files = [*written.files, f"{written.name}.json"]
    return "\n".join(
        [
            f'<h2 id="{written.name}">{escape(written.title)}</h2>',
            f'<p class="source">{escape(written.source)}</p>',
            f"<p>{escape(findings.explanation)}</p>",
            *(_picture(folder / file, written.title) for file in pictures(written.files)),
            f"<ul>{''.join(checks)}</ul>",
            *map(_table, findings.tables),
            f'<p class="small">Settings: {escape(settings_text(findings))}.</p>',
            f'<p class="small">Files beside this page: {", ".join(map(_link, files))}.</p>',
        ]
    )


def _link(file: str) -> str:
    return f'<a href="{file}">{file}</a>'


def _picture(path: Path, title: str) -> str:
    content = path.read_bytes()
    kind, size = "image/svg+xml", ""
    if path.suffix == ".png":
        pixels = int.from_bytes(content[16:20], "big")  # the width, in the header
        kind, size = "image/png", f' width="{pixels * 120 // 200}"'  # drawn at 200 dpi, shown at 120
    data = base64.b64encode(content).decode("ascii")
    return f'<p><img{size} alt="{escape(title)}" src="data:{kind};base64,{data}"></p>'


def _table(table: ResultTable) -> str:
    caption = f"<p>{escape(table.caption)}</p>"
    if len(table.rows) > LONGEST_TABLE:
        return f'{caption}<p class="small">{len(table.rows)} rows, in {table.name}.csv.</p>'
    shown = _rows([table.columns, *([cell_text(value) for value in row] for row in table.rows)])
    if len(table.rows) <= LONG_TABLE:
        return caption + shown
    return f"{caption}<details><summary>{len(table.rows)} rows</summary>{shown}</details>"


def _rows(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its header."""
    lines = [
        "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(["th", *["td"] * len(rows)], rows, strict=False)
    ]
    return '<div class="table"><table>\n' + "\n".join(lines) + "\n</table></div>"

"""report.md and report.html: every reproduced figure and table on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spectheory.foundation.documents import replace_file
from spectheory.paper.claims.page import claims_summary
from spectheory.paper.exhibit import ResultTable, Written
from spectheory.paper.report_page import html_report
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


def write_report(exhibits: Sequence[Written | None], folder: Path) -> None:
    """Write both next to the files of the exhibits; no dates, so that they are reproducible."""
    shown = [written for written in exhibits if written is not None]
    parts = [_head(shown), *(_section(written) for written in shown), _claims()]
    replace_file(folder / "report.md", "\n".join(parts))
    replace_file(folder / "report.html", html_report(shown, folder))


def _head(exhibits: Sequence[Written]) -> str:
    verdict = "All checks passed." if all(w.findings.passed for w in exhibits) else "**Some checks failed.**"
    lines = [
        f"# {TITLE}",
        "",
        f"Made by `spectheory reproduce` with {made_with(exhibits)}. {verdict}",
        "",
        "| result | source | checks |",
        "|---|---|---|",
        *(
            f"| [{w.title}](#{w.name}) | {w.source} | {'passed' if w.findings.passed else 'FAILED'} |"
            for w in exhibits
        ),
        "",
    ]
    return "\n".join(lines)


def _claims() -> str:
    lines = [
        "## Claims",
        "",
        CLAIMS,
        "",
        claims_summary(),
        "",
    ]
    return "\n".join(lines)


def _section(written: Written) -> str:
    findings = written.findings
    lines = [
        f'<a id="{written.name}"></a>',
        "",
        f"## {written.title}",
        "",
        f"Source: {written.source}.",
        "",
    ]
    lines += [findings.explanation, ""]
    lines += [f"![{written.title}]({file})\n" for file in pictures(written.files)]
    for table in findings.tables:
        lines += [table.caption, "", _markdown_table(table), ""]
    for check in findings.checks:
        lines += [f"- {'checked' if check.passed else '**failed**'}: {check.claim} ({check.evidence})"]
    lines += [f"- settings: {settings_text(findings)}"]
    files = [*written.files, f"{written.name}.json"]
    lines += ["- files: " + ", ".join(f"[{name}]({name})" for name in files), ""]
    return "\n".join(lines)


def _markdown_table(table: ResultTable) -> str:
    if len(table.rows) > LONGEST_TABLE:
        return f"{len(table.rows)} rows, in [{table.name}.csv]({table.name}.csv)."
    lines = [
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * len(table.columns),
        *("| " + " | ".join(cell_text(value) for value in row) + " |" for row in table.rows),
    ]
    text = "\n".join(lines)
    if len(table.rows) <= LONG_TABLE:
        return text
    return f"<details><summary>{len(table.rows)} rows</summary>\n\n{text}\n\n</details>"

"""report.md: every reproduced figure and table on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.documents import decimal_text, replace_file
from spectheory.paper.claims.page import claims_summary
from spectheory.paper.exhibit import ResultTable, Written

LONG_TABLE = 12
"""Rows up to which a table is shown open."""
LONGEST_TABLE = 60
"""Rows up to which it is shown at all; longer ones are in their CSV file."""


def write_report(exhibits: Sequence[Written | None], folder: Path) -> None:
    """Write report.md next to the files of the exhibits; no dates, so that it is reproducible."""
    shown = [written for written in exhibits if written is not None]
    parts = [_head(shown), *(_section(written) for written in shown), _claims()]
    replace_file(folder / "report.md", "\n".join(parts))


def _head(exhibits: Sequence[Written]) -> str:
    verdict = "All checks passed." if all(w.findings.passed for w in exhibits) else "**Some checks failed.**"
    made_with = list(dict.fromkeys(_versions(written.made_with) for written in exhibits))
    lines = [
        "# Reproduced figures and tables",
        "",
        f"Made by `spectheory reproduce` with {'; '.join(made_with)}. {verdict}",
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
        "The statements of the papers by verdict; `spectheory claims` lists them with their evidence.",
        "",
        claims_summary(),
        "",
    ]
    return "\n".join(lines)


def _versions(made_with: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in made_with.items())


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
    lines += [f"![{written.title}]({file})\n" for file in _pictures(written.files)]
    for table in findings.tables:
        lines += [table.caption, "", _markdown_table(table), ""]
    for check in findings.checks:
        lines += [f"- {'checked' if check.passed else '**failed**'}: {check.claim} ({check.evidence})"]
    lines += ["- settings: " + ", ".join(f"{key} {_text(value)}" for key, value in findings.settings.items())]
    files = [*written.files, f"{written.name}.json"]
    lines += ["- files: " + ", ".join(f"[{name}]({name})" for name in files), ""]
    return "\n".join(lines)


def _pictures(files: Sequence[str]) -> list[str]:
    """One file per figure, in a format that browsers show."""
    stems = dict.fromkeys(file.rpartition(".")[0] for file in files if file.endswith((".png", ".svg")))
    return [
        next(f"{stem}.{ending}" for ending in ("png", "svg") if f"{stem}.{ending}" in files) for stem in stems
    ]


def _markdown_table(table: ResultTable) -> str:
    if len(table.rows) > LONGEST_TABLE:
        return f"{len(table.rows)} rows, in [{table.name}.csv]({table.name}.csv)."
    lines = [
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * len(table.columns),
        *("| " + " | ".join(_text(value) for value in row) + " |" for row in table.rows),
    ]
    text = "\n".join(lines)
    if len(table.rows) <= LONG_TABLE:
        return text
    return f"<details><summary>{len(table.rows)} rows</summary>\n\n{text}\n\n</details>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return decimal_text(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(_text(entry) for entry in value)
    return str(value)

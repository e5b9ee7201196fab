"""report.md: every reproduced figure and table on one page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spectheory import __version__
from spectheory.documents import decimal_text, plain
from spectheory.paper.artifact import Artifact, ResultTable

LONG_TABLE = 12


def write_report(artifacts: Sequence[Artifact], command: str, folder: Path) -> None:
    """Write report.md next to the files of the artifacts; no dates, so that it is reproducible."""
    parts = [_head(artifacts, command), *(_section(artifact) for artifact in artifacts)]
    (folder / "report.md").write_text("\n".join(parts), encoding="utf-8")


def _head(artifacts: Sequence[Artifact], command: str) -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib", "torch"))
    verdict = "All checks passed." if all(a.passed for a in artifacts) else "**Some checks failed.**"
    lines = [
        "# Reproduced figures and tables",
        "",
        f"Made by `{command}` with spectheory {__version__} ({libraries}). {verdict}",
        "",
        "| result | source | checks |",
        "|---|---|---|",
        *(
            f"| [{a.title}](#{a.name}) | {a.source} | {'passed' if a.passed else 'FAILED'} |"
            for a in artifacts
        ),
        "",
    ]
    return "\n".join(lines)


def _section(artifact: Artifact) -> str:
    lines = [
        f'<a id="{artifact.name}"></a>',
        "",
        f"## {artifact.title}",
        "",
        f"Source: {artifact.source}.",
        "",
    ]
    lines += [artifact.explanation, ""]
    lines += [f"![{artifact.title}]({stem}.png)\n" for stem in artifact.figures]
    for table in artifact.tables:
        lines += [table.caption, "", _markdown_table(table), ""]
    lines += [f"- checked: {check}" for check in artifact.checks]
    lines += [f"- **failed**: {failure}" for failure in artifact.failures]
    lines += ["- settings: " + ", ".join(f"{key} {_text(value)}" for key, value in artifact.settings.items())]
    lines += ["- files: " + ", ".join(f"[{name}]({name})" for name in artifact.files), ""]
    return "\n".join(lines)


def _markdown_table(table: ResultTable) -> str:
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
    if isinstance(value, bool):
        return "yes" if value else "NO"
    value = plain(value)
    if isinstance(value, float):
        return decimal_text(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(_text(entry) for entry in value)
    return str(value)

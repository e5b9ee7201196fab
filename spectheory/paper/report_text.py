"""What the two reports, Markdown and HTML, say in the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectheory.foundation.documents import decimal_text
from spectheory.paper.exhibit import Findings, Written

TITLE = "Reproduced figures and tables"
CLAIMS = "The statements of the papers by verdict; `spectheory claims` lists them with their evidence."
LONG_TABLE = 12
"""Rows up to which a table is shown open."""
LONGEST_TABLE = 60
"""Rows up to which it is shown at all; longer ones are in their CSV file."""


def cell_text(value: Any) -> str:
    """A cell of a table, or a setting.

    Example:
        >>> cell_text([1, True, None, 2 / 3])
        '1; yes; ; 0.666667'
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return decimal_text(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(cell_text(entry) for entry in value)
    return str(value)


def settings_text(findings: Findings) -> str:
    """All settings in one line."""
    return ", ".join(f"{key} {cell_text(value)}" for key, value in findings.settings.items())


def made_with(exhibits: Sequence[Written]) -> str:
    """The versions that computed the exhibits, each combination once."""
    return "; ".join(dict.fromkeys(_versions(written.made_with) for written in exhibits))


def _versions(numbers: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def pictures(files: Sequence[str]) -> list[str]:
    """One file per figure, in a format that browsers show.

    Example:
        >>> pictures(["a.pdf", "a.png", "a.svg", "b.svg", "c.pdf"])
        ['a.png', 'b.svg']
    """
    stems = dict.fromkeys(file.rpartition(".")[0] for file in files if file.endswith((".png", ".svg")))
    return [
        next(f"{stem}.{ending}" for ending in ("png", "svg") if f"{stem}.{ending}" in files) for stem in stems
    ]

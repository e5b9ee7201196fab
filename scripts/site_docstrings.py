"""Examples and formulas of docstrings, as the documentation site shows them: in blocks of code."""

import re
from textwrap import dedent
from typing import Any

import griffe

SECTION = re.compile(r"(?:Args|Attributes|Example|Raises|Returns|Yields)\b.*:$")


class CodeBlocks(griffe.Extension):
    """Applied by mkdocstrings to every object it shows (see mkdocs.yml)."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """Fences around ``>>>`` examples, and around indented formulas that are in no section."""
    paragraphs, in_section = [], False
    for paragraph in docstring.split("\n\n"):
        lines = paragraph.splitlines()
        for line in lines:
            if line and not line.startswith(" "):
                in_section = SECTION.match(line) is not None
        first = next((n for n, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
        if first is not None:
            margin = lines[first][: lines[first].index(">")]
            lines = [*lines[:first], f"{margin}```pycon", *lines[first:], f"{margin}```"]
        elif not in_section and all(line.startswith("    ") for line in lines):
            lines = ["```text", dedent(paragraph), "```"]
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)

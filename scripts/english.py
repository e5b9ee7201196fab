"""Count what makes our English hard to read: ``python scripts/english.py``.  It is a help, and no gate.

Counted in docs, in docstrings and in the texts that the package prints: words per sentence, sentences of more
than 25 words, the words *behind* and *that of*, and sentences that begin with a bare *What* or *Which*.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATTERNS = {
    "behind": re.compile(r"\bbehind\b", re.IGNORECASE),
    "that of": re.compile(r"\b(?:that|those) of\b", re.IGNORECASE),
    "bare relatives": re.compile(r"(?:^|[.:;]\s+)(?:What|Whoever|Which)\b(?![^.]*\?)", re.MULTILINE),
}
LONG = 25
"""Words of a sentence that is read twice."""
CODE = re.compile(r"```[\s\S]*?```|<[^>]+>|`[^`]*`|\$[^$]*\$|^\|.*$|^ {4}.*$|^>>>.*$", re.MULTILINE)
SENTENCE = re.compile(r"[^.!?]+[.!?](?=\s|$)")


def pages() -> Iterator[str]:
    """The texts of README and docs, without code, tables and formulas."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if path.parent.name != "claims":
            yield re.sub(CODE, " ", path.read_text(encoding="utf-8"))


def strings(docstrings: bool) -> Iterator[str]:
    """The docstrings of the package, or its other texts with at least one blank."""
    for path in sorted((ROOT / "spectheory").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        own = [node for node in ast.walk(tree) if isinstance(node, documented)]
        described = [ast.get_docstring(node) or "" for node in own]
        if docstrings:
            yield from (re.sub(CODE, " ", text) for text in described)
        else:
            texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
            inside = {" ".join(text.split()) for text in described}
            yield from (
                text
                for text in texts
                if isinstance(text, str) and text.count(" ") > 3 and " ".join(text.split()) not in inside
            )


def counted(texts: Iterator[str]) -> dict[str, float]:
    """The counts of some texts."""
    read = list(texts)
    lengths = [len(sentence.split()) for text in read for sentence in SENTENCE.findall(text)]
    found: dict[str, float] = {
        "words per sentence": round(sum(lengths) / max(len(lengths), 1), 1),
        f"sentences over {LONG} words": sum(length > LONG for length in lengths),
    }
    return found | {name: sum(len(p.findall(text)) for text in read) for name, p in PATTERNS.items()}


def main() -> int:
    """Print a line per kind of text."""
    for name, texts in (("docs", pages()), ("docstrings", strings(True)), ("messages", strings(False))):
        print(name, *(f"{what} {value}" for what, value in counted(texts).items()), sep="; ")
    return 0


if __name__ == "__main__":
    sys.exit(main())

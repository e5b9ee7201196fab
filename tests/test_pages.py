"""``scripts/lint_pages.py`` can fail: links, names, formulas, citations and notebooks that are wrong."""

import json
import re
from pathlib import Path

import pytest

from scripts import load

lint = load("scripts", "lint_pages")


@pytest.mark.parametrize("text", ["[a](no.md)", "[a](#no)", "`spectheory.no_such_name`"])
def test_dead_links(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n[a](page.md) [b](#a-title) [c](https://d.e/f) `[d](no.md)` `spectheory.certify`\n"
    )
    assert list(lint.dead_links(page)) == []
    page.write_text(text)
    assert len(list(lint.dead_links(page))) == 1


FAULTY = [r"$\{x\}$", r"$\hat{x}_1$", "$ x$", "$x$-th", "$a<b$", "$[a](b)$", "$$ x $$", "a $x", "| $|a|$ |"]


@pytest.mark.parametrize("text", FAULTY)
def test_wrong_formulas(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("$a_1 < b$ and\n\n$$\nx\n$$\n")
    assert list(lint.wrong_formulas(page)) == []
    page.write_text(text)
    assert list(lint.wrong_formulas(page)) != []


def test_wrong_citations() -> None:
    known = {"spectr2023"}, {"§3", "3.2", "3.4"}
    assert (
        list(lint.wrong_citations("spectr2023 Eq. 4; theory.md §3; theory.md Statements 3.2 and 3.4", *known))
        == []
    )
    for wrong in ("nobody" + "1999", "theory.md §" + "9", "theory.md Statements 3.2, " + "3.5 and 3.4"):
        assert len(list(lint.wrong_citations(wrong, *known))) == 1


def test_stale_outputs(tmp_path: Path) -> None:
    notebook = tmp_path / "one.ipynb"
    for source, count, complaints in (("1", 1, 0), ("2", 1, 1), ("1", 7, 1)):
        cells = [{"cell_type": "code", "source": source, "execution_count": count, "metadata": {}}]
        known = lint.code_hash({"cells": [{**cells[0], "source": "1"}]})
        notebook.write_text(json.dumps({"cells": cells, "metadata": {"spectheory": {"code_sha256": known}}}))
        assert len(list(lint.stale_outputs(notebook))) == complaints


def test_a_row_that_is_missing() -> None:
    page = lint.VERIFIERS.read_text(encoding="utf-8")
    row = lint.row("block", lint.verifiers["block"])
    assert row in page
    assert lint.with_table(page.replace(row, "")) == page


WRITTEN = {"four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
NUMBERS = {
    "released samplers": r"of (\w+) released samplers",
    "not lossless": r"(\w+) of them are not lossless",
    "findings": r"and (\w+)\s+\[findings\]",
    "claims": r"\[(\w+) claims\]",
    "refuted": r"(\w+) are refuted",
    "misprints": r"(\w+) are misprints",
    "theorems": r"\[(\w+) theorems and examples\]",
    "gain": r"earns (0\.\d+) tokens per call more",
}
"""What README's section *What it has found* counts, and where the number stands."""


def stated_numbers(readme: str) -> dict[str, float]:
    """The numbers of README, by what is counted."""
    given = {what: re.search(pattern, readme) for what, pattern in NUMBERS.items()}
    return {
        what: float(WRITTEN.get(match[1].lower(), match[1])) if match else -1 for what, match in given.items()
    }


def counted_numbers() -> dict[str, float]:
    """The same, counted in the pages and data that README links to."""
    docs = lint.ROOT / "docs"
    row = re.compile(r"^\| `([^`]+)` \|[^|]*\|[^|]*\| ([^|]*) \|", re.MULTILINE)
    newest = [verdict for name, verdict in row.findall(lint.text_of(docs / "audits.md")) if "==" not in name]
    verdicts = [claim.verdict for claim in lint.claims.all_claims()]
    table = json.loads(lint.text_of(lint.ROOT / "figures" / "paired_gains.json"))["tables"][0]
    gains = {row[0]: row[table["columns"].index("gain")] for row in table["rows"]}
    return {
        "released samplers": len(newest),
        "not lossless": newest.count("not lossless"),
        "findings": len(list((docs / "findings").glob("*.md"))) - 1,
        "claims": len(verdicts),
        "refuted": verdicts.count("refuted"),
        "misprints": verdicts.count("misprint"),
        "theorems": lint.text_of(lint.ROOT / "proofs" / "assumptions.txt").count(
            "Closed under the global context"
        ),
        "gain": round(gains["scored_multipath"], 2),
    }


def test_the_numbers_of_the_readme() -> None:
    readme = lint.text_of(lint.README)
    assert stated_numbers(readme) == counted_numbers()
    for number in ("44", "17", "146 ", "0.43 tokens"):
        assert stated_numbers(readme.replace(number, "9")) != counted_numbers()


def unsaid(page: str) -> list[str]:
    """Quotations in the first column of a table that no source of the audits says."""
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    sources = [lint.text_of(path) for path in (lint.ROOT / "spectheory" / "auditing").rglob("*.py")]
    return [words for words in quoted if not any(words in source for source in sources)]


def test_the_page_of_undecided_audits_quotes_the_program() -> None:
    page = lint.text_of(lint.ROOT / "docs" / "undecided.md")
    assert unsaid(page) == []
    assert unsaid(page.replace("`the time is up`", "`the time is over`")) == ["the time is over"]


def test_the_readme_is_short() -> None:
    assert len(lint.text_of(lint.README).splitlines()) <= 150

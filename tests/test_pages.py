"""``scripts/lint_pages.py`` can fail: links, names, formulas, citations and notebooks that are wrong."""

import json
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
    page = lint.README.read_text(encoding="utf-8")
    row = lint.row("block", lint.verifiers["block"])
    assert row in page
    assert lint.with_table(page.replace(row, "")) == page

"""What an exhibit writes: the same bytes every time, the same numbers in every file."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper_support import SMALL, read_csv, small
from spectheory.foundation.errors import InvalidInputError
from spectheory.paper import (
    EXHIBITS,
    Check,
    otm_bernoulli,
    otm_uniform,
    read_exhibit,
    token_tree,
    write_exhibit,
    write_report,
)


@pytest.mark.parametrize("name", SMALL)
def test_a_rerun_and_every_file_have_the_same_numbers(name: str, tmp_path: Path) -> None:
    """Computed twice; CSV, JSON and report against what was computed."""
    assert SMALL.keys() == EXHIBITS.keys()
    findings = small(name)
    assert findings.failures == []
    assert findings.checks
    assert SMALL[name]().to_document() == findings.to_document()
    written = write_exhibit(EXHIBITS[name], findings, tmp_path, ["svg"])
    write_report([written], tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == sorted([*written.to_document()["files"], "report.html", "report.md"])
    read = read_exhibit(name, tmp_path)
    assert read is not None
    assert read.findings.to_document() == findings.to_document()
    for table in read.findings.tables:
        from_csv = read_csv(tmp_path / f"{table.name}.csv")
        assert len(from_csv) == len(findings.table(table.name).rows) > 0
        for left, right in zip(from_csv, table.select(), strict=True):
            assert left == {key: "" if value is None else str(value) for key, value in right.items()}
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert all(file in report for file in written.to_document()["files"])


@pytest.mark.parametrize("name", ["otm_uniform", "spectr_gbv_bound", "latency"])
def test_the_same_numbers_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    """In every format; the partner: other numbers give another picture."""
    findings = small(name)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        written = write_exhibit(EXHIBITS[name], findings, folder, ["pdf", "png", "svg"])
        write_report([written], folder)
    files = sorted(path.name for path in first.iterdir())
    assert {Path(file).suffix for file in files} == {".csv", ".json", ".pdf", ".png", ".svg", ".md", ".html"}
    assert files == sorted(path.name for path in second.iterdir())
    for file in files:
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    if name == "otm_uniform":
        write_exhibit(EXHIBITS[name], otm_uniform(120, (60, 40), max_drafts=3), second, ["png"])
        (picture,) = first.glob("*.png")
        assert picture.read_bytes() != (second / picture.name).read_bytes()


def test_the_longest_tables_are_left_to_their_files(tmp_path: Path) -> None:
    """The 677 antichains of L = 3 are in the CSV file, the 26 of L = 2 in the report too."""
    for length, shown in ((2, True), (3, False)):
        written = write_exhibit(token_tree, token_tree(draft_length=length), tmp_path)
        write_report([written], tmp_path)
        report = (tmp_path / "report.md").read_text(encoding="utf-8")
        assert ("26 rows</summary>" in report) == shown
        assert ("677 rows, in [token_tree_antichains.csv]" in report) != shown


def test_figures_embed_their_fonts(tmp_path: Path) -> None:
    write_exhibit(otm_bernoulli, small("otm_bernoulli"), tmp_path)
    content = (tmp_path / "otm_bernoulli.pdf").read_bytes()
    assert b"/FontFile2" in content  # TrueType, embedded
    assert b"/Type3" not in content
    assert b"CreationDate" not in content


def test_a_check_of_nothing_is_refused() -> None:
    """Partner of every check: one that compared no case could not fail."""
    with pytest.raises(InvalidInputError, match="was tried on nothing"):
        Check.of("all zero cases agree", 0, [])

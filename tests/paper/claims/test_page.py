"""docs/claims.md and the report say what the claims say."""

import re
from pathlib import Path

from spectheory.paper import claims_page, write_report
from spectheory.paper.claims.page import claims_summary
from spectheory.paper.claims.statements import PAPERS, all_claims, count_verdicts, select_claims

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "claims.md"


def test_the_committed_page_is_what_the_claims_give() -> None:
    """If this fails: ``python -c "import spectheory; print(spectheory.paper.claims_page(), end='')"``."""
    assert PAGE.read_text(encoding="utf-8") == claims_page()


def test_every_row_of_the_page_has_all_its_cells() -> None:
    """Eight cells per statement, bars inside cells escaped; links lead to files."""
    rows = [line for line in claims_page().splitlines() if re.match(r"\| (SP|BV|GM|SG)-", line)]
    assert len(rows) == len(all_claims())
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 9, row
        for target in re.findall(r"\]\(([^)#]+)", row):
            assert (PAGE.parent / target).exists(), target


def test_the_summary_counts_every_statement() -> None:
    """One row per paper and their sum."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in claims_summary().splitlines()]
    assert [row[0] for row in rows[2:]] == [*PAPERS, "all"]
    for paper, row in zip(PAPERS, rows[2:], strict=False):
        counts = count_verdicts(select_claims(paper))
        assert [int(cell) for cell in row[1:]] == [*counts.values(), sum(counts.values())]
    assert [int(cell) for cell in rows[-1][1:]] == [
        sum(int(row[column]) for row in rows[2:-1]) for column in range(1, len(rows[0]))
    ]


def test_the_report_has_the_counts(tmp_path: Path) -> None:
    write_report([], tmp_path)
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## Claims" in report
    assert claims_summary() in report


def test_the_committed_report_has_the_same_counts() -> None:
    """figures/report.md; ``spectheory reproduce --redraw --out figures`` writes it from the numbers there."""
    report = (PAGE.parent.parent / "figures" / "report.md").read_text(encoding="utf-8")
    assert claims_summary() in report

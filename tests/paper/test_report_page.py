"""report.html: whole in itself, with the pictures, the numbers and the verdicts of the exhibits."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from paper_support import small
from spectheory.paper import EXHIBITS, Check, write_exhibit
from spectheory.paper.claims.page import claims_counts
from spectheory.paper.report_page import html_report


class Balanced(HTMLParser):
    """Tags that are opened and closed in order; what is linked and shown; the texts of cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [given["href"] or ""] if "href" in given else []
        self.sources += [given["src"] or ""] if "src" in given else []
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_whole_in_itself(tmp_path: Path) -> None:
    """Pictures inside, byte for byte; no script, nothing from elsewhere; links to its sections and files."""
    names = ("two_token_table", "otm_bernoulli")
    written = [write_exhibit(EXHIBITS[name], small(name), tmp_path) for name in names]
    page = html_report(written, tmp_path)
    read = Balanced(page)
    assert read.open == []
    assert [base64.b64decode(source.partition(",")[2]) for source in read.sources] == [
        (tmp_path / "otm_bernoulli.png").read_bytes()
    ]
    assert "<script" not in page
    assert "://" not in page
    ids = set(re.findall(r' id="(\w+)"', page))
    assert {link[1:] for link in read.links if link.startswith("#")} == set(names) < ids
    assert {link for link in read.links if not link.startswith("#")} == {
        file for one in written for file in one.to_document()["files"]
    }
    cells = [unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", page)]
    for row in [
        *claims_counts()[1:],
        *([str(value) for value in row] for row in written[0].findings.tables[0].rows[:1]),
    ]:
        assert set(row) - {"None", "True"} <= set(cells)


def test_partner_a_failed_check_is_seen(tmp_path: Path) -> None:
    """At the top, in the contents and at the check; texts are escaped."""
    written = write_exhibit(EXHIBITS["two_token_table"], small("two_token_table"), tmp_path)
    assert 'class="failed"' not in html_report([written], tmp_path)
    false = Check("1 < 0 & more", False, "1 of 1 failed")
    wrong = replace(written, findings=replace(written.findings, checks=[false]))
    page = html_report([wrong], tmp_path)
    assert page.count('class="failed"') == 3
    assert "Some checks failed." in page
    assert "1 &lt; 0 &amp; more" in page

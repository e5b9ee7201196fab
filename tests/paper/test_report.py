"""report.html: whole in itself, with the pictures, the numbers and the verdicts of the exhibits."""

import base64
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from paper_support import small_once
from spectheory.paper import EXHIBITS, Check, Written, write_exhibit, write_report
from spectheory.paper.claims.page import claims_counts


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


def page_of(written: list[Written], folder: Path) -> str:
    write_report(written, folder)
    return (folder / "report.html").read_text(encoding="utf-8")


def test_page_is_whole_in_itself(tmp_path: Path) -> None:
    """Pictures inside, byte for byte; no script, nothing from elsewhere; links to its sections and files."""
    names = ("two_token_table", "otm_bernoulli")
    written = [write_exhibit(EXHIBITS[name], small_once(name), tmp_path) for name in names]
    page = page_of(written, tmp_path)
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
        file for one in written for file in one.files
    }
    cells = [unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", page)]
    for row in claims_counts()[1:]:
        assert set(row) <= set(cells)
    assert {"2/3 = 0.666667", "5/3 = 1.666667", "yes"} <= set(cells)


def test_partner_a_failed_check_is_seen(tmp_path: Path) -> None:
    """At the top, in the contents and at the check; texts are escaped."""
    written = write_exhibit(EXHIBITS["two_token_table"], small_once("two_token_table"), tmp_path)
    assert 'class="failed"' not in page_of([written], tmp_path)
    false = Check("1 < 0 & more", 1, ["it is not"])
    page = page_of([replace(written, findings=replace(written.findings, checks=[false]))], tmp_path)
    assert page.count('class="failed"') == 3
    assert "Some checks failed." in page
    assert "1 &lt; 0 &amp; more" in page

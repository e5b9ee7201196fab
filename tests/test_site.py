"""Pages that the site makes: cut pages, cards of claims, the scoreboard, and the explorer's numbers."""

import re
import shutil
import subprocess
from collections import Counter
from random import Random

import pytest

from figures.release_grid import COLOURS
from scripts import load

site = load("scripts", "site_sections")
explorer = load("scripts", "explorer")
claims = load("scripts", "claims")
DOCS = site.ROOT / "docs"


@pytest.mark.parametrize("name", [*site.CUTS])
def test_cut_pages_have_every_line_once(name: str) -> None:
    parts = site.sections(name)
    assert len(parts) > (8 if name in ("theory.md", "command_line.md", "benchmarks/README.md") else 2)
    assert len({part.uri for part in parts}) == len(parts)
    headings = re.compile(r"^#{1,3} .*\n|^<a id=.*\n", re.MULTILINE)
    whole = headings.sub("", ((site.ROOT if "/" in name else DOCS) / name).read_text(encoding="utf-8"))
    cut = "".join(headings.sub("", part.text) for part in parts)
    assert Counter(filter(None, whole.splitlines())) == Counter(filter(None, cut.splitlines()))


def test_an_anchor_leads_to_the_page_that_has_it() -> None:
    found = site.addresses("theory.md")
    assert found["statement-4-2"] == "theory/4-one-path.md"
    assert found["recoupling"] == "theory/recoupling.md"
    assert site.addresses("command_line.md")["plan"] == "command_line/plan.md"
    assert "no-such-heading" not in found


def test_the_scoreboard_has_a_column_of_the_suite() -> None:
    """The letter of a verdict, with its claim; every sampler that was run has one."""
    audits, by_release = ((DOCS / name).read_text("utf-8") for name in ("audits.md", "audits_by_release.md"))
    row = {"version": "1.0", "verdict": "does not conform", "claims": "token", "by": "laws"}
    for verdict, letter in {"conforms": "C", "does not conform": "N", "undecided": "?"}.items():
        page = site.scoreboard(audits, by_release, {"vllm": {**row, "verdict": verdict}})
        cell = f'title="1.0: {verdict} to token, by laws">{letter}</span>'
        assert [cell in line for line in page.splitlines() if line.startswith('<tr id="vllm">')] == [True]
        assert page.count(cell) == 1


def test_the_explorer_shows_what_the_package_computes() -> None:
    stored = explorer.stored()
    settings = list(explorer.settings())
    assert list(stored) == [",".join(map(str, setting)) for setting in settings]
    for setting in Random(20261128).sample(settings, 8):
        found = explorer.explored(setting)
        assert stored[",".join(map(str, setting))] == found
        assert explorer.explored((1, *setting[1:])) != found or setting[0] == 1


def shown(address: str) -> str:
    """The explorer's page after its script has run."""
    page = (DOCS / "explorer.html").as_uri()
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run(
        ["chromium", *arguments, page + address], capture_output=True, text=True, timeout=120
    )
    return done.stdout


def test_every_claim_has_a_card() -> None:
    page = site.claim_cards(claims.claims_page())
    assert page.count('<div class="claim"') == len(claims.all_claims())
    for claim in claims.all_claims()[::20]:
        assert f"**{claim.id}**" in page
        assert claim.claim in page
    with pytest.raises(ValueError, match="7 cells"):
        site.claim_cards(claims.claims_page().replace(" | **proved** | ", " | ", 1))


def test_the_scoreboard_has_the_stored_verdicts() -> None:
    audits, by_release = ((DOCS / name).read_text("utf-8") for name in ("audits.md", "audits_by_release.md"))
    page = site.scoreboard(audits, by_release, {})
    assert page.count('<tr id="') == len(site.newest_releases(audits)) > 30
    row = re.search(r'<tr id="hsd">.*', page)[0]
    assert 'class="score not-lossless"' in row
    changed = audits.replace("| hierarchical (HSD) | not lossless |", "| hierarchical (HSD) | lossless |")
    row = re.search(r'<tr id="hsd">.*', site.scoreboard(changed, by_release, {}))[0]
    assert 'class="score not-lossless"' not in row
    assert "0.23.0: not lossless" in re.search(r'<tr id="vllm">.*', page)[0]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.deep
def test_the_explorer_in_a_browser() -> None:
    for setting in ((4, 8, 2, 2), (3, 6, 3, 1)):
        page, found = shown("#" + ",".join(map(str, setting))), explorer.explored(setting)
        assert f"best possible: {found['optimum']} " in page
        rows = dict(re.findall(r'data-name="(\w+)".*?title="([^"]*)"', page, re.DOTALL))
        assert rows == {name: told[0] for name, told in found["verifiers"].items()}
        wrong = re.findall(r'<tr class="wrong" data-name="(\w+)"', page)
        assert sorted(wrong) == sorted(name for name, told in found["verifiers"].items() if len(told) > 1)


def test_the_grid_has_the_letters_and_colours_of_the_scoreboard() -> None:
    css = (DOCS / "assets" / "site.css").read_text(encoding="utf-8")
    for verdict, (letter, name) in site.LETTERS.items():
        assert COLOURS[verdict][0] == letter
        assert f".score.{name} {{ background: {COLOURS[verdict][1]}; }}" in css

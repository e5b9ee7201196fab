"""The documentation site: what is made for it, and that dead links of a built one are found.

``make docs`` builds it strictly and checks all its links.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import basename, normpath
from typing import Any

import pytest
import yaml

from scripts import load

ROOT = Path(__file__).parent.parent


pages, links, docstrings = (load("scripts", f"site_{name}") for name in ("pages", "links", "docstrings"))


def test_every_reference_has_an_anchor_and_all_it_says() -> None:
    """One entry per key, with title, year and where it is; nothing of BibTeX is left."""
    bibliography = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
    page = pages.references_page(bibliography)
    keys = [line.split("{")[1].rstrip(",") for line in bibliography.splitlines() if line.startswith("@")]
    assert len(keys) > 10
    for key in keys:
        assert page.count(f'<a id="{key}"></a>') == 1, key
        entry = page.split(f"**{key}**")[1].split("<a id")[0]
        assert "http" in entry, key
        assert key[-4:] in entry, key
    assert "{" not in page
    assert "Ziteng Sun, Ananda Theertha Suresh" in page


@pytest.mark.parametrize(
    ("uri", "markdown", "expected"),
    [
        ("index.md", "[t](docs/theory.md#s)", "[t](theory.md#s)"),
        ("index.md", "![p](figures/winners.png)", "![p](figures/winners.png)"),
        ("index.md", "[c](CITATION.cff) [n](notebooks/)", "c [n](notebooks/01_two_token_example.md)"),
        ("claims/index.md", "[r](../../figures/winners.json)", "[r](../figures/winners.json)"),
        ("claims/index.md", "[test_a](../../tests/test_a.py#test_a)", "[test_a](../tests/test_a.md#test_a)"),
        ("claims/index.md", "[test_b](../../tests/test_b.py)", "test_b"),
        ("benchmarks/README.md", "![p](results/a.png)", "![p](results/a.png)"),
        ("limits.md", "[a](#b) [c](https://d.e)", "[a](#b) [c](https://d.e)"),
    ],
)
def test_links_between_files_become_links_between_pages(uri: str, markdown: str, expected: str) -> None:
    """Also where the site has the file elsewhere; a file that is no part of it becomes text."""
    site = {"theory.md", "figures/winners.json", "figures/winners.png", "benchmarks/results/a.png"}
    site |= {"notebooks/01_two_token_example.md", "tests/test_a.md"}
    assert pages.page_links(markdown, uri, site.__contains__) == expected


def test_code_is_left_alone() -> None:
    page = "a `a`\n\n    a\n\n```python\na\n```\na"
    assert pages.outside_code(page, str.upper) == "A `a`\n\n    a\n\n```python\na\n```\nA"


def hidden_pages(config: dict[str, Any]) -> list[str]:
    """Pages that the navigation does not show under the title it gives them.

    With ``navigation.indexes`` an index or README inside of a section becomes the page of that section.
    """

    def pages_in(entries: list[Any], depth: int) -> Iterator[tuple[str, int]]:
        for entry in entries:
            for value in entry.values():
                yield from [(value, depth)] if isinstance(value, str) else pages_in(value, depth + 1)

    taken = "navigation.indexes" in config["theme"]["features"]
    return [
        page
        for page, depth in pages_in(config["nav"], 0)
        if taken and depth > 0 and basename(page) in ("index.md", "README.md")
    ]


def unreached_pages(markdown: dict[str, str], config: dict[str, Any]) -> set[str]:
    """Pages of ``docs/`` to which no links lead from the navigation.

    Args:
        markdown: page -> its text.
        config: of mkdocs.
    """
    waiting = re.findall(r"[\w/]+\.md", str(config["nav"]))
    reached = set[str]()
    while waiting:
        page = waiting.pop()
        if page not in reached and page in markdown:
            reached.add(page)
            links_of = re.findall(r"\]\(([^)#:]+\.md)", markdown[page])
            waiting += [normpath(f"{page.rpartition('/')[0] or '.'}/{link}") for link in links_of]
    return markdown.keys() - reached


def test_every_page_is_in_the_navigation() -> None:
    """Each page at the top of ``docs/`` itself, those below it through links; and all under their titles."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    docs = ROOT / "docs"
    markdown = {path.relative_to(docs).as_posix(): path.read_text("utf-8") for path in docs.rglob("*.md")}
    assert {page for page in markdown if "/" not in page and page not in str(config["nav"])} == set()
    assert unreached_pages(markdown, config) == set()
    assert hidden_pages(config) == []
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {page for page in notebooks if page not in str(config["nav"])} == set()


def test_partner_pages_that_are_hidden_or_not_linked_are_found() -> None:
    nav = [{"Start": "index.md"}, {"Papers": [{"Audits": "audits.md"}, {"Findings": "findings/index.md"}]}]
    config = {"nav": nav, "theme": {"features": ["navigation.tabs", "navigation.indexes"]}}
    assert hidden_pages(config) == ["findings/index.md"]
    assert hidden_pages(config | {"theme": {"features": ["navigation.tabs"]}}) == []
    pages_now = {
        "audits.md": "",
        "findings/index.md": "[a](a.md)",
        "findings/a.md": "[b](../b.md#c)",
        "b.md": "",
    }
    assert unreached_pages(pages_now, config) == set()
    assert unreached_pages(pages_now | {"findings/index.md": ""}, config) == {"findings/a.md", "b.md"}


BLOCK = re.compile(
    r"^(?P<quote>(?:> )?)\$\$\n(?P<latex>(?:(?P=quote)[^$\n]+\n)+)(?P=quote)\$\$$", re.MULTILINE
)
INLINE = re.compile(r"(?<![^\s(])\$(?P<latex>[^\s$](?:[^$\n]*[^\s$])?)\$(?=[\s.,:;?)]|$)", re.MULTILINE)
READ_AS_MARKDOWN = re.compile(r"\\[^a-zA-Z ]|[^a-zA-Z0-9]_|[*~]|<(?! )|\]\(")


def faulty_formulas(markdown: str) -> list[str]:
    """Formulas that GitHub, which reads them as Markdown first, or the site would not show."""
    text = pages.CODE.sub("", markdown)
    formulas = [found["latex"] for pattern in (BLOCK, INLINE) for found in pattern.finditer(text)]
    for latex in formulas:
        pages.mathml(latex, display=True)
    in_rows = [
        found["latex"] for row in re.findall(r"^\|.*", text, re.MULTILINE) for found in INLINE.finditer(row)
    ]
    return [
        *filter(READ_AS_MARKDOWN.search, formulas),
        *(latex for latex in in_rows if "|" in latex),
        *(line for line in INLINE.sub("", BLOCK.sub("", text)).splitlines() if "$" in line),
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_formulas_are_shown_on_github_and_on_the_site(path: Path) -> None:
    assert faulty_formulas(path.read_text(encoding="utf-8")) == []


FAULTY = [r"$\{x\}$", r"$\hat{x}_1$", "$ x$", "$x$-th", "$a<b$", "$[a](b)$", "$$ x $$", "a $x", "> $$\nx\n$$"]


@pytest.mark.parametrize("markdown", [*FAULTY, "| $|a|$ |"])
def test_formulas_partner_faulty_ones_are_found(markdown: str) -> None:
    assert faulty_formulas(markdown) != []


def test_formulas_partner_an_unknown_command_is_refused() -> None:
    assert "<msub>" in pages.mathml("a_1", display=False)
    with pytest.raises(ValueError, match="unknown"):
        pages.mathml(r"\unknown", display=False)


def test_statements_are_boxes_of_their_own_and_proofs_are_folded() -> None:
    """Two boxes with nothing between them would be one box on the site."""
    page = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    assert not re.search(r"^>.*\n\n>", page, re.MULTILINE)
    assert page.count('<details markdown="1">\n<summary>') == page.count("\n\n</details>\n\n") > 40
    assert "*Proof" not in page.replace("*Proof* opens", "")


def test_gallery_shows_every_figure() -> None:
    gallery = pages.gallery_page(ROOT / "figures")
    assert re.findall(r'<a href="(\w+)\.json">', gallery) == load("scripts", "reproduce").names()


def test_every_test_that_is_evidence_is_shown() -> None:
    all_claims = pages.all_claims
    made = dict(pages.evidence_pages(all_claims()))
    for claim in all_claims():
        for file, test in (text.split("::") for text in claim.evidence if "::" in text):
            shown = made[pages.page_of(file)].split(f"## `{test}` {{ #{test} }}")[1].split("\n## ")[0]
            assert f"def {test}(" in shown
            assert claim.id in shown.split("```")[0]
            assert shown.rstrip().endswith("```")


def test_api_pages_have_every_module() -> None:
    """A page per row of docs/layout.md; the names of ``spectheory`` lead to where they are defined."""
    made = dict(pages.api_pages())
    assert "- [`simulate`][spectheory.simulation.runs.simulate]" in made["api/index.md"]
    shown = {line[4:] for page in made.values() for line in page.splitlines() if line.startswith("::: ")}
    assert {
        "spectheory.pairs.pair",
        "spectheory.verification.defective",
        "spectheory.optima.interval.interval",
    } <= shown


def test_notebook_pages_have_texts_code_and_outputs() -> None:
    page = pages.notebook_page(ROOT / "notebooks/02_optimal_transport_at_one_position.ipynb")
    assert page.startswith("# Optimal transport at one position")
    assert "```python\nfrom spectheory import acceptance" in page
    assert "```text\noptimal transport LP" in page
    assert '<div class="output"><table>' in page
    assert '<img class="output" alt="drawn by the code above, ' in page
    assert 'alt=""' not in page


def test_examples_and_formulas_of_docstrings_become_code() -> None:
    """An example inside its section, a formula in none; the entries of a section are left alone."""
    docstring = (
        "It adds\n\n    a + b\n\nArgs:\n    a: one.\n\n    b: other.\n\nExample:\n    >>> 1 + 1\n    2"
    )
    assert docstrings.fenced(docstring) == (
        "It adds\n\n```text\na + b\n```\n\nArgs:\n    a: one.\n\n    b: other.\n\n"
        "Example:\n    ```pycon\n    >>> 1 + 1\n    2\n    ```"
    )


def test_dead_links_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<h1 id="here">B</h1><a href="../a.html#top">a</a>')
    good = '<p id="top"><a href="sub/b.html#here">b</a> <a href="#top">t</a> <a href="https://x.y/z">z</a>'
    (tmp_path / "a.html").write_text(good)
    assert links.dead_links(tmp_path) == []
    (tmp_path / "a.html").write_text(
        good
        + '<a href="sub/b.html#there">1</a><a href="#nowhere">2</a><img src="no.png"><a href="c.html">3</a>'
    )
    assert links.dead_links(tmp_path) == [
        "a.html: sub/b.html#there", "a.html: #nowhere", "a.html: no.png", "a.html: c.html",
    ]  # fmt: skip

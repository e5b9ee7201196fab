"""Every citation of the repository leads to an entry or a statement in the repository."""

import re
from collections.abc import Iterator
from pathlib import Path

from spectheory import __version__

ROOT = Path(__file__).parent.parent
REFERENCES = ROOT / "docs" / "references.bib"
THEORY = ROOT / "docs" / "theory.md"
CITING = [
    "spectheory",
    "figures",
    "tests",
    "docs",
    "benchmarks",
    "notebooks",
    "scripts",
    "README.md",
    "CHANGELOG.md",
]
SUFFIXES = {".py", ".pyi", ".md", ".ipynb"}

KEY = re.compile(r"\b[a-z]+(?:19|20)\d\d[a-z]?\b")
PLACE = r"(?:§\d+|Statements? \d+\.\d+)"
MORE = r"(?:(?:, | and | or | to |, and )(?:§\d+|(?:Statements? )?\d+\.\d+))*"
PAGE_CITATION = re.compile(rf"theory\.md ({PLACE}{MORE})")
BARE_STATEMENT = re.compile(rf"(Statements? \d+\.\d+{MORE})")
FILE_OF_A_PAPER = re.compile(r"\b(?:spectr|spectr_gbv|block_verification|greedy_multipath)\.txt\b")
ENTRY = re.compile(r"^@[a-z]+\{([^,]+),\n(.*?)^\}", flags=re.MULTILINE | re.DOTALL)


def citing_files() -> list[Path]:
    files = [path for name in CITING for path in sorted([ROOT / name, *(ROOT / name).rglob("*")])]
    return [path for path in files if path.is_file() and path.suffix in SUFFIXES]


def references() -> dict[str, str]:
    """Key -> the fields of the entry."""
    return dict(ENTRY.findall(REFERENCES.read_text(encoding="utf-8")))


def places() -> set[str]:
    """What can be cited of theory.md: ``§3`` for a heading, ``3.2`` for a statement."""
    text = THEORY.read_text(encoding="utf-8")
    sections = re.findall(r"^## (§\d+) ", text, flags=re.MULTILINE)
    statements = re.findall(r"^> \*\*Statement (\d+\.\d+)\*\* \(", text, flags=re.MULTILINE)
    found = [*sections, *statements]
    assert len(found) == len(set(found)), "a section or a statement of theory.md has its number twice"
    return set(found)


def cited_places(text: str, of_the_page_itself: bool = False) -> Iterator[str]:
    """The sections and statements of theory.md that a text cites, also across the end of a line."""
    text = re.sub(r"\s+(?:# )?", " ", text)
    for cited in PAGE_CITATION.findall(text):
        yield from re.findall(r"§\d+|\d+\.\d+", cited)
    if of_the_page_itself:
        for cited in BARE_STATEMENT.findall(text):
            yield from re.findall(r"\d+\.\d+", cited)


def complaints(text: str, known_keys: set[str], known_places: set[str], is_page: bool = False) -> list[str]:
    return [
        *(f"no entry {key} in docs/references.bib" for key in KEY.findall(text) if key not in known_keys),
        *(f"no {place} in theory.md" for place in cited_places(text, is_page) if place not in known_places),
        *(f"{name} is the name of a file, not a key" for name in FILE_OF_A_PAPER.findall(text)),
    ]


def test_citations_lead_to_entries_and_statements() -> None:
    keys, known_places, files = set(references()), places(), citing_files()
    found = {
        str(path.relative_to(ROOT)): complaints(
            path.read_text(encoding="utf-8"), keys, known_places, path == THEORY
        )
        for path in files
    }
    assert len(files) > 400
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_references_are_complete_and_cited() -> None:
    """Every entry says who, what, when and where, and something cites it."""
    used = {key for path in citing_files() for key in KEY.findall(path.read_text(encoding="utf-8"))}
    for key, fields in references().items():
        for field in ("author", "title", "year"):
            assert re.search(rf"^  {field}\s+= \{{.+\}},$", fields, flags=re.MULTILINE), (key, field)
        assert re.search(r"^  (?:eprint|doi|url)\s+= \{.+\},$", fields, flags=re.MULTILINE), key
        assert KEY.fullmatch(key), key
        assert key in used, f"nothing cites {key}"


def test_statements_are_numbered_in_order() -> None:
    numbers = [tuple(map(int, place.split("."))) for place in places() if "." in place]
    for section in {section for section, _ in numbers}:
        of_section = sorted(number for where, number in numbers if where == section)
        assert of_section == list(range(1, len(of_section) + 1)), section


def test_citations_partner_wrong_ones_are_caught() -> None:
    known = {"spectr2023"}, {"§3", "3.2", "3.4"}
    assert complaints("spectr2023 Eq. 4; theory.md §3; theory.md Statements 3.2 and 3.4", *known) == []
    assert len(complaints("nobody" + "1999 Theorem 1", *known)) == 1
    assert len(complaints("theory.md §" + "8", *known)) == 1
    assert len(complaints("theory.md Statement " + "3.9", *known)) == 1
    assert len(complaints("theory.md Statements 3.2, " + "3.5 and 3.4", *known)) == 1
    assert len(complaints("(theory.md §3 to §" + "9)", *known)) == 1
    assert len(complaints("# (theory.md\n    # Statement " + "3.9)", *known)) == 1
    assert len(complaints("as in Statement " + "3.7", *known, is_page=True)) == 1
    assert len(complaints("see block_verification" + ".txt", *known)) == 1


def test_the_citation_of_the_software_is_of_this_version() -> None:
    """The version is written in the package; what cites it says the same."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    [version] = re.findall(r"^version: (.*)$", citation, re.MULTILINE)
    [date] = re.findall(r"^date-released: (.*)$", citation, re.MULTILINE)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert version == __version__
    released = [title for title in re.findall(r"^## (.*)$", changes, re.MULTILINE) if title != "Unreleased"]
    assert released[0] == f"{version} ({date})"

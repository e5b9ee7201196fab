"""The files of an exhibit: the same bytes every time, the same numbers in all of them."""

import json
from pathlib import Path

import pytest

from paper_support import small, small_once
from scripts import load
from snapshots import numbers, shape
from spectheory.foundation.errors import InvalidInputError
from spectheory.paper import EXHIBITS, Checks, Findings, exhibit, read_exhibit, write_exhibit, write_report

script = load("scripts", "exhibit_numbers")
FIGURES = Path(__file__).parents[2] / "figures"


@pytest.mark.deep
@pytest.mark.parametrize("name", EXHIBITS)
def test_a_rerun_has_the_same_numbers(name: str) -> None:
    assert small(name).to_document() == small_once(name).to_document()


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_file_has_the_numbers_that_were_computed(name: str, tmp_path: Path) -> None:
    findings = small_once(name)
    assert findings.failures == []
    written = write_exhibit(EXHIBITS[name], findings, tmp_path, ["svg"])
    write_report([written], tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == sorted([*written.files, "report.html", "report.md"])
    read = read_exhibit(name, tmp_path)
    assert read is not None
    assert read.findings.to_document() == findings.to_document()
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert all(file in report for file in written.files)


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_tables_and_panels_are_those_of_before(name: str) -> None:
    """After a change that is meant, ``python scripts/exhibit_numbers.py`` writes the new ones."""
    kept = json.loads(script.STORED.read_text(encoding="utf-8"))
    found = script.outline(name, small_once(name))
    assert kept.keys() == EXHIBITS.keys(), "run: python scripts/exhibit_numbers.py"
    assert shape(found) == shape(kept[name])
    assert numbers(found) == pytest.approx(numbers(kept[name]), rel=1e-6, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_committed_file_is_the_exhibit_with_its_defaults(name: str) -> None:
    """Title, source, settings and the files beside it; all claims passed, those of the small version too."""
    committed = read_exhibit(name, FIGURES)
    assert committed is not None, f"run: spectheory reproduce {name} --out figures"
    shown = EXHIBITS[name]
    assert (committed.title, committed.source) == (shown.title, shown.source)
    assert committed.findings.settings == json.loads(json.dumps(shown.settings()))
    assert committed.findings.passed
    assert all((FIGURES / file).exists() for file in committed.files)
    assert bool(committed.pictures) == (shown.plot is not None)


DEEP = [pytest.param(name, marks=pytest.mark.deep) for name in ("spectr_gbv_bound", "latency")]


@pytest.mark.parametrize("name", ["otm_uniform", *DEEP])
def test_the_same_numbers_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    """In every format; the partner: other numbers give another picture."""
    findings = small_once(name)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        write_report([write_exhibit(EXHIBITS[name], findings, folder, ["pdf", "png", "svg"])], folder)
    files = sorted(path.name for path in first.iterdir())
    assert {Path(file).suffix for file in files} == {".json", ".pdf", ".png", ".svg", ".md", ".html"}
    assert files == sorted(path.name for path in second.iterdir())
    for file in files:
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    if name == "otm_uniform":
        write_exhibit(EXHIBITS[name], small(name, max_drafts=3), second, ["png"])
        (picture,) = first.glob("*.png")
        assert picture.read_bytes() != (second / picture.name).read_bytes()


def test_the_longest_tables_are_left_to_their_files(tmp_path: Path) -> None:
    """The 677 antichains of L = 3 are in the data file, the 26 of L = 2 in the report too."""
    for length, shown in ((2, True), (3, False)):
        findings = small("token_tree", draft_length=length)
        write_report([write_exhibit(EXHIBITS["token_tree"], findings, tmp_path)], tmp_path)
        report = (tmp_path / "report.md").read_text(encoding="utf-8")
        assert ("26 rows</summary>" in report) == shown
        assert ("677 rows of `token_tree_antichains`, in token_tree.json." in report) != shown


def test_figures_embed_their_fonts(tmp_path: Path) -> None:
    write_exhibit(EXHIBITS["otm_bernoulli"], small_once("otm_bernoulli"), tmp_path)
    content = (tmp_path / "otm_bernoulli.pdf").read_bytes()
    assert b"/FontFile2" in content  # TrueType, embedded
    assert b"/Type3" not in content
    assert b"CreationDate" not in content


def test_an_exhibit_without_a_claim_and_one_of_no_section_are_refused() -> None:
    """Partner of every check: an exhibit that compared no case could not fail."""

    @exhibit("block2024", title="Idle", source="none")
    def idle() -> Findings:
        return Findings("", [], Checks())

    with pytest.raises(InvalidInputError, match="idle tested no claim"):
        idle()
    with pytest.raises(InvalidInputError, match="section is one of spectr2023, block2024"):
        exhibit("elsewhere", title="Misplaced", source="none")

"""Computing, writing and redrawing exhibits: only what is asked for, whole files, nothing lost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from spectheory.command_line.main import main
from spectheory.foundation.errors import InvalidInputError
from spectheory.paper import (
    EXHIBITS,
    Checks,
    Exhibit,
    Findings,
    ResultTable,
    exhibit,
    figures,
    reproduce,
    reproduction,
)
from spectheory.paper.style import figure_style

CALLS: list[str] = []


def make(name: str, height: Any = 1, holds: bool = True, interrupts: bool = False) -> Exhibit:
    def compute() -> Findings:
        CALLS.append(name)
        if interrupts:
            raise KeyboardInterrupt
        checks = Checks()
        checks.expect("it holds", holds, "it does not")
        return Findings("", [ResultTable(name, "One number.", ("height",), [(height,)])], checks)

    def plot(findings: Findings) -> Figure:
        with figure_style():
            figure = Figure()
            figure.subplots().plot([0, findings.tables[0].rows[0][0]])
        return figure

    compute.__name__ = name
    return exhibit("block2024", title=name.title(), source="none", plot=plot)(compute)


@pytest.fixture
def exhibits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    CALLS.clear()

    def install(*shown: Exhibit) -> None:
        of_these = type(EXHIBITS)((one.name, one) for one in shown)  # type: ignore[call-arg]
        monkeypatch.setattr("spectheory.paper.reproduction.EXHIBITS", of_these)

    return install


def test_one_name_updates_its_section_and_leaves_the_others(
    exhibits: Callable[..., None], tmp_path: Path
) -> None:
    exhibits(make("first", 1.5), make("second", 2.5))
    reproduce([], tmp_path)
    exhibits(make("first", 3.5), make("second", 4.5))
    reproduce(["second"], tmp_path)
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "1.5" in report
    assert "4.5" in report
    assert "2.5" not in report
    assert "3.5" not in report


def test_interruption_keeps_and_says_what_was_written(
    exhibits: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exhibits(make("first"), make("second", interrupts=True), make("third"))
    assert main(["reproduce", "--out", str(tmp_path)]) == 130
    said = capsys.readouterr()
    assert f"written to {tmp_path}: first" in said.err
    assert said.out == ""
    assert "First" in (tmp_path / "report.md").read_text(encoding="utf-8")
    exhibits(make("first"), make("second"), make("third"))
    CALLS.clear()
    assert main(["reproduce", "--out", str(tmp_path), "--resume"]) == 0
    assert CALLS == ["second", "third"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_redraw_computes_nothing_and_draws_the_same(exhibits: Callable[..., None], tmp_path: Path) -> None:
    exhibits(make("first"))
    reproduce([], tmp_path)
    before = (tmp_path / "first.pdf").read_bytes()
    (tmp_path / "first.pdf").unlink()
    CALLS.clear()
    reproduce([], tmp_path, redraw=True)
    assert CALLS == []
    assert (tmp_path / "first.pdf").read_bytes() == before
    reproduce([], tmp_path, redraw=True, style="dark_background")
    assert (tmp_path / "first.pdf").read_bytes() != before
    (tmp_path / "mine.mplstyle").write_text("lines.linewidth: 7\n", encoding="utf-8")
    reproduce([], tmp_path, redraw=True, style=str(tmp_path / "mine.mplstyle"), formats=["svg"])
    assert "stroke-width: 7" in (tmp_path / "first.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"names": ["frist"]}, "did you mean 'first'"),
        ({"formats": ["gif"]}, "formats are pdf, png, svg, got gif"),
        ({"formats": []}, "got none"),
        ({"style": "nosuch"}, "'nosuch' is neither a style"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"redraw": True}, "holds no numbers of any exhibit"),
        ({"redraw": True, "names": ["first"]}, "holds no numbers of first"),
    ],
)
def test_what_cannot_be_done_is_said(
    exhibits: Callable[..., None], tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    exhibits(make("first"))
    with pytest.raises(InvalidInputError, match=says):
        reproduce(options.pop("names", []), tmp_path, **options)
    assert CALLS == []


OTHERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "of another kind": lambda document: [],
    "of another exhibit": lambda document: document | {"name": "second"},
    "without a claim": lambda document: document | {"checks": []},
    "with a short row": lambda document: (
        document
        | {"tables": [table | {"rows": [row[:-1] for row in table["rows"]]} for table in document["tables"]]}
    ),
    "with a picture elsewhere": lambda document: document | {"pictures": ["../first.png"]},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_a_file_that_is_none_of_ours_is_refused(
    exhibits: Callable[..., None], tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    """Where it is to be drawn; beside others the report is without it, and ``resume`` computes it anew."""
    exhibits(make("first"), make("second"))
    reproduce([], tmp_path)
    file = tmp_path / "first.json"
    file.write_text(json.dumps(change(json.loads(file.read_text(encoding="utf-8")))), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="not a file that reproduce wrote"):
        reproduce(["first"], tmp_path, redraw=True)
    reproduce(["second"], tmp_path)
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Second" in report
    assert "First" not in report
    CALLS.clear()
    assert [one.computed for one in reproduce([], tmp_path, resume=True)] == [True, False]
    assert CALLS == ["first"]


@pytest.mark.parametrize("content", ["", '{"name": "first", "tit'])
def test_a_run_goes_on_where_a_file_was_cut_off(
    exhibits: Callable[..., None], tmp_path: Path, content: str
) -> None:
    exhibits(make("first"), make("second"))
    reproduce([], tmp_path)
    file = tmp_path / "first.json"
    whole = file.read_bytes()
    file.write_text(content, encoding="utf-8")
    CALLS.clear()
    assert main(["reproduce", "--out", str(tmp_path), "--resume"]) == 0
    assert (CALLS, file.read_bytes()) == (["first"], whole)


def test_what_was_not_computed_is_not_said_to_have_passed(
    exhibits: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The partners: what is computed passes, and what a file says to have failed fails."""
    exhibits(make("first"), make("second"), make("third", holds=False))
    reproduce(["first"], tmp_path)
    arguments = ["reproduce", "first", "second", "--out", str(tmp_path)]
    assert main([*arguments, "--resume", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["passed"], [one["passed"] for one in document["results"]]) == (None, [None, True])
    for how, said, verdict in (
        ("--resume", "kept", "No check failed; what was kept was not checked again."),
        ("--redraw", "kept", "No check failed; what was kept was not checked again."),
        ("--format=pdf", "passed", "All checks passed."),
    ):
        assert main([*arguments, how]) == 0
        printed = capsys.readouterr().out
        assert printed.count(f"│ {said} ") == 2
        assert verdict in " ".join(printed.split())
    reproduce(["third"], tmp_path)
    assert main(["reproduce", "--out", str(tmp_path), "--resume"]) == 1
    printed = capsys.readouterr().out
    assert (printed.count("│ kept "), printed.count("FAILED: it holds")) == (2, 1)
    assert printed.endswith("Some checks FAILED.\n")


def test_redrawn_numbers_are_of_the_versions_that_computed_them(
    exhibits: Callable[..., None], tmp_path: Path
) -> None:
    exhibits(make("first"))
    reproduce([], tmp_path)
    file = tmp_path / "first.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    older = document["made_with"] | {"spectheory": "0.0.1"}
    file.write_text(json.dumps(document | {"made_with": older}), encoding="utf-8")
    reproduce([], tmp_path, redraw=True)
    assert json.loads(file.read_text(encoding="utf-8"))["made_with"] == older
    reproduce([], tmp_path)
    assert json.loads(file.read_text(encoding="utf-8")) == document


@pytest.mark.deep
def test_jobs_give_the_same_bytes(tmp_path: Path) -> None:
    names = ["two_token_table", "full_information"]
    for folder, jobs in (("alone", 1), ("together", 2)):
        found = reproduce(names, tmp_path / folder, jobs=jobs, formats=["svg"])
        assert sorted(one.name for one in found) == sorted(names)
    files = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "together").iterdir())
    for file in files:
        assert (tmp_path / "alone" / file).read_bytes() == (tmp_path / "together" / file).read_bytes(), file


def test_a_job_that_fails_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(OSError, match="folder"):
        reproduce(["two_token_table", "token_tree"], tmp_path / "folder", jobs=2)


def test_a_new_file_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One file with a decorated function is a new exhibit, in the order of its section; a bare one is not."""
    (tmp_path / "brand_new.py").write_text(
        "from spectheory.paper import Checks, Findings, exhibit\n"
        "from spectheory.paper.figures.frontier import frontier as imported\n"
        "@exhibit('block2024', title='New', source='none')\n"
        "def brand_new() -> Findings:\n    return Findings('', [], Checks())\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    found = list(reproduction._discovered())
    assert set(found) - set(EXHIBITS) == {"brand_new"}
    assert found.index("acceptance_length") < found.index("brand_new") < found.index("draft_length_gain")

"""The files of a figure: the same bytes every time, the computed numbers, and when they are kept."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from deep import first_is_quick
from figure_support import NAMES, figure, small, small_once
from figures.results import Checks, Findings, Result, ResultTable, result
from spectheory.foundation.errors import InvalidInputError

FIGURES = Path(__file__).parents[2] / "figures"


@first_is_quick("name", NAMES, 3)
def test_the_data_file_has_the_numbers_that_were_computed(name: str, tmp_path: Path) -> None:
    """Pictures take most of the time; ``make reproduce`` draws all of them."""
    findings = small_once(name)
    assert findings.failures == []
    figure(name).write(findings, tmp_path)
    pictures = [] if figure(name).draw is None else [f"{name}.pdf", f"{name}.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"{name}.json", *pictures])
    document = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert Findings.from_document(document).to_document() == findings.to_document()


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_file_is_the_figure_with_its_defaults(name: str) -> None:
    """Title, source, settings, pictures and claims, which are true in the small version and in this one."""
    document = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    shown = figure(name)
    assert (document["name"], document["title"], document["source"]) == (name, shown.title, shown.source)
    assert document["settings"] == json.loads(json.dumps(shown.settings()))
    assert Findings.from_document(document).passed
    for ending in ("pdf", "png"):
        assert (FIGURES / f"{name}.{ending}").exists() == (shown.draw is not None)


def made_of(holds: bool) -> Result:
    @result(title="Nine", source="none")
    def nine(most: int = 9, pair: str | None = None) -> Findings:
        checks, table = Checks(), ResultTable("nine", "numbers")
        for number in range(most):
            table.add(number=number, half=Fraction(number, 2))
            checks.expect("numbers are below nine", holds, f"{number}")
        return Findings("", [table], checks)

    return nine


def test_a_finished_result_is_that_of_its_script_its_version_and_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nine, path = made_of(True), tmp_path / "nine.json"
    assert not nine.is_finished(tmp_path)
    nine.write(nine(), tmp_path)
    assert nine.is_finished(tmp_path)
    assert not nine.is_finished(tmp_path, most=8)
    assert not nine.is_finished(tmp_path, pair="mine.json")
    text = path.read_text(encoding="utf-8")
    made = nine.made_with()
    for changed in ({"script": "0" * 16}, {"spectheory": "9.9"}):
        monkeypatch.setattr(Result, "made_with", lambda self, changed=changed: made | changed)
        assert not nine.is_finished(tmp_path)
    monkeypatch.undo()
    for damaged in (text[:-20], text.replace('"checks"', '"other"'), "[]", ""):
        path.write_text(damaged, encoding="utf-8")
        assert not nine.is_finished(tmp_path)
    nine.write(made_of(False)(), tmp_path)
    assert not nine.is_finished(tmp_path)


def test_a_script_computes_what_is_not_finished_and_says_what_is_false(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["nine", "--out", str(tmp_path), "--pair", "mine.json", "--resume"])
    for holds, said, code in (
        (True, "checked: numbers are below nine (9 of 9)\n", 0),
        (False, "", 0),  # kept, and so not computed
    ):
        with pytest.raises(SystemExit) as stopped:
            made_of(holds).main()
        assert (stopped.value.code, capsys.readouterr().out) == (code, said)
    assert json.loads((tmp_path / "nine.json").read_text())["settings"] == {"most": 9, "pair": "mine.json"}
    monkeypatch.setattr("sys.argv", ["nine", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        made_of(False).main()
    assert stopped.value.code == 1
    assert "FAILED: numbers are below nine (9 of 9 failed: 0; 1; 2; ...)" in capsys.readouterr().out


def test_a_result_without_a_claim_is_refused() -> None:
    """Partner of every check: a result that compared no case could not fail."""
    idle = replace(made_of(True), compute=lambda: Findings("", [], Checks()))
    with pytest.raises(InvalidInputError, match="tested no claim"):
        idle()


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
def test_a_rerun_has_the_same_numbers(name: str) -> None:
    assert small(name).to_document() == small_once(name).to_document()

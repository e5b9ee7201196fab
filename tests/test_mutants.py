"""The list of mutants fits the tree: every text is there, every test exists.  ``make mutants`` runs them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from scripts import load

script = load("scripts", "mutants")


def test_every_mutant_fits_the_tree() -> None:
    """Its text occurs as often as it says, it changes something, and its tests exist."""
    mutants = script.read_table()
    assert len(mutants) >= 150
    assert script.complaints(mutants) == []


@pytest.fixture
def mutant(tmp_path: Path) -> object:
    """A mutant of a small tree."""
    (tmp_path / "one.py").write_text("x = 1\ny = 1\n")
    (tmp_path / "test_one.py").write_text("def test_x():\n    pass\n")
    return script.Mutant("m", "one.py", "x = 1", "x = 2", ("test_one.py::test_x[3]",))


def test_partner_what_does_not_fit_is_named(mutant: object, tmp_path: Path) -> None:
    """A text that moved or occurs twice, an idle change, a file and a test that are gone."""
    change = dataclasses.replace
    for wrong, said in (
        (mutant, []),
        (change(mutant, old="= 1", index=1), []),
        (change(mutant, old="x = 3"), ["m: one.py holds 'x = 3' 0 times, expected once"]),
        (change(mutant, old="= 1"), ["m: one.py holds '= 1' 2 times, expected once"]),
        (change(mutant, index=1), ["m: one.py holds 'x = 1' 1 times, expected more than 1 times"]),
        (change(mutant, new="x = 1"), ["m: it changes nothing"]),
        (change(mutant, file="two.py"), ["m: there is no file two.py"]),
        (change(mutant, tests=("two.py",)), ["m: there is no test two.py"]),
        (change(mutant, tests=("test_one.py::test_y",)), ["m: there is no test test_one.py::test_y"]),
    ):
        found = script.complaints([wrong], tmp_path)
        assert [line.partition("; ")[0] for line in found] == said
    assert change(mutant, old="= 1", new="= 2", index=1).applied_to("x = 1\ny = 1\n") == "x = 1\ny = 2\n"


def test_a_survivor_needs_an_argument_and_an_argument_a_survivor(mutant: object, tmp_path: Path) -> None:
    """The latest result counts, and a line that an interruption tore does not."""
    results = tmp_path / "results.jsonl"
    survived = {"id": "m", "result": "survived", "by": "", "seconds": 1}
    killed = {**survived, "result": "killed", "by": "test_one.py::test_x"}
    argued = dataclasses.replace(mutant, equivalent="both are 1")
    for records, refused in (
        ([], [[], []]),
        ([killed], [[], ["m is argued equivalent, but test_one.py::test_x"]]),
        ([killed, survived], [["m survived test_one.py::test_x[3]"], []]),
    ):
        results.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"id": "m", "res')
        found = script.read_results(results)
        assert [script.unexpected([case], found) for case in (mutant, argued)] == refused
    assert "| m | `x = 1 → x = 2` | both are 1 |" in script.report([argued], found)


def test_tables_name_every_mutant_once_and_its_tests(tmp_path: Path) -> None:
    """``[nearest]`` stands in for ``tests``."""
    entry = "[[mutant]]\nid = 'm'\nfile = 'one.py'\nold = 'x'\nnew = 'y'\n"
    table = tmp_path / "one.toml"
    table.write_text(f"[nearest]\n'one.py' = ['test_one.py']\n{entry}")
    assert script.read_table(tmp_path)[0].tests == ("test_one.py",)
    table.write_text(entry)
    with pytest.raises(script.TableError, match="m: no tests"):
        script.read_table(tmp_path)
    table.write_text(f"{entry}tests = ['a.py']\n{entry}tests = ['a.py']\n")
    with pytest.raises(script.TableError, match="share a name: m"):
        script.read_table(tmp_path)

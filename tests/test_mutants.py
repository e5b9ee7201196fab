"""Wrong changes of the package are drawn, made and judged as they should.  ``make mutants`` runs them."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from coverage import CoverageData

from scripts import load

script = load("scripts", "mutants")
recorded_tests = load("scripts", "recorded_tests")
forked_tests = load("scripts", "forked_tests")
SOURCE = '''def f(rows, a, b=2):
    """Text: 1 < 2."""
    if min(a, b) < 1 and not a:  # a comment
        return g(rows[..., 1:], a, axis=0)
    for c, d in zip(rows, a, strict=True):
        b += c / d
    return a * 2
'''


@pytest.mark.deep
def test_drawn_mutants_fit_the_tree() -> None:
    """They come from every room, are the same for a seed, and change what the functions do."""
    mutants = script.drawn(24, seed=3)
    assert len(mutants) == 24
    assert len({mutant.room for mutant in mutants}) >= 8
    assert mutants == script.drawn(24, seed=3) != script.drawn(40, seed=4)
    for mutant in mutants:
        source = (script.ROOT / mutant.file).read_text(encoding="utf-8")
        assert script.mutate(source, mutant.function, mutant.edit) != script.ast.unparse(
            script.ast.parse(source)
        )


def test_arguments_are_of_mutants_that_there_are() -> None:
    """An argument whose function or place is gone is idle."""
    for name in script.tomllib.loads(script.ARGUED.read_text(encoding="utf-8")):
        module, function, edit = name.split(":", 2)
        path = script.ROOT.joinpath("spectheory", *module.split(".")).with_suffix(".py")
        assert script.mutate(path.read_text(encoding="utf-8"), function, edit.strip())


def test_tests_near_a_line_are_those_that_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One case of each test function first; then others of their files."""
    path = tmp_path / "one.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(recorded_tests, "LINES", tmp_path / "lines.sqlite")
    monkeypatch.setattr(recorded_tests, "SECONDS", tmp_path / "seconds.json")
    data = CoverageData(str(tmp_path / "lines.sqlite"))
    ran = {
        "a.py::x[1]": (3, 7),
        "a.py::x[2]": (3, 4),
        "b.py::y": (3, 4),
        "c.py::z": (4,),
        "d.py::failed": (4,),
    }
    for test, lines in ran.items():
        data.set_context(test)
        data.add_lines({str(path): lines})
    data.write()
    data.set_context("")
    data.add_lines({str(path): (4,)})
    data.write()
    seconds = {"a.py::x[1]": 1, "a.py::x[2]": 2, "b.py::y": 3, "c.py::z": 9, "a.py::late[2]": 4, "b.py::w": 1}
    (tmp_path / "seconds.json").write_text(json.dumps(seconds))
    record = recorded_tests.RecordedTests()
    for line, others, most, near in (
        (3, (), 30, ["a.py::x[1]", "b.py::y", "a.py::x[2]", "b.py::w", "a.py::late[2]"]),
        (3, (), 5, ["a.py::x[1]", "b.py::y"]),
        (3, ("a.py",), 30, ["b.py::y", "b.py::w"]),
        (7, (), 30, ["a.py::x[1]", "a.py::x[2]", "a.py::late[2]"]),
        (5, (), 16, ["a.py::x[1]", "b.py::y", "c.py::z", "a.py::x[2]", "b.py::w"]),
    ):
        assert record.of_line(path, "f", line, others, most) == near
    assert record.seconds_of(["a.py", "b.py::y"]) == 10
    assert [record.is_run_at_import(path, line) for line in (3, 4)] == [False, True]


def test_edits_change_the_syntax_tree() -> None:
    """Each edit of a small function gives another program; a rewording changes neither names nor edits."""
    names = [edit.name for edit in script.edits(script.function_of(script.ast.parse(SOURCE), "f"))]
    assert {"min to max", "< to <=", "first of and", "without not", "slice turned", "g without axis"} <= set(
        names
    )
    assert not {"zip without strict", "True to False"} & {*names}
    original = script.ast.unparse(script.ast.parse(SOURCE))
    changed = [script.mutate(SOURCE, "f", name) for name in names]
    assert original not in changed
    assert "g(rows[..., :-1], a, axis=0)" in changed[names.index("slice turned")]
    reworded = SOURCE.replace("Text: 1 < 2.", "Other words.").replace("  # a comment", "")
    assert [edit.name for edit in script.edits(script.function_of(script.ast.parse(reworded), "f"))] == names


def test_a_survivor_needs_an_argument_and_an_argument_a_survivor(tmp_path: Path) -> None:
    """The latest result counts, and a line that an interruption tore does not."""
    mutant = script.Mutant("package.one", "f", "< to <=", ("test_one.py",))
    results = tmp_path / "results.jsonl"
    survived = {"id": mutant.id, "result": "survived", "by": "", "seconds": 1}
    killed = {**survived, "result": "killed", "by": "test_one.py::test_x"}
    argued = replace(mutant, equivalent="a is never 1")
    for records, refused in (
        ([], [[], []]),
        ([killed], [[], [f"{mutant.id} is argued equivalent, but test_one.py::test_x"]]),
        ([killed, survived], [[f"{mutant.id} survived 1 tests and files"], []]),
    ):
        results.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"id": "m", "res')
        found = script.read_results(results)
        assert [script.unexpected([case], found) for case in (mutant, argued)] == refused
    assert "| `one:f: < to <=` | a is never 1 |" in script.report([argued], found)


@pytest.mark.deep
def test_a_survivor_is_given_to_mypy(tmp_path: Path) -> None:
    """It refuses a wrong type, and not a wrong number."""
    source = "def f(a: int) -> str:\n    return str(a + 1)\n"
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "one.py").write_text(source)
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text('[tool.mypy]\npackages = ["package"]\n')
    copy = object.__new__(script.Copy)
    copy.folder = tmp_path
    names = [edit.name for edit in script.edits(script.function_of(script.ast.parse(source), "f"))]
    assert {"unwrap str", "+ to -"} <= {*names}
    said = {name: copy.refused_by_types(script.Mutant("package.one", "f", name, ())) for name in names}
    assert "Incompatible return value type" in said["unwrap str"]
    assert not said["+ to -"]
    assert (tmp_path / "package" / "one.py").read_text() == source


def test_idle_parts_are_not_mutated() -> None:
    """Assertions, overloads, keywords without an effect, the order of arguments that may be turned around."""
    source = """def f(a: int) -> int: ...
def f(a, b):
    assert a < 1
    warn(open(max(a, b), encoding="utf-8"), stacklevel=2)
"""
    tree = script.ast.parse("from typing import overload\n@overload\n" + source)
    names = {edit.name for edit in script.edits(script.function_of(tree, "f"))}
    assert names == {"unwrap warn", "unwrap open", "unwrap max", "max to min", "without a statement"}
    assert list(script.functions_of(tree)) == ["f"]


def test_a_fork_runs_the_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods, inner functions and decorated ones get its code; where it does not fit, it says so."""
    (tmp_path / "exchanged.py").write_text(
        "from functools import cache\n\n\nclass A:\n    @cache\n    def f(self, a, b=1):\n"
        "        def g():\n            return a < b\n        return g()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("exchanged")
    source = (tmp_path / "exchanged.py").read_text()
    for edit, fits in (("< to <=", True), ("1 to 0", False)):
        tree = script.mutated(source, "A.f", edit)
        assert forked_tests.exchange_code("exchanged", source, tree) == fits
    assert module.A().f(1) is True
    assert forked_tests.exchange_code("exchanged", source, script.ast.parse("x = 1\n")) is False

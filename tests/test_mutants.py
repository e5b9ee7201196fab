"""The list of mutants fits the tree, whatever is reworded in it.  ``make mutants`` runs them."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import load

script = load("scripts", "mutants")
forked_tests = load("scripts", "forked_tests")
SOURCE = '''def f(rows, a, b=2):
    """Text: 1 < 2."""
    if min(a, b) < 1 and not a:  # a comment
        return g(rows[..., 1:], a, axis=0)
    for c, d in zip(rows, a, strict=True):
        b += c / d
    return a * 2
'''


def test_every_mutant_fits_the_tree() -> None:
    """Its function is there and has a place for the change, and its tests exist."""
    mutants = script.read_table()
    assert len(mutants) >= 100
    assert len({mutant.room for mutant in mutants}) >= 8
    assert script.complaints(mutants) == []


def test_drawn_mutants_fit_the_tree_too() -> None:
    """They come from every room, are the same for a seed, and change what the functions do."""
    mutants = script.drawn(40, seed=3)
    assert len(mutants) == 40
    assert len({mutant.room for mutant in mutants}) >= 8
    assert mutants == script.drawn(40, seed=3) != script.drawn(40, seed=4)
    assert script.complaints(mutants) == []


def test_arguments_are_of_mutants_that_there_are() -> None:
    """One whose function or place is gone is idle."""
    for name in script.tomllib.loads(script.TABLE.read_text(encoding="utf-8"))["argued"]:
        module, function, edit = name.split(":", 2)
        assert script.complaints([script.Mutant(f"spectheory.{module}", function, edit.strip(), ())]) == []


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


@pytest.fixture
def mutant(tmp_path: Path) -> object:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "one.py").write_text(SOURCE)
    (tmp_path / "test_one.py").write_text("def test_x():\n    pass\n")
    return script.Mutant("package.one", "f", "< to <=", ("test_one.py",))


def test_partner_what_does_not_fit_is_named(mutant: object, tmp_path: Path) -> None:
    """A function, a change, a file and a test that are gone."""
    for wrong, said in (
        (mutant, []),
        (replace(mutant, edit="< to <= #2"), ["package.one: f has no place for '< to <= #2'"]),
        (replace(mutant, function="h"), ["package.one: there is no h"]),
        (replace(mutant, module="package.two"), ["two:f: < to <=: there is no file package/two.py"]),
        (replace(mutant, tests=("two.py",)), ["one:f: < to <=: there is no test two.py"]),
    ):
        assert [line.partition("; ")[0] for line in script.complaints([wrong], tmp_path)] == said


def test_a_survivor_needs_an_argument_and_an_argument_a_survivor(mutant: object, tmp_path: Path) -> None:
    """The latest result counts, and a line that an interruption tore does not."""
    results = tmp_path / "results.jsonl"
    survived = {"id": mutant.id, "result": "survived", "by": "", "seconds": 1}
    killed = {**survived, "result": "killed", "by": "test_one.py::test_x"}
    argued = replace(mutant, equivalent="a is never 1")
    for records, refused in (
        ([], [[], []]),
        ([killed], [[], [f"{mutant.id} is argued equivalent, but test_one.py::test_x"]]),
        ([killed, survived], [[f"{mutant.id} survived test_one.py"], []]),
    ):
        results.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"id": "m", "res')
        found = script.read_results(results)
        assert [script.unexpected([case], found) for case in (mutant, argued)] == refused
    assert "| `one:f: < to <=` | a is never 1 |" in script.report([argued], found)


def test_the_list_names_every_mutant_once_and_its_tests(tmp_path: Path) -> None:
    table = tmp_path / "mutants.toml"
    entry = '"package.one:f" = ["< to <="]\n'
    table.write_text(f'[tests]\n"package" = ["test_one.py"]\n[mutants]\n{entry}')
    assert script.read_table(table, tmp_path)[0].tests == ("test_one.py",)
    table.write_text(f"[tests]\n[mutants]\n{entry}")
    with pytest.raises(script.TableError, match=r"package\.one:f: no tests"):
        script.read_table(table, tmp_path)
    table.write_text(f'[tests]\n"package" = ["a.py"]\n[mutants]\n{entry[:-2]}, "< to <="]\n')
    with pytest.raises(script.TableError, match="listed twice: one:f: < to <="):
        script.read_table(table, tmp_path)


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

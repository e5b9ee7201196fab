"""docs/command_line.md defines all that a command prints, column by column and field by field."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from cli_support import check_schema, run_json, write_pair
from deep import first_is_quick
from spectheory.command_line.audit_commands import PARTS
from spectheory.command_line.main import group, main
from spectheory.exact import proof, suite_cases

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
HEAD = "| printed | JSON field | meaning |\n|---|---|---|\n"
KEYED_BY_DATA = {"first_token_law", "refused", "counts", "pair", "machine_proofs", "draft_defects"}
PART_OF = {"audit": "certify"}
"""The command whose results are part of the results of another."""

ONE_CALL = ["--drafts", "1", "-n", "0"]
ONE_PAIR = ["--pair", "ONE_TOKEN"]
ONE_TOKEN = ["ONE_TOKEN", "--drafts", "2", "--verifier"]
SMALLEST_SHAPE = ["--vocab-size", "2", "--draft-length", "1"]
RUNS: dict[str, list[list[str]]] = {
    "verifiers": [[]],
    "certify": [
        [*ONE_TOKEN, "spectheory.verification.defective.acceptance_rules:SwappedModels"],
        [*ONE_TOKEN, "token,block"],
        [*ONE_TOKEN, "wrong_verifiers:RaisesOnLast"],
        ["ONE_TOKEN", "--drafts", "draft_values:before_unlikely", "--verifier", "block"],
        ["--suite", "standard", "--verifier", "spectr_gbv"],
        ["--suite", "quick", "--cases", "1", "--verifier", "kseq"],
    ],
    "prove": [
        ["token", *SMALLEST_SHAPE, "--drafts", "prefix_tree:2", "--verbose"],
        ["spectheory.verification.defective.acceptance_rules:SwappedModels", *SMALLEST_SHAPE],
        ["--check", "STORED"],
        ["--check", "STORED", "block"],
    ],
    "optimum": [["ONE_TOKEN"], ["ONE_TOKEN", "--calls", "1"]],
    "acceptance": [["1/3,2/3", "2/3,1/3"]],
    "plan": [
        ["ONE_TOKEN", "--target-rows", "2"],
        ["MODELS", "EIGHT_PROMPTS", "--target-rows", "1", "-v", "block", "--max-new-tokens", "2"],
    ],
    "decode": [["MODELS", "PROMPTS", "--max-new-tokens", "4"]],
    "simulate": [
        ["MODELS", "PROMPTS", "-n", "4", "--drafts", "1,2"],
        ["MODELS", "PROMPTS", *ONE_CALL],
        ["MODELS", "PROMPTS", "-n", "2", "--common-texts", "--drafts", "1"],
        ["MODELS", "PROMPTS", "-n", "2", "-v", "block", "--drafts", "draft_values:before_unlikely"],
    ],
    "models": [["list"]],
    "restrict": [["MODELS", "--prompt", "import os", "--out", "RESTRICTED"]],
    "audit": [
        ["transformers", *ONE_PAIR],
        ["transformers", "transformers", *ONE_PAIR],
    ],
}


def section(command: str) -> str:
    return PAGE.split(f"\n## `{command}`\n")[1].split("\n## ")[0]


def defined(text: str, column: int) -> set[str]:
    """The names in backquotes in a column of the tables of a section."""
    tables = [part.split("\n\n")[0] for part in text.split(HEAD)[1:]]
    cells = [row.split(" | ")[column] for table in tables for row in table.splitlines()]
    return {name for cell in cells for name in re.findall("`([^`]+)`", cell)}


def fields(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from () if name in KEYED_BY_DATA else fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner)


def columns(printed: str) -> set[str]:
    """The columns of the printed tables; of a table without a header, what its rows are about."""
    found = set()
    for table in re.split("^(?=[┌┏])", printed, flags=re.MULTILINE):
        lines = [re.split("[┃│]", line)[1:-1] for line in table.splitlines() if line[:1] in ("┃", "│")]
        if table.startswith("┏"):
            header = [row for row, line in zip(lines, table.splitlines()[1:], strict=False) if line[0] == "┃"]
            found |= {" ".join(" ".join(cells).split()) for cells in zip(*header, strict=True)}
        elif table.startswith("┌"):
            found |= {row[0].strip() for row in lines}
    return {re.sub(r"(?<=^gain over )\w+", "…", name) for name in found if name}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    from models_support import save_pair

    stored = Path(proof.__file__).parent / "stored"

    folder = tmp_path_factory.mktemp("documented")
    target, draft = save_pair(folder, "llama")
    pair = write_pair(folder, draft_length=1)
    small = [
        "--draft-length",
        "2",
    ]
    files = {name: [str(folder / name)] for name in ("RESTRICTED", "REPRODUCED")}
    models = [str(target), str(draft), *small]
    prompts = folder / "prompts.txt"
    prompts.write_text("import os\nfor index in\n", encoding="utf-8")
    asked = ["--prompts", str(prompts)]
    eight = folder / "eight.txt"
    eight.write_text("\n".join(f"import {letter}" for letter in "abcdefgh"), encoding="utf-8")
    files["EIGHT_PROMPTS"] = ["--prompts", str(eight)]
    files["STORED"] = [str(stored / "token_V2_L1_K1_all.proof")]
    return files | {"ONE_TOKEN": [pair], "MODELS": models, "PROMPTS": asked}


@first_is_quick("command", sorted(group.commands), quick=3)
def test_everything_printed_is_defined(
    command: str,
    places: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every field and column has a definition, and every field that is defined is printed."""
    few = [case for case in suite_cases.standard_suite() if case.name == "two_token-L1"]
    monkeypatch.setattr(suite_cases, "standard_suite", lambda *_: few)
    monkeypatch.setattr("spectheory.simulation.cost.MEASURING_SECONDS", 0.0)
    capsys.readouterr()  # saving a model shows a progress bar
    found, shown = set(), set()
    for run in RUNS[command]:
        arguments = [word for name in run for word in places.get(name, [name])]
        is_wrong = command != "simulate" and re.search("SwappedModels|RaisesOnLast|before_un", " ".join(run))
        code = 4 if run[1:] == ["STORED", "block"] else 1 if is_wrong or "spectr_gbv" in run else 0
        found |= set(fields(run_json(capsys, command, *arguments, code=code, whole=True)))
        assert main([command, *arguments, "--verbose"]) == code
        shown |= columns(capsys.readouterr().out)
    own = defined(section(command), 1)
    known = own | (defined(section(PART_OF[command]), 1) if command in PART_OF else set())
    assert found - known - {"format", "spectheory"} == set(), (
        f"define these fields in docs/command_line.md, section {command}"
    )
    assert own - found == set()
    undefined = shown - defined(section(command), 0)
    assert undefined == set(), f"define these columns in docs/command_line.md, section {command}"


@pytest.mark.parametrize("command", group.commands)
def test_named_options_exist(command: str) -> None:
    """A section names options of its command; others stand behind the name of another command."""
    found = group.commands[command]
    parts = [part for name, part in PARTS.items() if name.startswith(f"{command} ")]
    commands = [found, group, *parts]
    params = [option for each in commands for option in each.get_params(click.Context(each))]
    options = {flag for option in params for flag in option.opts}
    text = re.sub(rf"spectheory (?!{command}).*", "", section(command))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert named - options - {"--verifier"} == set()


def test_partner_a_field_that_is_renamed_or_left_out_does_not_fit_its_schema(
    capsys: pytest.CaptureFixture[str], places: dict[str, list[str]]
) -> None:
    document = run_json(capsys, "optimum", *places["ONE_TOKEN"], whole=True)
    for name in document:
        without = {other: value for other, value in document.items() if other != name}
        for changed in (without, without | {f"{name}_": document[name]}):
            with pytest.raises((jsonschema.ValidationError, KeyError)):
                check_schema(changed)


def test_partner_undefined_names_are_found() -> None:
    text = f"{HEAD}| `a b`, `c` | `d` | of `e` |\n\n{HEAD}| | `f`, `g` | |\n"
    assert (defined(text, 0), defined(text, 1)) == ({"a b", "c"}, {"d", "f", "g"})
    assert set(fields({"a": [{"b": {"c": 1}}], "refused": {"case": 1}})) == {"a", "b", "c", "refused"}
    printed = "┏━━┳━━┓\n┃ a┃c ┃\n┃ b┃  ┃\n┡━━╇━━┩\n│ 1│ 2│\n└──┴──┘\n┌──┬──┐\n│ d│ 1│\n│  │ 2│\n└──┴──┘\n"
    assert columns(printed) == {"a b", "c", "d"}

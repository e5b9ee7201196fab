"""The stored outputs of every notebook are those of its code; pictures and times are not compared.

``scripts/lint_pages.py`` finds code that has changed since its outputs were stored.
"""

import ast
import json
import re
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from deep import first_is_quick
from fresh_interpreter import run_python
from scripts import load
from spectheory.foundation.extras import EXTRA_OF
from spectheory.models.fetching import fetch_model

OUTPUTS = load("scripts", "notebook_outputs")
ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"\d+(?P<decimals>\.\d+)?(?:e(?P<exponent>[+-]?\d+))?")
FETCHED, BUNDLED = '"smollm2", "smollm2-draft"', '"bundled", "bundled"'
"""The models of a notebook that needs fetched ones, and those that its code also runs on."""


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def text_of(outputs: list[dict[str, Any]]) -> str:
    """What a cell printed, and its values as plain text."""
    texts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return "\n".join("".join(lines).rstrip() for lines in texts)


def agree(stored: str, found: str) -> bool:
    """Equal texts, up to rounding: floats to five digits, or to the last one that is printed."""
    if NUMBER.sub("#", stored) != NUMBER.sub("#", found):
        return False
    for first, second in zip(NUMBER.finditer(stored), NUMBER.finditer(found), strict=True):
        unit = 0.0
        if first["decimals"] or first["exponent"]:
            decimals = len(first["decimals"] or ".") - 1
            unit = 1.01 * 10.0 ** (int(first["exponent"] or 0) - decimals) + 1e-5 * float(first[0])
        if abs(float(first[0]) - float(second[0])) > max(unit, 1e-12):
            return False
    return True


def changed_outputs(document: dict[str, Any]) -> list[int]:
    """The cells whose text outputs are others when the notebook is run."""
    cells = OUTPUTS.code_cells(document)
    return [
        number
        for number, (cell, outputs) in enumerate(
            zip(cells, OUTPUTS.outputs_of(document), strict=True), start=1
        )
        if "times" not in cell["metadata"].get("tags", [])
        and not agree(text_of(cell["outputs"]), text_of(outputs))
    ]


def needs_fetched_models(document: dict[str, Any]) -> bool:
    return any(FETCHED in "".join(cell["source"]) for cell in OUTPUTS.code_cells(document))


@first_is_quick("path", OUTPUTS.NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_current(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If not: ``python scripts/notebook_outputs.py``.

    A notebook on fetched models runs on the bundled ones, so that its code and its assertions are tried.
    """
    document = read(path)
    assert len(OUTPUTS.code_cells(document)) >= 4
    monkeypatch.chdir(path.parent)
    if needs_fetched_models(document):
        for cell in document["cells"]:
            source = "".join(cell["source"]).replace(FETCHED, BUNDLED)
            cell["source"] = source.replace("simulate(pair, prompts, ", "simulate(pair, prompts[:6], ")
        assert not needs_fetched_models(document)
        assert len(OUTPUTS.outputs_of(document)) == len(OUTPUTS.code_cells(document))
    else:
        assert changed_outputs(document) == []


@pytest.mark.deep
def test_stored_outputs_on_fetched_models_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """This fetches SmolLM2, unless it is there."""
    fetch_model("smollm2")
    found = [path for path in OUTPUTS.NOTEBOOKS if needs_fetched_models(read(path))]
    assert [path.stem for path in found] == ["07_real_models"]
    monkeypatch.chdir(found[0].parent)
    assert changed_outputs(read(found[0])) == []


INSTALLED = re.compile(r'To run this notebook: `pip install "\.\[([a-z,]+)\]"`')
LIGHT = [path for path in OUTPUTS.NOTEBOOKS if path.stem[:2] not in ("07", "08", "11", "14")]
"""These need no torch."""
RUN = """
import os, runpy
outputs = runpy.run_path({script!r})
os.chdir({folder!r})
outputs["outputs_of"](outputs["json"].loads(open({name!r}, encoding="utf-8").read()))
"""


def named_extras(document: dict[str, Any]) -> str:
    """The extras that the first cell names."""
    found = INSTALLED.search("".join(document["cells"][0]["source"]))
    assert found is not None
    return found[1]


def missing_with(extras: str) -> list[str]:
    """The optional libraries that these extras do not bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting, brought = extras.split(","), set[str]()
    while waiting:
        for requirement in project["optional-dependencies"][waiting.pop()]:
            name, _, further = re.split(r"[>;]", requirement)[0].rstrip("]").partition("[")
            brought.add(name)
            waiting += further.split(",") if further else []
    return sorted(EXTRA_OF.keys() - brought)


def imports_of(document: dict[str, Any]) -> str:
    """All its import statements."""
    cells = [ast.parse("".join(cell["source"])) for cell in OUTPUTS.code_cells(document)]
    nodes = [node for cell in cells for node in ast.walk(cell)]
    return "\n".join(ast.unparse(node) for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))


def test_light_notebooks_import_what_their_extra_brings() -> None:
    """All of them in one interpreter; the partner, an audit, needs torch."""
    documents = [read(path) for path in LIGHT]
    assert len(documents) == 10
    assert {named_extras(document) for document in documents} == {"notebooks"}
    code, without = "\n".join(map(imports_of, documents)), missing_with("notebooks")
    assert {"torch", "transformers", "pandas"} <= set(without) <= EXTRA_OF.keys() - {"matplotlib", "networkx"}
    done = run_python(code, without)
    assert (done.returncode, done.stderr) == (0, "")
    (audit,) = (path for path in OUTPUTS.NOTEBOOKS if path.stem == "08_audit_a_sampler")
    assert "No module named 'torch'" in run_python(imports_of(read(audit)), without).stderr


@first_is_quick("path", LIGHT, ids=lambda path: path.stem)
def test_a_light_notebook_runs_with_its_extra(path: Path) -> None:
    without = missing_with(named_extras(read(path)))
    script = str(ROOT / "scripts/notebook_outputs.py")
    done = run_python(RUN.format(script=script, folder=str(path.parent), name=path.name), without)
    assert done.returncode == 0, done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("path", [path for path in OUTPUTS.NOTEBOOKS if path not in LIGHT])
def test_other_notebooks_import_what_their_extras_bring(path: Path) -> None:
    done = run_python(imports_of(read(path)), missing_with(named_extras(read(path))))
    assert (done.returncode, done.stderr) == (0, "")


CELLS = ["import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "print(0.5, 1 / 3)", "[2]"]


def notebook(sources: list[str]) -> dict[str, Any]:
    cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    document: dict[str, Any] = OUTPUTS.with_outputs({"cells": cells, "metadata": {}})
    return document


def test_partner_wrong_notebooks_are_found() -> None:
    """A changed number and a lost output; times may change."""
    current = notebook(CELLS)
    assert changed_outputs(current) == []

    def wrong(number: int, **changes: Any) -> dict[str, Any]:
        document = deepcopy(current)
        document["cells"][number] |= changes
        return document

    printed = current["cells"][1]["outputs"][0]
    assert changed_outputs(wrong(1, outputs=[printed | {"text": ["0.5 0.3343\n"]}])) == [2]
    assert changed_outputs(wrong(1, outputs=[printed | {"text": ["0.5 0.3333333333333334\n"]}])) == []
    assert changed_outputs(wrong(2, outputs=[])) == [3]
    assert changed_outputs(wrong(2, outputs=[], metadata={"tags": ["times"]})) == []


@pytest.mark.parametrize(
    ("stored", "found", "same"),
    [
        ("20/9", "20/9", True),
        ("20/9", "19/9", False),
        ("7,577,633 samples", "7,577,634 samples", False),
        ("3.0975179365501027", "3.0975179365501031", True),
        ("3.0975", "3.0977", False),
        ("8.19564e-08", "8.19565e-08", True),
        ("8.19e-08", "8.29e-08", False),
        ("lossless: True", "lossless: False", False),
    ],
)
def test_texts_agree_up_to_rounding(stored: str, found: str, same: bool) -> None:
    assert agree(stored, found) is same


@pytest.mark.parametrize(
    "cell", ["1 / 0", "import nothing_of_that_name", "plt.plot([1], [2, 3]); plt.show()"]
)
def test_partner_a_cell_that_fails_is_seen(cell: str) -> None:
    with pytest.raises((ZeroDivisionError, ImportError, ValueError)):
        notebook(["import matplotlib.pyplot as plt", cell])

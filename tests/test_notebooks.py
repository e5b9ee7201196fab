"""The stored outputs of every notebook are those of its code; pictures and times are not compared."""

import base64
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from scripts import load
from spectheory.models import fetch_model

OUTPUTS = load("scripts", "notebook_outputs")
ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"\d+(?P<decimals>\.\d+)?(?:e(?P<exponent>[+-]?\d+))?")
MOST_BYTES = 60_000
"""Of a picture."""
FETCHED, BUNDLED = '"smollm2", "smollm2-draft"', '"bundled", "bundled"'
"""The models of a notebook that needs fetched ones, and those that its code also runs on."""
PATHS = re.compile(r"/(home|root|tmp|usr|work|Users)/|[A-Z]:\\|" + re.escape(str(ROOT)))


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


def faults(document: dict[str, Any]) -> list[str]:
    """What is wrong with the stored outputs, without running the code."""
    found = []
    if document["metadata"].get("spectheory", {}).get("code_sha256") != OUTPUTS.code_hash(document):
        found.append("the code has changed")
    for number, cell in enumerate(OUTPUTS.code_cells(document), start=1):
        pictures = [output.get("data", {}).get("image/png", "") for output in cell["outputs"]]
        if any(len(base64.b64decode(picture)) > MOST_BYTES for picture in pictures):
            found.append(f"cell {number} has a large picture")
        if PATHS.search(re.sub('"image/png": "[^"]*"', "", json.dumps(cell["outputs"]))):
            found.append(f"cell {number} names a path of a machine")
        if cell["execution_count"] != number:
            found.append(f"cell {number} was not run in order")
    return found


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


@pytest.mark.parametrize("path", OUTPUTS.NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_current(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If not: ``python scripts/notebook_outputs.py``.

    A notebook on fetched models runs on the bundled ones, so that its code and its assertions are tried.
    """
    document = read(path)
    assert len(OUTPUTS.code_cells(document)) >= 5
    assert faults(document) == []
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
    assert [path.stem for path in found] == ["06_real_models"]
    monkeypatch.chdir(found[0].parent)
    assert changed_outputs(read(found[0])) == []


@pytest.mark.parametrize("path", OUTPUTS.NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_shows_a_picture_and_ends_with_something_to_try(path: Path) -> None:
    document = read(path)
    outputs = [output for cell in OUTPUTS.code_cells(document) for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "## Try this" in "".join(document["cells"][-1]["source"])


CELLS = ["import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "print(0.5, 1 / 3)", "[2]"]


def notebook(sources: list[str]) -> dict[str, Any]:
    cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    document: dict[str, Any] = OUTPUTS.with_outputs({"cells": cells, "metadata": {}})
    return document


def test_outputs_are_those_of_a_notebook() -> None:
    """A picture, what is printed, a value; functions of a cell have their source."""
    picture, printed, value = (cell["outputs"] for cell in notebook(CELLS)["cells"])
    assert picture[0]["output_type"] == "display_data"
    assert base64.b64decode(picture[0]["data"]["image/png"]).startswith(b"\x89PNG")
    assert printed == [{"output_type": "stream", "name": "stdout", "text": ["0.5 0.3333333333333333\n"]}]
    assert value[0]["data"] == {"text/plain": ["[2]"]}
    source = ["import inspect\ndef one():\n    return 1", "print(inspect.getsource(one))"]
    assert "return 1" in text_of(notebook(source)["cells"][1]["outputs"])


def test_partner_wrong_notebooks_are_found() -> None:
    """Changed code, a changed number, a lost output, a large picture, a path, another order."""
    current = notebook(CELLS)
    assert (faults(current), changed_outputs(current)) == ([], [])

    def wrong(number: int, **changes: Any) -> dict[str, Any]:
        document = deepcopy(current)
        document["cells"][number] |= changes
        return document

    assert faults(wrong(1, source="print(0.5, 2 / 3)")) == ["the code has changed"]
    printed = current["cells"][1]["outputs"][0]
    assert changed_outputs(wrong(1, outputs=[printed | {"text": ["0.5 0.3343\n"]}])) == [2]
    assert changed_outputs(wrong(1, outputs=[printed | {"text": ["0.5 0.3333333333333334\n"]}])) == []
    assert changed_outputs(wrong(2, outputs=[])) == [3]
    assert changed_outputs(wrong(2, outputs=[], metadata={"tags": ["times"]})) == []
    large = {"data": {"image/png": base64.b64encode(bytes(MOST_BYTES + 1)).decode()}}
    assert faults(wrong(0, outputs=[large])) == ["cell 1 has a large picture"]
    for text in (f"{ROOT}/a.py", "/tmp/cell_1.py"):
        assert faults(wrong(1, outputs=[printed | {"text": [text]}])) == ["cell 2 names a path of a machine"]
    assert faults(wrong(2, execution_count=7)) == ["cell 3 was not run in order"]


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


def test_partner_a_value_that_cannot_be_shown_is_seen() -> None:
    with pytest.raises(ValueError, match="no table"):
        notebook(["class Bad:\n    def _repr_html_(self):\n        raise ValueError('no table')\n\nBad()"])

"""Every notebook runs from its first cell to its last, and shows what it shows."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def show() -> None:
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")


def run_cell(source: str, file: Path, names: dict[str, Any]) -> None:
    """Run it with the names of the cells before, and represent the value of its last line."""
    file.write_text(source, encoding="utf-8")  # from which functions of the cell have their source
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(file), "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), str(file), "eval"), names)
        repr(value)
        getattr(value, "_repr_html_", str)()


def run_notebook(document: dict[str, Any], folder: Path) -> int:
    names: dict[str, Any] = {"__name__": "notebook"}
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    for number, source in enumerate(cells):
        run_cell(source, folder / f"cell_{number}.py", names)
    return len(cells)


@pytest.fixture(autouse=True)
def figures_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", show)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    assert run_notebook(json.loads(path.read_text(encoding="utf-8")), tmp_path) >= 5


@pytest.mark.parametrize(
    "cell", ["1 / 0", "import nothing_of_that_name", "plt.plot([1], [2, 3]); plt.show()"]
)
def test_partner_a_cell_that_fails_is_seen(cell: str, tmp_path: Path) -> None:
    cells = ["import matplotlib.pyplot as plt\n", cell]
    document = {"cells": [{"cell_type": "code", "source": source} for source in cells]}
    with pytest.raises((ZeroDivisionError, ImportError, ValueError)):
        run_notebook(document, tmp_path)


def test_partner_a_value_that_cannot_be_shown_is_seen(tmp_path: Path) -> None:
    source = "class Bad:\n    def _repr_html_(self):\n        raise ValueError('no table')\n\nBad()"
    with pytest.raises(ValueError, match="no table"):
        run_cell(source, tmp_path / "cell.py", {})

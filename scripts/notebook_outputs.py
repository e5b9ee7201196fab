"""Run the notebooks and store their outputs in them: ``python scripts/notebook_outputs.py [NOTEBOOK ..]``.

A notebook keeps the hash of its code cells in its metadata.  The tests run the cells with the functions
below, and compare hash and text outputs with the stored ones.  Stderr is not stored.
"""

import ast
import base64
import io
import json
import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
DPI, COLOURS = 96, 64
"""Of stored pictures, which a repository keeps."""
LEAST_SHARE = 0.4
"""Of a picture that its axes take: with less they are a strip beside long labels."""
Document = dict[str, Any]


def code_cells(document: Document) -> list[Document]:
    """The cells of code, in order."""
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def code_hash(document: Document) -> str:
    """SHA-256 of the sources of all code cells."""
    sources = ["".join(cell["source"]) for cell in code_cells(document)]
    return sha256(json.dumps(sources).encode()).hexdigest()


def shown(value: Any) -> Document:
    """The forms in which a notebook shows a value."""
    forms = {"text/html": "_repr_html_", "text/latex": "_repr_latex_", "text/plain": "__repr__"}
    made = {kind: getattr(value, form)() for kind, form in forms.items() if hasattr(value, form)}
    data: Document = {kind: text.splitlines(True) for kind, text in made.items() if text is not None}
    from matplotlib.figure import Figure
    from PIL import Image

    if isinstance(value, Figure):
        check_picture(value)
        drawn, small = io.BytesIO(), io.BytesIO()
        value.savefig(drawn, format="png", dpi=DPI)
        Image.open(drawn).convert("RGB").quantize(COLOURS).save(small, "png", optimize=True)
        data["image/png"] = base64.b64encode(small.getvalue()).decode()
    return data


def check_picture(figure: Any) -> None:
    """Refuse a picture whose labels are cut, or whose axes are squeezed.

    Raises:
        ValueError: something is over the edge of the picture, or the axes take less than ``LEAST_SHARE``.
    """
    figure.canvas.draw()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    over = max(-drawn.x0, -drawn.y0, drawn.x1 - width, drawn.y1 - height)
    if over > 0.03:  # the box of a text has some room around its letters
        raise ValueError(f"a picture is cut: {over:.2f} inches of it are over its edge")
    share = sum(axes.get_position().width * axes.get_position().height for axes in figure.axes)
    if share < LEAST_SHARE:
        raise ValueError(f"a picture is squeezed: its axes take {share:.0%} of it")


class _Outputs:
    """The outputs of a cell, in the order in which they are made."""

    def __init__(self) -> None:
        self.found: list[Document] = []
        self.printed = io.StringIO()

    def end_text(self) -> None:
        """Store what was printed so far."""
        text = self.printed.getvalue()
        if text:
            self.found.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(True)})
            self.printed.seek(0)
            self.printed.truncate()

    def show(self) -> None:
        """Store all figures, as ``plt.show`` does in a notebook."""
        import matplotlib.pyplot as plt

        self.end_text()
        try:
            for number in plt.get_fignums():
                data = shown(plt.figure(number))
                self.found.append({"data": data, "metadata": {}, "output_type": "display_data"})
        finally:
            plt.close("all")

    def add_value(self, value: Any, number: int) -> None:
        """Store the value of the last line of a cell."""
        self.end_text()
        result = {"execution_count": number, "metadata": {}, "output_type": "execute_result"}
        self.found.append({"data": shown(value), **result})


def run_cell(source: str, number: int, names: Document) -> list[Document]:
    """The outputs of a cell, run with the names of the cells before it.

    Args:
        source: its code.
        number: its number, from 1.
        names: the names of the cells before; its names are added.
    """
    file, tree = f"<cell {number}>", ast.parse(source)
    linecache.cache[file] = len(source), None, source.splitlines(True), file  # functions have their source
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    outputs = _Outputs()
    with redirect_stdout(outputs.printed), _shown(outputs):
        exec(compile(tree, file, "exec"), names)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
        if value is not None:
            outputs.add_value(value, number)
    outputs.end_text()
    return outputs.found


@contextmanager
def _shown(outputs: _Outputs) -> Iterator[None]:
    import matplotlib.pyplot as plt

    before, plt.show = plt.show, lambda *_, **__: outputs.show()
    try:
        yield
    finally:
        plt.show = before


def outputs_of(document: Document) -> list[list[Document]]:
    """The outputs of every code cell of a notebook."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    names: Document = {"__name__": "notebook"}
    return [
        run_cell("".join(cell["source"]), number, names)
        for number, cell in enumerate(code_cells(document), start=1)
    ]


def with_outputs(document: Document) -> Document:
    """The notebook with its outputs and the hash of its code."""
    found = outputs_of(document)
    for number, (cell, outputs) in enumerate(zip(code_cells(document), found, strict=True), start=1):
        cell["execution_count"], cell["outputs"] = number, outputs
    document["metadata"]["spectheory"] = {"code_sha256": code_hash(document)}
    return document


if __name__ == "__main__":
    for path in [Path(name).resolve() for name in sys.argv[1:]] or NOTEBOOKS:
        os.chdir(path.parent)
        done = with_outputs(json.loads(path.read_text(encoding="utf-8")))
        text = json.dumps(done, ensure_ascii=False, indent=1, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")

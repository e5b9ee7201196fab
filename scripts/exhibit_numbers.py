"""What all exhibits show, in few numbers: a change of any table or picture is noticed.

``python scripts/exhibit_numbers.py`` writes ``tests/paper/small_exhibits.json``: after a meant change, or
when ``figures/`` is written anew.  The tables are those of the small versions.  Only the shape is kept of
what differs between machines: samples of language models, seconds and their steps.  The pictures are those
of the numbers in ``figures/``, which are the same everywhere.
"""

import json
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.foundation.documents import to_json
from spectheory.paper import EXHIBITS, Findings, read_exhibit

FIGURES = Path(__file__).parents[1] / "figures"
STORED = Path(__file__).parents[1] / "tests" / "paper" / "small_exhibits.json"
DIFFER = {
    "full_vocabulary", "interval_gap", "latency", "printed_gains", "real_gaps", "real_pair", "temperature",
    "whole_texts",
}  # fmt: skip


def outline(name: str, findings: Findings) -> dict[str, Any]:
    """Tables, cases that each claim was tried on, and the panels of the picture of the committed numbers.

    A column of numbers is its sum, and the sum with weights 1, 2, .., which knows their order.
    """
    tables = {table.name: _table(table, name not in DIFFER) for table in findings.tables}
    tried = {check.claim: check.tried for check in findings.checks}
    return dict(to_json({"tables": tables, "tried": tried, "panels": _panels(name)}))


def _panels(name: str) -> list[list[Any]]:
    plot, committed = EXHIBITS[name].plot, read_exhibit(name, FIGURES)
    if plot is None or committed is None:
        return []
    figure = plot(committed.findings)
    size, legends = figure.get_size_inches().tolist(), [_legend(legend) for legend in figure.legends]
    return [[size, legends], *map(_panel, figure.axes)]


def _table(table: Any, with_numbers: bool) -> dict[str, Any]:
    columns = {column: _entries(table.column(column), with_numbers) for column in table.columns}
    return {"rows": len(table.rows), "columns": columns}


def _entries(entries: Any, with_numbers: bool) -> Any:
    """A summary: distinct texts, and two sums of the numbers, or how many there are."""
    numbers = [(place, float(x)) for place, x in enumerate(entries, 1) if isinstance(x, Real)]
    texts = list(dict.fromkeys(x for x in entries if isinstance(x, str)))
    if not with_numbers:
        return [*texts, len(numbers)]
    return [*texts, sum(x for _, x in numbers), sum(place * x for place, x in numbers)]


def _panel(axes: Any) -> list[Any]:
    """Where it is, its words, its looks, and where its lines, shapes and words are."""
    place, legend = axes.get_subplotspec(), axes.get_legend()
    labels = [] if legend is None else _legend(legend)
    texts = [f"{_look(text)} {text.get_text()}" for text in axes.texts]
    titles = [axes.get_title(place) for place in ("left", "center", "right")]
    words = [titles, axes.get_xlabel(), axes.get_ylabel(), labels, texts]
    gridlines = [line.get_visible() for axis in (axes.xaxis, axes.yaxis) for line in axis.get_gridlines()[:1]]
    shapes = [patch.get_patch_transform().transform(patch.get_path().vertices) for patch in axes.patches]
    shapes += [path.vertices for shown in axes.collections for path in shown.get_paths()]
    drawn = [
        [line.get_xydata() for line in axes.lines],
        shapes,
        [collection.get_offsets() for collection in axes.collections],
        [[text.get_position()] for text in axes.texts],
        [list(zip(axes.get_xlim(), axes.get_ylim(), strict=True))],
        [[(tick, 0) for tick in axes.get_xticks()], [(0, tick) for tick in axes.get_yticks()]],
    ]
    grid = None if place is None else [*place.get_geometry()]
    looks = [_look(artist) for artist in (*axes.lines, *axes.patches, *axes.collections)]
    scales = [axes.get_xscale(), axes.get_yscale()]
    return [grid, gridlines, scales, *words, list(dict.fromkeys(looks)), [_sums(points) for points in drawn]]


def _legend(legend: Any) -> list[Any]:
    """Its columns and labels."""
    return [legend._ncols, *(text.get_text() for text in legend.get_texts())]


def _look(artist: Any) -> str:
    """The settings of colour, line, marker and text."""
    names = (
        "color facecolor edgecolor alpha linestyle linewidth marker markersize hatch zorder ha va fontsize"
    )
    found = [getattr(artist, f"get_{name}", lambda: None)() for name in names.split()]
    arrays = [x for x in found if isinstance(x, np.ndarray)]
    said = [str(x) for x in found if isinstance(x, (str, int, float))]
    return " ".join([*said, *(f"{x.shape} {x.sum():.3f}" for x in arrays)])


def _sums(points: list[Any]) -> list[float]:
    """Of both coordinates of all points in their order: the sum, and the sum with weights 1, 2, ..

    Example:
        >>> _sums([[(1, 0)], [(2, 3)]])
        [3.0, 3.0, 5.0, 6.0]
    """
    flat = [np.asarray(part, dtype=float).reshape(-1, 2) for part in points]
    together = np.nan_to_num(np.concatenate([np.empty((0, 2)), *flat]))
    order = np.arange(1, len(together) + 1)[:, None]
    return [float(total) for weights in (1, order) for total in (together * weights).sum(axis=0)]


def main() -> None:
    found = {name: outline(name, shown(**shown.small)) for name, shown in EXHIBITS.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name], ensure_ascii=False)}" for name in found)
    STORED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What the small versions of all exhibits show, in few numbers: a change of any table or picture is noticed.

``python scripts/exhibit_numbers.py`` writes ``tests/paper/small_exhibits.json``: after a meant change.
Only the shape is kept of what differs between machines: samples of language models, seconds and their steps.
"""

import json
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.foundation.documents import to_json
from spectheory.paper import EXHIBITS, Findings

STORED = Path(__file__).parents[1] / "tests" / "paper" / "small_exhibits.json"
DIFFER = {
    "full_vocabulary", "interval_gap", "latency", "printed_gains", "real_gaps", "real_pair", "temperature",
    "whole_texts",
}  # fmt: skip


def outline(name: str, findings: Findings) -> dict[str, Any]:
    """Tables, cases that each claim was tried on, and panels.

    A column of numbers is its sum, and the sum with weights 1, 2, .., which knows their order.
    """
    plot = EXHIBITS[name].plot
    outlined = {
        "tables": {table.name: _table(table, name not in DIFFER) for table in findings.tables},
        "tried": {check.claim: check.tried for check in findings.checks},
        "panels": [] if plot is None else [_panel(axes, name not in DIFFER) for axes in plot(findings).axes],
    }
    return dict(to_json(outlined))


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


def _panel(axes: Any, with_numbers: bool) -> list[Any]:
    place = axes.get_subplotspec()
    grid = None if place is None else [*place.get_geometry()]
    drawn = (
        [[float(np.nansum(data)) for data in line.get_data()] for line in axes.lines] if with_numbers else []
    )
    shapes = [patch.get_patch_transform().transform(patch.get_path().vertices) for patch in axes.patches]
    shapes += [path.vertices for shown in axes.collections for path in shown.get_paths()]
    if with_numbers and shapes:
        points = np.concatenate(shapes)
        drawn.append([float(total) for power in (1, 2) for total in np.nansum(points**power, axis=0)])
    gridlines = [line.get_visible() for axis in (axes.xaxis, axes.yaxis) for line in axis.get_gridlines()[:1]]
    looks = list(dict.fromkeys(f"{line.get_color()} {line.get_alpha() or 1}" for line in axes.lines))
    legend = axes.get_legend()
    labels = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    words = [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), labels]
    return [gridlines, grid, *words, len(axes.texts), looks, drawn]


def main() -> None:
    found = {name: outline(name, shown(**shown.small)) for name, shown in EXHIBITS.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name], ensure_ascii=False)}" for name in found)
    STORED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""How all figures look, and how they are saved: the same bytes on every run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# The palette of okabe2008, which stays distinguishable for colour-blind readers.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
BLACK, GREY = "#222222", "#777777"

VERIFIER_COLOURS = {"token": BLUE, "block": ORANGE, "spectr": GREEN, "greedy_multipath": PURPLE}
VERIFIER_LABELS = {
    "token": "token",
    "block": "block",
    "spectr": "SpecTr",
    "greedy_multipath": "greedy multi-path",
}

RC_PARAMS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so that every machine draws the same
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "text.color": BLACK,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.dpi": 200,
    "path.sketch": None,
}


@contextmanager
def figure_style() -> Iterator[None]:
    """The settings above, on top of matplotlib's own defaults and not of the user's."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC_PARAMS)
        yield


def save_figure(figure: Figure, stem: Path) -> None:
    """``stem``.pdf and ``stem``.png without dates or version numbers, fonts embedded."""
    with figure_style():
        figure.savefig(
            stem.with_suffix(".pdf"), metadata={"CreationDate": None, "Creator": None, "Producer": None}
        )
        figure.savefig(stem.with_suffix(".png"), metadata={"Software": None})

"""How all figures look: one style, panels, curves of verifiers, one legend below all panels."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.results import ResultTable
from spectheory.verification.curves import GREY, OPTIMUM, VERIFIER_STYLES

HOUSE_STYLE = Path(__file__).with_name("house.mplstyle")
ACCENT = "#5B6F86"
"""For pairs, laws and what is pointed out; the palette belongs to the verifiers."""
AUTHORS = {
    "spectr2023": "Sun et al. 2023",
    "block2024": "Sun et al. 2024",
    "spectrgbv2026": "Lin et al. 2026",
}
"""Papers as pictures name them; texts have their keys, which the README explains."""
PANEL = 3.6
"""Width of a panel in inches: two of them fill a printed page."""
Look = dict[str, Any]
"""Keyword arguments of a drawing function."""
BROKEN: Look = OPTIMUM | {"linewidth": 1.2}
"""A broken black line, for an optimum."""


@contextmanager
def panels(
    rows: int = 1, columns: int = 1, *, width: float = PANEL, height: float = 3.0, **options: Any
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure and its panels, row by row, in the style of the house; sizes in inches are those of one panel.

    Example:
        >>> with panels(1, 2) as (figure, axes):
        ...     line = axes[1].plot([1, 2])
        >>> len(figure.axes)
        2
    """
    with figure_style():
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        yield figure, list(np.ravel(figure.subplots(rows, columns, squeeze=False, **options)))


@contextmanager
def panels_by(
    table: ResultTable, column: str, ylabel: str, *, legend_columns: int = 4, **options: Any
) -> Iterator[tuple[Figure, list[tuple[Axes, Any, ResultTable]]]]:
    """A figure with a panel for every entry of a column, in a row: its axes, the entry and its rows."""
    entries = table.distinct(column)
    with panels(1, len(entries), sharey=True, **options) as (figure, all_axes):
        yield (
            figure,
            [
                (axes, entry, table.where(**{column: entry}))
                for axes, entry in zip(all_axes, entries, strict=True)
            ],
        )
        all_axes[0].set_ylabel(ylabel)
        legend_below(figure, legend_columns)


def verifier_band(
    axes: Axes,
    name: str,
    places: Sequence[Any],
    values: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    lossless: bool = True,
    **look: Any,
) -> None:
    """Estimates of one verifier with their intervals, grey and hollow if it is not lossless.

    The intervals of several places are a band, so that no place has to be moved for them to be seen.
    """
    style = VERIFIER_STYLES[name]
    colour = style.colour if lossless else GREY
    curve: Look = {
        "color": colour, "marker": style.marker, "markersize": 5, "linewidth": 1.2, "clip_on": False,
        "markerfacecolor": colour if lossless else "white", "label": named(name, lossless),
    }  # fmt: skip
    curve |= look
    if len(places) > 1:
        axes.fill_between(places, lows, highs, color=curve["color"], alpha=0.1, linewidth=0)
    else:
        axes.vlines(places, lows, highs, color=curve["color"], alpha=0.5, linewidth=1.2)
    axes.plot(places, values, **curve)


def estimates(table: ResultTable) -> tuple[list[Any], list[Any], list[Any]]:
    """The values, lower and upper ends of a table of estimates, as ``verifier_band`` takes them."""
    return table["block_efficiency"], table["low"], table["high"]


def note(axes: Axes, text: str, place: tuple[float, float] = (0.98, 0.02), **options: Any) -> None:
    """A small line in a corner of a panel, placed in fractions of it."""
    look: Look = {"ha": "right", "fontsize": 8}
    axes.annotate(text, place, xycoords="axes fraction", **(look | options))


def label_point(
    axes: Axes, text: str, point: tuple[float, float], offset: tuple[float, float], **options: Any
) -> None:
    axes.annotate(text, point, xytext=offset, textcoords="offset points", **options)


def zero_line(axes: Axes, vertical: bool = False) -> None:
    line = axes.axvline if vertical else axes.axhline
    line(0, color=GREY, linewidth=0.8)


def legend_below(figure: Figure, columns: int = 4) -> None:
    """One legend below all panels; a curve of several panels is named once."""
    named: Look = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if named:
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns)


def named(verifier: str, lossless: bool = True) -> str:
    """A verifier and whether it is lossless, in the same words in every picture.

    Greedy block is lossless only with its modification of the target (theory.md Statement 4.5).

    Example:
        >>> named("greedy_block"), named("greedy_block", lossless=False)
        ('greedy block, modified (lossless)', 'greedy block, unmodified (not lossless)')
        >>> named("spectr"), named("spectr_gbv", lossless=False)
        ('SpecTr', 'SpecTr-GBV (not lossless)')
    """
    label, status = VERIFIER_STYLES[verifier].label, "" if lossless else " (not lossless)"
    if verifier == "greedy_block":
        return f"{label}, modified (lossless)" if lossless else f"{label}, unmodified{status}"
    return label + status


@contextmanager
def figure_style() -> Iterator[None]:
    """The settings of ``house.mplstyle`` on top of matplotlib's own defaults, not of the user's."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.style.use(HOUSE_STYLE)
        yield


METADATA = {"pdf": ("CreationDate", "Creator", "Producer"), "png": ("Software",)}
"""What matplotlib would write that differs between two runs or two versions."""


def figure_bytes(figure: Figure, ending: str) -> bytes:
    """The file of a figure, ``pdf`` or ``png``, without dates or version numbers, fonts embedded."""
    file = io.BytesIO()
    with figure_style():
        figure.savefig(file, format=ending, metadata=dict.fromkeys(METADATA[ending]))
    return file.getvalue()

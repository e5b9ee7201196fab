"""Parts that several pictures share: panels, the curve of a verifier, one legend below all panels."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.paper.findings import ResultTable
from spectheory.paper.style import BLACK, GREY, VERIFIER_STYLES, figure_style, named

PANEL = 3.6
"""Width of a panel in inches: two of them fill a printed page."""
Look = dict[str, Any]
"""Keyword arguments of a drawing function."""
BROKEN: Look = {"color": BLACK, "linestyle": (0, (4, 2)), "linewidth": 1.2}
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


def verifier_curve(
    axes: Axes, name: str, places: Sequence[Any], values: Sequence[Any], **options: Any
) -> None:
    """The exact values of one verifier: a line with its colour, its marker and its name in the legend."""
    style = VERIFIER_STYLES[name]
    look: Look = {
        "color": style.colour, "marker": style.marker, "markersize": 5, "markerfacecolor": "white",
        "label": style.label, "clip_on": False,
    }  # fmt: skip
    axes.plot(places, values, **(look | options))


def optimum_curve(
    axes: Axes, places: Sequence[Any], values: Sequence[Any], label: str = "optimum (linear program)"
) -> None:
    """The best of all valid verifiers: a broken black line."""
    axes.plot(places, values, **(BROKEN | {"linewidth": 1.3}), label=label)


def verifier_points(
    axes: Axes,
    name: str,
    places: Sequence[Any],
    values: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    lossless: bool = True,
) -> None:
    """Estimates of one verifier: points with their intervals, grey and hollow if it is not lossless."""
    style = VERIFIER_STYLES[name]
    colour = style.colour if lossless else GREY
    below = np.subtract(values, lows)
    above = np.subtract(highs, values)
    axes.errorbar(
        places, values, yerr=[below, above], fmt=style.marker, color=colour, markersize=5,
        markerfacecolor=colour if lossless else "white", capsize=2.5, elinewidth=1.2,
        label=named(name, lossless),
    )  # fmt: skip


def estimates(table: ResultTable) -> tuple[list[Any], list[Any], list[Any]]:
    """The values, lower and upper ends of a table of estimates, as ``verifier_points`` takes them."""
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

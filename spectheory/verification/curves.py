"""Plot style: one colour, marker and label for each verifier in all figures, and curves drawn with them."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from spectheory.verification.algorithms import verifiers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of okabe2008, with colours added so that any two differ for colour-blind readers too.
PALETTE = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#FFB013", "D"), ("#47DEAD", "v"), ("#009E73", "v"),
    ("#986EFF", "^"), ("#211D9C", "<"), ("#594003", "X"), ("#82006B", "P"), ("#D9A6E0", "d"),
    ("#E0004B", ">"), ("#222222", "*"), ("#8811EE", "p"), ("#A5CE6F", "h"), ("#8899EE", "H"),
    ("#DD00BB", "8"), ("#114422", "o"), ("#AA99AA", "s"), ("#550077", "D"),
)  # fmt: skip
"""Colours and markers of the verifiers, in registry order; a new verifier gets the next pair."""
BLACK, GREY = "#222222", "#777777"
SPELLED = {"kseq": "K-SEQ", "spectr": "SpecTr", "otm": "OTM", "spectr_gbv": "SpecTr-GBV"}
"""Verifier names for which the papers use a special spelling."""
OPTIMUM: dict[str, Any] = {"color": BLACK, "linestyle": (0, (4, 2)), "linewidth": 1.3}
"""The style of an optimum: a dashed black line."""


class VerifierStyle(NamedTuple):
    """The style of a verifier in all figures: colour, marker and label."""

    colour: str
    marker: str
    label: str


def _label(name: str) -> str:
    words = name.replace("multipath", "multi-path").replace("multi_round", "multi-round").replace("_", " ")
    return SPELLED.get(name, words)


VERIFIER_STYLES: Mapping[str, VerifierStyle] = {
    name: VerifierStyle(*look, _label(name)) for name, look in zip(verifiers, cycle(PALETTE), strict=False)
}
"""The style of each registered verifier."""


def verifier_curve(
    axes: "Axes", name: str, places: Sequence[Any], values: Sequence[Any], **options: Any
) -> None:
    """Draw the values of one verifier: a line with its colour, its marker and its label in the legend.

    Args:
        axes: matplotlib axes.
        name: the name of a verifier.  If it is not registered, the line is grey.
        places: horizontal coordinates, such as the numbers of drafts.
        values: vertical coordinates, such as block efficiencies in tokens per target call.
        options: keyword arguments of ``axes.plot``, which replace the verifier's style.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> verifier_curve(axes, "block", [1, 2], [5 / 3, 20 / 9])
        >>> axes.lines[0].get_label()
        'block'
    """
    style = VERIFIER_STYLES.get(name, VerifierStyle(GREY, "o", name))
    look: dict[str, Any] = {
        "color": style.colour, "marker": style.marker, "markersize": 5, "markerfacecolor": "white",
        "label": style.label, "clip_on": False,
    }  # fmt: skip
    axes.plot(places, values, **(look | options))


def optimum_curve(
    axes: "Axes", places: Sequence[Any], values: Sequence[Any], label: str = "optimum (linear program)"
) -> None:
    """Draw the optimum over all valid verifiers: a dashed black line."""
    axes.plot(places, values, **OPTIMUM, label=label)

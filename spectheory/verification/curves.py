"""One colour, one marker and one name for each verifier in every picture, and curves drawn with them."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from spectheory.verification.algorithms import verifiers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of okabe2008, and colours added to it so that any two differ for colour-blind readers too.
PALETTE = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#FFB013", "D"), ("#47DEAD", "v"), ("#009E73", "v"),
    ("#986EFF", "^"), ("#211D9C", "<"), ("#594003", "X"), ("#82006B", "P"), ("#D9A6E0", "d"),
    ("#E0004B", ">"), ("#222222", "*"), ("#8811EE", "p"), ("#A5CE6F", "h"), ("#8899EE", "H"),
    ("#DD00BB", "8"), ("#114422", "o"), ("#AA99AA", "s"), ("#550077", "D"),
)  # fmt: skip
"""Colours and markers of the verifiers, in the order of their registry; a new verifier gets the next."""
BLACK, GREY = "#222222", "#777777"
SPELLED = {"kseq": "K-SEQ", "spectr": "SpecTr", "otm": "OTM", "spectr_gbv": "SpecTr-GBV"}
"""Names that the papers spell in another way than the words of the name."""
OPTIMUM: dict[str, Any] = {"color": BLACK, "linestyle": (0, (4, 2)), "linewidth": 1.3}
"""The look of an optimum: a broken black line."""


class VerifierStyle(NamedTuple):
    """The look of a verifier in every picture: colour, marker and name."""

    colour: str
    marker: str
    label: str


def _label(name: str) -> str:
    words = name.replace("multipath", "multi-path").replace("multi_round", "multi-round").replace("_", " ")
    return SPELLED.get(name, words)


VERIFIER_STYLES: Mapping[str, VerifierStyle] = {
    name: VerifierStyle(*look, _label(name)) for name, look in zip(verifiers, cycle(PALETTE), strict=False)
}
"""One colour and one marker for each registered verifier."""


def verifier_curve(
    axes: "Axes", name: str, places: Sequence[Any], values: Sequence[Any], **options: Any
) -> None:
    """Draw the values of one verifier: a line with its colour, its marker and its name in the legend.

    Args:
        axes: of matplotlib.
        name: of a verifier; one that is not registered is grey.
        places: on the horizontal axis, such as the numbers of drafts.
        values: such as block efficiencies, in tokens per target call.
        options: of ``axes.plot``, in place of the verifier's own.

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
    """Draw the best of all valid verifiers: a broken black line."""
    axes.plot(places, values, **OPTIMUM, label=label)

"""How all figures look, and how they are saved: the same bytes on every run."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.style
from matplotlib.colors import is_color_like, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectheory.foundation.errors import InvalidInputError

# The palette of okabe2008, and colours added to it so that any two differ for colour-blind readers too.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#82006B"
AMBER, MINT, VIOLET, INDIGO = "#FFB013", "#47DEAD", "#986EFF", "#211D9C"
BROWN, PINK, LIME, CRIMSON = "#594003", "#D9A6E0", "#A5CE6F", "#E0004B"
ULTRAVIOLET = "#8811EE"
BLACK, GREY = "#222222", "#777777"
ACCENT = "#5B6F86"
"""For pairs, laws and what is pointed out; the colours above belong to the verifiers."""


class VerifierStyle(NamedTuple):
    """How one verifier looks in every picture: colour, marker and name."""

    colour: str
    marker: str
    label: str


VERIFIER_STYLES: Mapping[str, VerifierStyle] = {
    "token": VerifierStyle(BLUE, "o", "token"),
    "block": VerifierStyle(ORANGE, "s", "block"),
    "greedy_block": VerifierStyle(AMBER, "D", "greedy block"),
    "kseq": VerifierStyle(MINT, "v", "K-SEQ"),
    "spectr": VerifierStyle(GREEN, "v", "SpecTr"),
    "multi_round": VerifierStyle(VIOLET, "^", "multi-round"),
    "multi_round_without_replacement": VerifierStyle(INDIGO, "<", "multi-round without replacement"),
    "otm": VerifierStyle(BROWN, "X", "OTM"),
    "greedy_multipath": VerifierStyle(PURPLE, "P", "greedy multi-path"),
    "mixed_multipath": VerifierStyle(PINK, "d", "mixed multi-path"),
    "scored_multipath": VerifierStyle(CRIMSON, ">", "scored multi-path"),
    "optimal_multipath": VerifierStyle(BLACK, "*", "optimal multi-path"),
    "traversal": VerifierStyle(ULTRAVIOLET, "p", "traversal"),
    "spectr_gbv": VerifierStyle(LIME, "h", "SpecTr-GBV"),
}
"""One colour and one marker for each verifier, everywhere."""

VERIFIER_COLOURS = {name: style.colour for name, style in VERIFIER_STYLES.items()}
VERIFIER_LABELS = {name: style.label for name, style in VERIFIER_STYLES.items()}

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
    "svg.hashsalt": "spectheory",
    "svg.fonttype": "path",
}


_METADATA = {
    "pdf": ("CreationDate", "Creator", "Producer"),
    "png": ("Software",),
    "svg": ("Date", "Creator"),
}
_USERS_STYLES: list[str] = []


@contextmanager
def figure_style() -> Iterator[None]:
    """The settings above, on top of matplotlib's own defaults and not of the user's.

    Inside ``users_style`` the user's come on top.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC_PARAMS)
        for style in _USERS_STYLES:
            mpl.style.use(style)
        yield


@contextmanager
def users_style(style: str | None) -> Iterator[None]:
    """Draw with a matplotlib style on top: its name, or a file.

    Raises:
        InvalidInputError: there is none.
    """
    if style is not None:
        try:
            with mpl.rc_context():
                mpl.style.use(style)
        except (OSError, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{style!r} is neither a style of matplotlib nor a file of one"
            ) from error
        _USERS_STYLES.append(style)
    try:
        yield
    finally:
        _USERS_STYLES.clear()


def _ink(figure: Figure, colour: str) -> None:
    """Draw black lines in another colour, one that shows on the user's ground."""
    for line in figure.findobj(Line2D):
        for name in ("color", "markeredgecolor", "markerfacecolor"):
            value = getattr(line, f"get_{name}")()
            if is_color_like(value) and to_hex(value) == BLACK:
                getattr(line, f"set_{name}")(colour)


def figure_bytes(figure: Figure, ending: str) -> bytes:
    """The file of a figure, ``pdf``, ``png`` or ``svg``, without dates or version numbers, fonts embedded."""
    file = io.BytesIO()
    with figure_style():
        if _USERS_STYLES:
            _ink(figure, mpl.rcParams["text.color"])
        figure.savefig(file, format=ending, metadata=dict.fromkeys(_METADATA[ending]))
    return file.getvalue()

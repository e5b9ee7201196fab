"""How all figures look, and how they are saved: the same bytes on every run."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.style
from matplotlib.colors import is_color_like, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.algorithms import verifiers

# The palette of okabe2008, and colours added to it so that any two differ for colour-blind readers too.
PALETTE = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#FFB013", "D"), ("#47DEAD", "v"), ("#009E73", "v"),
    ("#986EFF", "^"), ("#211D9C", "<"), ("#594003", "X"), ("#82006B", "P"), ("#D9A6E0", "d"),
    ("#E0004B", ">"), ("#222222", "*"), ("#8811EE", "p"), ("#A5CE6F", "h"), ("#8899EE", "H"),
    ("#DD00BB", "8"), ("#114422", "o"), ("#AA99AA", "s"), ("#550077", "D"),
)  # fmt: skip
"""Colours and markers of the verifiers, in the order of their registry; a new verifier gets the next."""
BLACK, GREY = "#222222", "#777777"
ACCENT = "#5B6F86"
"""For pairs, laws and what is pointed out; the palette belongs to the verifiers."""
SPELLED = {"kseq": "K-SEQ", "spectr": "SpecTr", "otm": "OTM", "spectr_gbv": "SpecTr-GBV"}
"""Names that the papers spell in another way than the words of the name."""
AUTHORS = {
    "spectr2023": "Sun et al. 2023",
    "block2024": "Sun et al. 2024",
    "spectrgbv2026": "Lin et al. 2026",
}
"""Papers as pictures name them; texts have their keys, which the README explains."""


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
"""One colour and one marker for each verifier, everywhere."""


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


_METADATA = {
    "pdf": ("CreationDate", "Creator", "Producer"),
    "png": ("Software",),
    "svg": ("Date", "Creator"),
}
HOUSE_STYLE = Path(__file__).with_name("house.mplstyle")
_USERS_STYLES: list[str] = []


@contextmanager
def figure_style() -> Iterator[None]:
    """The settings above, on top of matplotlib's own defaults and not of the user's.

    Inside ``users_style`` the user's come on top.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.style.use([HOUSE_STYLE, *_USERS_STYLES])
        yield


@contextmanager
def users_style(style: str | None) -> Iterator[None]:
    """Draw with a matplotlib style on top: its name, or a file."""
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

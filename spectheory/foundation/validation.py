"""Checks of arguments that many public functions share."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError, UnknownNameError

MAX_TOLERANCE = 1e-2
"""Larger tolerances, in probability, would accept arrays that are not distributions."""
LARGEST_COUNT = 2**63 - 1
"""What arrays of whole numbers hold."""
LONGEST_DRAFT = 10_000
"""The most tokens of a path that language models draft; each has a row of the vocabulary."""


def unknown_name(what: str, name: str, known: Iterable[str], also: str = "") -> UnknownNameError:
    """The error about a name that does not exist, with the nearest one that does.

    Args:
        what: the noun: "verifier".
        name: as given.
        known: the names that exist.
        also: an alternative, appended.

    Example:
        >>> print(unknown_name("verifier", "blok", ["token", "block"]))
        no verifier is called 'blok'; did you mean 'block'? known: token, block
    """
    names = list(known)
    hint = nearest_name(name, names, 0.4)
    known = f"known: {', '.join(names)}" if names else "there is none"
    return UnknownNameError(f"no {what} is called {name!r};{hint} {known}{also}")


def nearest_name(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """A question behind an error about a name; empty if no known name is as near as this."""
    near = get_close_matches(name, known, n=1, cutoff=likeness)
    return f" did you mean {near[0]!r}?" if near else ""


def is_number(value: Any) -> bool:
    """Whether ``value`` is a finite real number, of Python or numpy; truth values are not."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of float64
        return False


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, of whatever library (numpy, sympy, torch), and not a truth value.

    Example:
        >>> is_whole(np.int64(2)), is_whole(True), is_whole(2.0)
        (True, False, False)
    """
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        return False
    try:
        index(value)
    except TypeError:
        return False
    return True


def check_count(
    name: str,
    value: Any,
    at_least: int = 1,
    error: type[Exception] = InvalidInputError,
    advice: str = "",
    at_most: int = LARGEST_COUNT,
) -> int:
    """``value`` as an int.

    Args:
        name: of the argument, for the error.
        value: as given; whole numbers of Python and numpy are taken.
        at_least: the smallest number that will do.
        error: the class to raise, ``InvalidInputError`` or a subclass.
        advice: what to do, where name and range do not say.
        at_most: the largest number that will do.
    """
    if not is_whole(value) or value < at_least:
        received = f"got {value!r}; {advice}" if advice else f"got {value!r}"
        raise error(f"{name} must be a whole number of at least {at_least}, {received}")
    if value > at_most:
        raise error(f"{name} must be at most {at_most}, got {_shortened(value)}")
    return int(value)


def _shortened(number: int) -> str:
    return f"{number}" if number < 10**40 else "a number of more than 40 digits"


def check_num_drafts(num_drafts: Any) -> int:
    """K, the number of drafted paths, as an int; see ``check_count``."""
    return check_count("num_drafts", num_drafts)


def check_draft_length(name: str, draft_length: Any) -> int:
    """L of paths that language models draft, as an int; see ``check_count``."""
    return check_count(name, draft_length, at_most=LONGEST_DRAFT)


def check_positive(name: str, value: Any) -> float:
    """``value`` as a float."""
    if not (is_number(value) and value > 0):
        raise InvalidInputError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def check_tolerance(name: str, value: Any) -> float:
    """``value`` as a float, in probability."""
    if not (is_number(value) and 0 <= value <= MAX_TOLERANCE):
        raise InvalidInputError(f"{name} must be a number from 0 to {MAX_TOLERANCE}, got {value!r}")
    return float(value)


def check_confidence(confidence: Any, name: str = "confidence") -> float:
    """The level of an interval, or another probability that is neither 0 nor 1, as a float."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InvalidInputError(f"{name} must lie between 0 and 1, got {confidence!r}")
    return float(confidence)


def check_kind(name: str, value: Any, kind: str) -> Any:
    """``value``, of a class or with a base of this name; the class need not be imported.

    Example:
        >>> check_kind("seed", 3, "int")
        3
    """
    if kind not in {base.__name__ for base in type(value).__mro__}:
        raise InvalidInputError(f"{name} must be of the class {kind}, got {in_one_line(value)}")
    return value


def check_callable(name: str, value: Any) -> Any:
    """``value``, a function or another object that can be called."""
    if not callable(value):
        raise InvalidInputError(f"{name} must be a function, got {in_one_line(value)}")
    return value


def check_path(name: str, value: Any) -> Path:
    """``value``, a text or a ``Path`` without NUL, as a path."""
    if not isinstance(value, (str, PathLike)) or "\0" in str(value):
        raise InvalidInputError(f"{name} must be a path, got {in_one_line(value)}")
    return Path(value)


def in_one_line(value: Any) -> str:
    """The beginning of its ``repr``."""
    return " ".join(repr(value).split())[:80]

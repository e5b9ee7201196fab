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
"""The largest integer of an int64 array."""
LONGEST_DRAFT = 10_000
"""The longest path, in tokens, that language models draft.  Each token needs a row over the vocabulary."""


def unknown_name(what: str, name: str, known: Iterable[str], also: str = "") -> UnknownNameError:
    """Make the error for a name that does not exist, with the nearest existing name.

    Args:
        what: the noun for the message, such as "verifier".
        name: the name that the user gave.
        known: the existing names.
        also: another option, appended to the message.

    Example:
        >>> print(unknown_name("verifier", "blok", ["token", "block"]))
        no verifier is called 'blok'; did you mean 'block'? known: token, block
    """
    names = list(known)
    hint = nearest_name(name, names, 0.4)
    known = f"known: {', '.join(names)}" if names else "there is none"
    return UnknownNameError(f"no {what} is called {name!r};{hint} {known}{also}")


def nearest_name(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return the text `` did you mean NAME?``, or "" if no known name has at least this likeness (0 to 1)."""
    near = get_close_matches(name, known, n=1, cutoff=likeness)
    return f" did you mean {near[0]!r}?" if near else ""


def is_number(value: Any) -> bool:
    """True if ``value`` is a finite real number of Python or numpy, and not a boolean."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of float64
        return False


def is_whole(value: Any) -> bool:
    """True if the value is an integer of any library (numpy, sympy, torch), and not a boolean.

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
    """Check that ``value`` is an integer in a range, and return it as an int.

    Args:
        name: the name of the argument, for the message.
        value: the value that the user gave; integers of any library are accepted (``is_whole``).
        at_least: the smallest valid number.
        error: the class to raise, ``InvalidInputError`` or a subclass.
        advice: what to do, if name and range do not make it clear.
        at_most: the largest valid number.
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
    """Check K, the number of drafted paths, and return it as an int; see ``check_count``."""
    return check_count("num_drafts", num_drafts)


def check_draft_length(name: str, draft_length: Any) -> int:
    """Check L for paths drafted by language models, and return it as an int; see ``check_count``."""
    return check_count(name, draft_length, at_most=LONGEST_DRAFT)


def check_positive(name: str, value: Any) -> float:
    """Check that ``value`` is a positive number, and return it as a float."""
    if not (is_number(value) and value > 0):
        raise InvalidInputError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def check_tolerance(name: str, value: Any) -> float:
    """Check a tolerance, in probability from 0 to ``MAX_TOLERANCE``, and return it as a float."""
    if not (is_number(value) and 0 <= value <= MAX_TOLERANCE):
        raise InvalidInputError(f"{name} must be a number from 0 to {MAX_TOLERANCE}, got {value!r}")
    return float(value)


def check_confidence(confidence: Any, name: str = "confidence") -> float:
    """Check a confidence level, or another probability strictly between 0 and 1; return it as a float."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InvalidInputError(f"{name} must lie between 0 and 1, got {confidence!r}")
    return float(confidence)


def check_kind(name: str, value: Any, kind: str) -> Any:
    """Check that ``value`` has a class or base class of this name, without importing it, and return it.

    Example:
        >>> check_kind("seed", 3, "int")
        3
    """
    if kind not in {base.__name__ for base in type(value).__mro__}:
        raise InvalidInputError(f"{name} must be of the class {kind}, got {in_one_line(value)}")
    return value


def check_callable(name: str, value: Any) -> Any:
    """Check that ``value`` is a function or another callable object, and return it."""
    if not callable(value):
        raise InvalidInputError(f"{name} must be a function, got {in_one_line(value)}")
    return value


def check_path(name: str, value: Any) -> Path:
    """Check that ``value`` is a string or ``Path`` without NUL, and return it as a ``Path``."""
    if not isinstance(value, (str, PathLike)) or "\0" in str(value):
        raise InvalidInputError(f"{name} must be a path, got {in_one_line(value)}")
    return Path(value)


def in_one_line(value: Any) -> str:
    """Return the first 80 characters of the value's ``repr``, in one line."""
    return " ".join(repr(value).split())[:80]

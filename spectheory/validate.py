"""Checks of arguments that many public functions share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spectheory.errors import InvalidInputError


def check_count(name: str, value: Any, at_least: int = 1, error: type[Exception] = InvalidInputError) -> int:
    """``value`` as an int.

    Raises:
        InvalidInputError: it is not a whole number of at least ``at_least``; the text names the argument.
            ``error`` may be a subclass of it.

    Example:
        >>> check_count("num_drafts", 2)
        2
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < at_least:
        raise error(f"{name} must be a whole number of at least {at_least}, got {value!r}")
    return int(value)


def check_num_drafts(num_drafts: Any) -> int:
    """K, the number of drafted paths, as an int; see ``check_count``."""
    return check_count("num_drafts", num_drafts)


def check_positive(name: str, value: Any) -> float:
    """``value`` as a float.

    Raises:
        InvalidInputError: it is not a positive, finite number; the text names the argument.

    Example:
        >>> check_positive("relative_gap", 1e-6)
        1e-06
    """
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and value > 0):
        raise InvalidInputError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def check_confidence(confidence: Any) -> float:
    """The level of an interval.

    Raises:
        InvalidInputError: it is not between 0 and 1, both excluded.

    Example:
        >>> check_confidence(0.95)
        0.95
    """
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie between 0 and 1, got {confidence}")
    return float(confidence)

"""Checks of arguments that many public functions share."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.errors import InvalidInputError


def check_count(name: str, value: Any) -> int:
    """``value`` as an int.

    Raises:
        InvalidInputError: it is not a whole number of at least 1; the text names the argument.

    Example:
        >>> check_count("num_drafts", 2)
        2
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 1:
        raise InvalidInputError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def check_num_drafts(num_drafts: Any) -> int:
    """K, the number of drafted paths, as an int; see ``check_count``."""
    return check_count("num_drafts", num_drafts)

"""Parse rows of probabilities as users write them: strings, rationals, floats of any library, tensors."""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
from flint import fmpq

from spectheory.foundation import arrays
from spectheory.foundation.errors import InvalidInputError, InvalidPairError
from spectheory.foundation.exact_numbers import to_fraction

MAX_DIGITS = 4_000
"""The longest string, in characters, that is parsed as a rational."""
Row = Sequence[Any]


def parse_probs(values: Row) -> np.ndarray:
    """Parse one row of probabilities, either all exact or all float64.  Integers are allowed in both.

    Exact entries are strings (``"1/3"``, ``"0.25"``), ``Fraction``, ``Decimal``, and the rationals of sympy
    and python-flint.  Python floats, numpy scalars and arrays, and torch tensors give float64.

    Returns:
        Fractions (a numpy array of objects) or float64, [V].

    Raises:
        InvalidPairError: an entry is not a number, or exact and float entries are mixed.
    """
    return parse_rows({"row": values})["row"]


def parse_rows(rows: Mapping[Any, Row], normalise: bool = False) -> dict[Any, np.ndarray]:
    """Parse all rows of one pair, in the same arithmetic for all rows; see ``parse_probs``.

    Args:
        rows: key -> row.
        normalise: True to divide every row by its sum.  A row without a positive sum stays unchanged.
    """
    parsed = {key: [parse_entry(value) for value in _entries(row)] for key, row in rows.items()}
    # Type -> the first entry of this type, as the user wrote it.  Integers are of neither type.
    written: dict[type, Any] = {}
    for key, values in parsed.items():
        for value, original in zip(values, _entries(rows[key]), strict=True):
            if type(value) is not int:
                written.setdefault(type(value), original)
    if len(written) > 1:
        raise InvalidPairError(
            f"exact and float entries are mixed ({written[Fraction]!r} and {written[float]!r}); "
            "write all entries as strings or all as numbers"
        )
    convert = to_float64 if float in written else Fraction
    found = {
        key: np.array([convert(value) for value in values], dtype=float if float in written else object)
        for key, values in parsed.items()
    }
    if not normalise:
        return found
    return {key: arrays.normalise(row) if row.sum() > 0 else row for key, row in found.items()}


def to_float64(value: Any) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidPairError(
            "a probability is too large for a float64; expected numbers in [0, 1]"
        ) from error


def _entries(row: Any) -> Sequence[Any]:
    entries = row.tolist() if hasattr(row, "tolist") else row  # numpy and torch, from any device
    if isinstance(entries, (str, bytes)) or not isinstance(entries, Sequence):
        raise InvalidPairError(f"a row must be a list of probabilities, got {row!r}")
    return entries


def parse_entry(value: Any) -> int | Fraction | float:
    """Parse one number as users write it.  All kinds but floats are exact.

    Raises:
        InvalidPairError: the value is not a number, or a string with too many digits.
    """
    if getattr(value, "ndim", None) == 0:  # a scalar of numpy or torch
        value = value.item()
    if isinstance(value, bool):
        raise InvalidPairError(f"a probability cannot be {value!r}")
    if isinstance(value, (str, Decimal)):
        return _parse_text(str(value))
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):  # Fraction, and sympy's rationals, which sympy registers
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real):
        return to_float64(value)
    if isinstance(value, fmpq):
        return to_fraction(value)
    raise InvalidPairError(f"a probability must be a string or a number, got {value!r}")


def parse_parameter(name: str, value: Any, least: int, most: float = math.inf) -> int | Fraction | float:
    """Parse one number (``parse_entry``) from ``least`` to ``most``.

    Raises:
        InvalidInputError: the value is not a number, or outside of these bounds.
    """
    try:
        number = parse_entry(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name} must be a number, got {value!r}") from error
    if not least <= number <= most or number == math.inf:
        end = "inf)" if most == math.inf else f"{most}]"
        raise InvalidInputError(f"{name} must be a number in [{least}, {end}, got {value!r}")
    return number


def _parse_text(text: str) -> Fraction:
    exponent = re.search(r"[eE][+-]?0*(\d+)\s*$", text)
    if len(text) > MAX_DIGITS or (exponent and len(exponent[1]) > 4):
        raise InvalidPairError(
            f"{text[:40]!r} has too many digits; a rational may have {MAX_DIGITS}, its exponent four"
        )
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise InvalidPairError(f"{text!r} is not a rational such as '1/3' or '0.25'") from error

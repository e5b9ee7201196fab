"""Rows of probabilities as users write them: texts, rationals and floats of any library, tensors."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
from flint import fmpq

from spectheory.foundation import arrays
from spectheory.foundation.errors import InvalidPairError
from spectheory.foundation.exact_numbers import to_fraction

MAX_DIGITS = 4_000
"""The longest text read as a rational."""
Row = Sequence[Any]


def parse_probs(values: Row) -> np.ndarray:
    """One row of probabilities, all exact or all float64; whole numbers go with both.

    Exact are texts (``"1/3"``, ``"0.25"``), ``Fraction``, ``Decimal``, and the rationals of sympy and
    python-flint.  Float64 are floats, numpy's scalars and arrays, and torch's tensors.

    Returns:
        Fractions (a numpy array of objects) or float64, [V].

    Raises:
        InvalidPairError: an entry is not a number, or exact and float entries are mixed.
    """
    return parse_rows({"row": values})["row"]


def parse_rows(rows: Mapping[Any, Row], normalise: bool = False) -> dict[Any, np.ndarray]:
    """All rows of one pair, with one kind of arithmetic for all of them; see ``parse_probs``.

    Args:
        normalise: divide every row by its sum; a row without a positive sum stays as it is.
    """
    parsed = {key: [parse_entry(value) for value in _entries(row)] for key, row in rows.items()}
    # The first entry of either kind, as it was written; whole numbers have none.
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
    """One number as users write them: exact but for floats.

    Raises:
        InvalidPairError: not a number, or a text with too many digits.
    """
    if getattr(value, "ndim", None) == 0:  # a scalar of numpy or torch
        value = value.item()
    if isinstance(value, bool):
        raise InvalidPairError(f"a probability cannot be {value!r}")
    if isinstance(value, (str, Decimal)):
        return _parse_text(str(value))
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):  # Fraction; sympy registers its own
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real):
        return to_float64(value)
    if isinstance(value, fmpq):
        return to_fraction(value)
    raise InvalidPairError(f"a probability must be a string or a number, got {value!r}")


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

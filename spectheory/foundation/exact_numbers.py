"""Exact rationals as Python Fractions and as python-flint rationals, and conversions between them."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from flint import fmpq

from spectheory.foundation.formal_number import FormalNumber

Number = Fraction | float
"""One number of a result: a Fraction for exact pairs, a float for other pairs."""


def is_exact(array: Any) -> bool:
    """True if ``array`` holds exact rationals (a numpy array of objects)."""
    return isinstance(array, np.ndarray) and array.dtype.hasobject


SUM_TOLERANCE = 1e-9
"""How far the sum of a law in float64 may be from 1."""


def float_tolerance(numbers: Any, tolerance: float) -> float:
    """Return the tolerance if an array or a pair holds floats, and 0 if it is exact."""
    return 0 if getattr(numbers, "is_exact", is_exact(numbers)) else tolerance


def to_flint(array: np.ndarray) -> np.ndarray:
    """Convert exact rationals elementwise to python-flint rationals, which compute faster.

    Raises:
        TypeError: an entry is neither a Fraction, an fmpq nor an integer.
    """
    return _mapped(_as_fmpq, array)


def _mapped(convert: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    result = np.empty(array.shape, dtype=object)
    result.ravel()[:] = list(map(convert, array.ravel().tolist()))
    return result


def _as_fmpq(value: Any) -> fmpq:
    if type(value) is fmpq:
        return value
    number = value if type(value) is Fraction else to_fraction(value)
    return fmpq(number.numerator, number.denominator)


def without_whole_floats(array: np.ndarray) -> np.ndarray:
    """Replace the floats 0.0 and 1.0 in an array of objects by integers.

    In Python integer divisions such as 0/1 give such floats.  Other floats, such as 1/3, are rounded, and we
    keep them.
    """
    return _mapped(lambda value: int(value) if type(value) in FLOATS and value in (0, 1) else value, array)


FLOATS = (float, np.float64)


def to_fractions(array: np.ndarray) -> np.ndarray:
    """Convert exact rationals of either type to Fractions, elementwise.

    Raises:
        TypeError: an entry is neither a Fraction, an fmpq nor an integer.
    """
    return _mapped(to_fraction, array)


def to_fraction(value: Any) -> Fraction:
    """Convert one exact rational to a Fraction.  A float raises ``TypeError``, because it is not exact."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, fmpq):
        return Fraction(int(value.p), int(value.q))
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return Fraction(int(value))
    raise TypeError(f"expected an exact rational, got {type(value).__name__} {value!r}")


def flint_if_exact(array: np.ndarray) -> np.ndarray:
    """Convert an exact array to python-flint rationals, for computation; return other arrays unchanged."""
    return to_flint(array) if is_exact(array) else array


def fractions_if_exact(array: np.ndarray) -> np.ndarray:
    """Convert an exact array to Fractions, for results; return other arrays unchanged."""
    return to_fractions(array) if is_exact(array) else array


def plain_number(value: Any) -> Number:
    """Convert one number for a result: a float for a float, a Fraction for an exact number."""
    return float(value) if isinstance(value, (float, np.floating)) else to_fraction(value)


def exact_number(value: Any) -> Fraction:
    """Convert one number exactly to a Fraction.  A float gives the rational that its bits represent.

    Raises:
        TypeError: the value is not a number.
        ValueError, OverflowError: the value is not finite.
    """
    return Fraction(float(value)) if isinstance(value, (float, np.floating)) else to_fraction(value)


def exact_values(array: np.ndarray) -> np.ndarray:
    """Convert every entry exactly to a Fraction (``exact_number``)."""
    return _mapped(exact_number, array)


def balanced_sum(array: np.ndarray) -> Any:
    """Sum all entries.  Rationals are added in a balanced tree, so that few additions have long numbers."""
    terms = array.ravel()
    if not is_exact(terms) or not terms.size:
        return terms.sum()
    while len(terms) > 1:
        pairs = terms[: len(terms) // 2 * 2]
        terms = np.concatenate([pairs[0::2] + pairs[1::2], terms[len(pairs) :]])
    return terms[0]


_NUMBERS = frozenset({Fraction, fmpq, int, float, *np.sctypeDict.values()} - {np.bool_})


def holds_formal_numbers(array: Any) -> bool:
    """True if an entry is a formal number, which represents its values on many pairs at once, in a proof."""
    return is_exact(array) and any(issubclass(kind, FormalNumber) for kind in set(map(type, array.flat)))


def holds_numbers(array: Any) -> bool:
    """True if all entries are real numbers: floats, integers or rationals.

    Booleans do not count.  Objects of a subclass do not count, because their arithmetic may differ.
    """
    if is_exact(array):
        kinds = set(map(type, array.flat))
        return all(kind in _NUMBERS or issubclass(kind, FormalNumber) for kind in kinds)
    xp = np if type(array) is np.ndarray else array_namespace(array)
    return bool(xp.isdtype(array.dtype, ("real floating", "integral")))

"""Functions that all routes share: compute the masses of outputs at one depth, and check them."""

from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import divide_or_zero
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.exact_numbers import is_exact

ALLOWED = 1e-9
"""How far a number in float64 may be from a law at one context; beyond it the enumeration decides."""


class Masses(NamedTuple):
    """R by depth, [V^(i+1)] for i = 0..L, and the probability of undefined outputs."""

    by_depth: tuple[np.ndarray, ...]
    undefined: Any


def emitted(stop: np.ndarray, rows: np.ndarray, total: np.ndarray | None) -> tuple[np.ndarray, Any]:
    """Compute the masses of the tokens after stops, and the mass of stops whose row has no mass.

    Args:
        stop: probabilities of the stops, [C].
        rows: correction rows, [C, V], not normalised.
        total: the sums of the rows, [C]; ``None`` if the rows are laws.

    Returns:
        The masses of the tokens, [C, V], and the mass of stops without a row.

    Raises:
        InvalidOutcomeError: a row is negative.
    """
    nothing = stop[:1].sum() * 0
    if total is None:
        return stop[:, None] * rows, nothing
    check_not_negative(rows, "a correction row")
    undefined = nothing + stop[total == nothing].sum()
    if is_exact(rows):
        return divide_or_zero(stop, total)[:, None] * rows, undefined
    # as ``normalise``, so that no quotient overflows where a row has little mass
    return stop[:, None] * (rows / np.where(total == 0, 1, total)[:, None]), undefined


def check_not_negative(numbers: np.ndarray, what: str) -> None:
    """Refuse numbers below 0, and NaN.

    Raises:
        InvalidOutcomeError: there is such a number.
    """
    # Of two rationals "equal" takes a third of the time of "less".
    holds = (abs(numbers) == numbers).all() if is_exact(numbers) else numbers.min(initial=0) >= -ALLOWED
    if not holds:
        raise InvalidOutcomeError(f"{what} at a context is negative")

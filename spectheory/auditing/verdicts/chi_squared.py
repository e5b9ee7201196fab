"""Compute the number of samples that a χ² test needs to find a defect."""

import math
from fractions import Fraction

import numpy as np

SIGNIFICANCE = 0.01
POWER = 0.99
"""The significance and the power of the test for which an audit gives the number of samples."""


def noncentrality(freedom: int, significance: float, power: float) -> float:
    """The noncentrality at which a χ² test has the given power."""
    from scipy.special import chdtri, chndtr

    freedom = max(freedom, 1)
    threshold, low, high = chdtri(freedom, significance), 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if 1 - chndtr(threshold, freedom, middle) >= power else (middle, high)
    return high


def total_variation_of_cells(found: np.ndarray, wanted: np.ndarray, undefined: Fraction) -> Fraction:
    """Total variation of two laws.  An undefined output is one more outcome of the first law."""
    distance: Fraction = (abs(found - wanted).sum() + undefined) / 2
    return distance


def samples_needed(found: np.ndarray, wanted: np.ndarray, undefined: Fraction) -> int | None:
    """Number of samples that a χ² test needs to find the difference.  ``None`` if there is no difference.

    Let d be the total variation of one sample.  The law of n samples then differs from the target's by at
    most 1 - (1 - d)^n, so the power of any test exceeds its level by at most this amount.  We never return
    less than this bound, because the χ² approximation is too optimistic for nearly empty cells.
    """
    possible = wanted > 0
    impossible = float(found[~possible].sum() + undefined)
    distance = float(((found - wanted)[possible] ** 2 / wanted[possible]).sum())
    needed = []
    if distance > 0:
        needed.append(noncentrality(int(possible.sum()) - 1, SIGNIFICANCE, POWER) / distance)
    if impossible > 0:
        needed.append(math.log1p(-POWER) / math.log1p(-impossible) if impossible < 1 else 1.0)
    if not needed:
        return None
    variation = float(total_variation_of_cells(found, wanted, undefined))
    least = math.log1p(SIGNIFICANCE - POWER) / math.log1p(-variation) if variation < 1 else 1.0
    return math.ceil(max(min(needed), least))

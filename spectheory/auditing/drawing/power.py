"""Compute which total variation a number of draws detects."""

import math

import numpy as np

POWER = 0.99
"""The probability with which a difference of the stated size is found."""


def distance_threshold(wanted: np.ndarray, draws: int, risk: float) -> float:
    """Distance of the counts that a correct sampler exceeds with probability at most ``risk`` (McDiarmid).

    The mean distance is at most ½ Σ sqrt(p (1-p) / n), and one draw changes it by at most 1 / n.
    """
    wanted = np.asarray(wanted, dtype=float)
    mean = 0.5 * float(np.sqrt(wanted * (1 - wanted) / draws).sum())
    return mean + math.sqrt(math.log(1 / risk) / (2 * draws))


def seen_with(wanted: np.ndarray, draws: int, risk: float) -> float:
    """Total variation at which, and above which, every law is rejected with probability at least ``POWER``.

    The mean distance of the counts is at least the total variation.  The distance is less than this by
    sqrt(log(1 / (1 - POWER)) / (2 n)) or more with probability at most 1 - POWER.

    Args:
        wanted: the law of completed outputs.
        draws: n.
        risk: probability of a false alarm of the distance test.

    Example:
        >>> [round(seen_with(np.full(9, 1 / 9), draws, 5e-7), 3) for draws in (1_000, 10_000, 100_000)]
        [0.178, 0.056, 0.018]
    """
    return distance_threshold(wanted, draws, risk) + math.sqrt(math.log(1 / (1 - POWER)) / (2 * draws))

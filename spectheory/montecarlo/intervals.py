"""Confidence intervals for the mean of bounded draws, which also cover where deviations are rare.

A call earns between 1 and L + 1 tokens.  Verifiers that rarely reject earn L + 1 in nearly every call: most runs
see few rejections or none, their sample variance is too small, and a normal interval, m ± z √V, misses the mean.
So each end of the interval here assumes the most skewed law that has the estimated variance and stays within
the range.  Under that law the whole deviation is due to rare events, each of which moves the estimate by J, the
distance from it to the end of the range times the weight of a draw.  The variance V then stands for c = V / J²
events, and the exact upper limit for a Poisson mean (Garwood 1936) gives

    m ± J (γ(c + 1) - c),    J = w (distance of m from the end of the range),

with γ(k) the (1 + confidence) / 2 quantile of the gamma law of shape k.  Without any variance the end is
3.69 J away at 95 %, for with n draws an event of probability 3.69 / n stays unseen in 2.5 % of all runs.
With many events it is z √V + J (1 + (z² - 1) / 3), about as far away as the end of the normal interval.

Several strata have several distances.  Events that are as frequent in each of them have the second moment of
J over its first as their effective size, over all draws.  Fay and Feuer (1997) approximate weighted sums of
Poisson counts by one gamma law in the same way.

**Guarantee.**  An interval lies within the range, holds the estimate and is never of width zero.

- Exact, for n independent draws of one law and every n: where all n draws turn out equal, which makes a normal
  interval of width zero, the interval misses the mean with a probability of at most 1 - confidence.
- Exact, at a confidence of 80 % or more, where the draws take the two ends of the range only: the interval
  holds that of Clopper and Pearson (1934), which covers for every n.  That is checked for n up to 3 000.
- Approximate otherwise, because V is estimated: the coverage tends to the confidence as draws, or prompts, grow
  in number.  ``benchmarks/interval_coverage.py`` measures it.

**Price.**  The interval is at most 1.5 times as wide as the normal one where both ends have c ≥ 5.2 at 95 %;
√draws times the standard deviation of a draw is then some 1.1 times the width of the range, or more.  Below that
no interval can be short: a law of small variance and the same law with an event of probability 3 / n look
alike in one of twenty runs, and their means differ by three times the size of the event over n.

Intervals by betting (Waudby-Smith and Ramdas 2024) are guaranteed for every bounded law, but are at least 1.39
times as wide as normal ones even for many draws, and need the draws in their order; sums by stratum are enough
here.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

_MANY_EVENTS = 1e6
"""Number of events from which on the gamma quantile is that of its Cornish-Fisher expansion, to within 1e-4 events."""


def bounded_mean_interval(
    mean: float,
    error: float,
    stratum_means: np.ndarray,
    draws: np.ndarray,
    weights: np.ndarray | float,
    bounds: tuple[float, float],
    confidence: float,
    degrees_of_freedom: float = math.inf,
) -> tuple[float, float]:
    """Interval for the mean of draws in a known range; its guarantee is that of ``intervals.py``.

    Args:
        mean: the estimate, a weighted sum of all draws.
        error: its standard error; infinite if it is not known, as of one prompt.
        stratum_means: means of the draws of each stratum, [strata].
        draws: how many each stratum has, [strata].
        weights: of a single draw in the estimate, [strata] or a number.
        bounds: the range of a draw.
        confidence: level of the interval.
        degrees_of_freedom: of the standard error, where it rests on few strata.  Student's t takes the place of
            the normal law then.

    Returns:
        Its ends, within the bounds.

    Example:
        >>> all_accepted = bounded_mean_interval(2.0, 0.0, np.array([2.0]), np.array([1_000]), 1e-3, (1, 2), 0.95)
        >>> [round(end, 4) for end in all_accepted]
        [1.9963, 2.0]
    """
    lowest, highest = bounds
    mean = min(max(mean, lowest), highest)  # rounding, and rows that are laws within a tolerance only
    if math.isinf(error):
        return float(lowest), float(highest)
    tail = (1 - confidence) / 2
    if math.isfinite(degrees_of_freedom):
        error *= float(stdtrit(degrees_of_freedom, 1 - tail) / ndtri(1 - tail))
    down = _reach(error, _event_size(weights * (stratum_means - lowest), draws), tail)
    up = _reach(error, _event_size(weights * (highest - stratum_means), draws), tail)
    return float(max(lowest, mean - down)), float(min(highest, mean + up))


def _event_size(sizes: np.ndarray, draws: np.ndarray) -> float:
    """J: the second moment over the first of how far one event moves the estimate, by stratum."""
    sizes = np.maximum(sizes, 0)
    first = float((draws * sizes).sum())
    return float((draws * sizes**2).sum()) / first if first else 0.0


def _reach(error: float, event: float, tail: float) -> float:
    """J (γ(c + 1) - c): how far an end lies from the estimate."""
    if event and (count := (error / event) ** 2) < _MANY_EVENTS:
        return event * float(gammaincinv(count + 1, 1 - tail) - count)
    z = float(ndtri(1 - tail))
    return z * math.hypot(error, event) + event * (1 + (z**2 - 1) / 3)

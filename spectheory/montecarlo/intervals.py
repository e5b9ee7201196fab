"""Confidence intervals for means of bounded draws that also cover where rejections are rare.

A call earns between 1 and L + 1 tokens.  Where rejections are rare, most runs see few of them or none.  The
sample variance V is then too small, and the normal interval m ± z √V misses the mean.  So each end of the
interval here assumes the most skewed law with variance V in the known range.  Under that law, events move
the estimate by J each, and V stands for c = V / J² events.  The exact upper limit of a Poisson mean
(Garwood 1936) gives

    m ± J (γ(c + 1) - c),    J = (distance of m from the end of the range) x (weight of a draw),

where γ(k) is the quantile of the gamma law of shape k at (1 + confidence) / 2.  With V = 0 and n draws, an
end is 3.69 J away at 95 %: an event of probability 3.69 / n stays unseen in 2.5 % of the runs.  With many
events an end is z √(V + J²) + J (1 + (z² - 1) / 3) away, which is close to z √V.

Strata have different distances.  Their J is the second moment of the distances over the first, that is, the
effective size of events that are equally frequent in all strata.  Fay and Feuer (1997) use one gamma law
for weighted sums of Poisson counts in the same way.

**Guarantee.**  An interval lies in the range, contains the estimate and has a positive width.

- Exact, for n independent draws of one law, n ≥ 2 and a confidence of 50 % or more: all n draws are equal
  and the interval misses the mean with a probability of at most 1 - confidence.  (Normal intervals have
  width zero there.)
- Exact, for n independent draws of one law that takes only the two ends of the range, at a confidence of 80
  % or more: the interval contains that of Clopper and Pearson (1934), which covers for every n.  The
  containment is computed for every n from 2 to 3 000, at 80 % and 95 %.
- Approximate otherwise, because V is estimated: the coverage tends to the confidence as the number of draws
  grows, or of prompts for whole texts.  ``benchmarks/interval_coverage.py`` measures it.
- For whole texts the unseen event is one call.  A kind of prompt that is too rare to be among the prompts
  is not allowed for.

**Price.**  At 95 % the interval is at most 1.5 times as wide as the normal one if √n times the standard
deviation of a draw is at least 1.3 times the width of the range.  Below that, an interval that is as short
as the normal one cannot cover rare events: add an event of probability 3 / n to a law of small variance,
and one run of twenty does not show it, while the mean moves by 3 J.

Betting intervals (Waudby-Smith and Ramdas 2024) are guaranteed for every bounded law.  But they tend to
1.39 times the width of normal intervals, and they need all draws in order, where sums by stratum suffice
here.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

_MANY_EVENTS = 1e6
"""From so many events on the gamma quantile is expanded; the error is below 1e-3 events."""


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
    """Interval for the mean of draws in a known range, with the guarantee at the top of this file.

    Args:
        mean: the estimate, a weighted sum of all draws.
        error: its standard error; infinite if it is not known, as of one prompt.
        stratum_means: means of the draws of each stratum, [strata].
        draws: how many each stratum has, [strata].
        weights: of a single draw in the estimate, [strata] or a number.
        bounds: the range of a draw.
        confidence: level of the interval.
        degrees_of_freedom: of the standard error, if it rests on few strata; scales it from the normal
            law to Student's t.

    Returns:
        Its ends, within the bounds.

    Example:
        >>> mean, draws = np.array([2.0]), np.array([1_000])  # every token was accepted
        >>> low, high = bounded_mean_interval(2.0, 0.0, mean, draws, 1e-3, (1, 2), 0.95)
        >>> round(low, 4), high
        (1.9963, 2.0)
    """
    lowest, highest = bounds
    mean = min(max(mean, lowest), highest)  # laws hold within a tolerance
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

"""Confidence intervals for means of bounded draws that also cover where rejections are rare.

A call earns between 1 and L + 1 tokens.  Where rejections are rare, most runs see few of them or none.  The
sample variance V is then too small, and the normal interval m ± z √V misses the mean.  The range is known,
so each end of the interval here allows for one more event: a draw at that end of the range, which would
move the estimate by J = (distance of m from the end) x (weight of a draw).  It also allows for skewness.
The error of the estimate gets the gamma law, shifted and scaled, with the moments

    mean J,  variance V + J²,  third central moment 2 (T + J³),

where T is the sum of the cubed deviations that V is the sum of squares of.  An end lies the quantile of
that law at (1 + confidence) / 2 away from m.  After c rare events of the size J, V = c J² and T = c J³, and
the end is the exact limit of a Poisson mean, J (γ(c + 1) - c) (Garwood 1936): 3.69 J for c = 0 at 95 %.
With many draws it is z √V + O(J) away, as for a normal interval.  Fay and Feuer (1997) add one event to a
gamma law in the same way, for weighted sums of Poisson counts.  If T is not known, the largest that is
possible is taken, V J.

Strata have different distances.  Their J is the second moment of the distances over the first, that is, the
effective size of events that are equally frequent in all strata.

**Guarantee.**  An interval lies in the range, contains the estimate and has a positive width.

- Exact, for n independent draws of one law, n ≥ 2 and a confidence of 50 % or more: all n draws are equal
  and the interval misses the mean with a probability of at most 1 - confidence.  (Normal intervals have
  width zero there.)
- Exact, for n independent draws of one law that takes only the two ends of the range, at a confidence of 80
  % or more: the interval contains that of Clopper and Pearson (1934), which covers for every n.  The
  containment is computed, at 80 % and 95 %, for every n from 2 to 199 and for five sizes from 300 to 3 000.
- Approximate otherwise, because V and T are estimated: the coverage tends to the confidence as the number
  of draws grows, or of prompts for whole texts.  ``benchmarks/interval_coverage.py`` measures it.
- For whole texts the added event is one call.  A kind of prompt that is too rare to be among the prompts is
  not allowed for.

**Price.**  At 95 % the interval is at most 1.5 times as wide as the normal one if √n times the standard
deviation of a draw is at least 1.1 times the width of the range, or 1.3 times if T is not known.  Below
that, an interval that is as short as the normal one cannot cover rare events: add an event of probability 3
/ n to a law of small variance, and one run of twenty does not show it, while the mean moves by 3 J.

Betting intervals (Waudby-Smith and Ramdas 2024) are guaranteed for every bounded law.  But they tend to
1.39 times the width of normal intervals, and they need all draws in order, where sums by stratum suffice
here.
"""

import math

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

_LARGE_SHAPE = 1e6
"""From this shape on the gamma quantile is expanded; the error is below 1e-3 of its scale."""


def bounded_mean_interval(
    mean: float,
    error: float,
    third: float | None,
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
        error: its standard error, √V; infinite if it is not known, as of one prompt.
        third: T; None if it is not known.
        stratum_means: means of the draws of each stratum, [strata].
        draws: how many each stratum has, [strata].
        weights: of a single draw in the estimate, [strata] or a number.
        bounds: the range of a draw.
        confidence: level of the interval.
        degrees_of_freedom: of the standard error, if it rests on few strata; scales it from the normal law to
            Student's t.

    Returns:
        Its ends, within the bounds.

    Example:
        >>> mean, draws = np.array([2.0]), np.array([1_000])  # every token was accepted
        >>> low, high = bounded_mean_interval(2.0, 0.0, 0.0, mean, draws, 1e-3, (1, 2), 0.95)
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
    down = _reach(
        error, None if third is None else -third, _event(weights * (stratum_means - lowest), draws), tail
    )
    up = _reach(error, third, _event(weights * (highest - stratum_means), draws), tail)
    return float(max(lowest, mean - down)), float(min(highest, mean + up))


def _event(sizes: np.ndarray, draws: np.ndarray) -> float:
    """J: the second moment over the first of how far an event moves the estimate, by stratum."""
    sizes = np.maximum(sizes, 0)
    first = float((draws * sizes).sum())
    return float((draws * sizes**2).sum()) / first if first else 0.0


def _reach(error: float, third: float | None, event: float, tail: float) -> float:
    """How far an end lies from the estimate: the upper quantile of the shifted gamma law."""
    # Deviations with a given sum of squares have cubes of at most that sum to the power 3/2.
    third = error**2 * event if third is None else min(max(third, -(error**3)), error**3)
    spread = math.hypot(error, event)
    scale = (third + event**3) / spread**2 if spread else 0.0
    shape = (spread / scale) ** 2 if abs(scale) * math.sqrt(_LARGE_SHAPE) > spread else math.inf
    if math.isinf(shape):
        z = float(ndtri(1 - tail))
        return event + z * spread + scale * (z**2 - 1) / 3
    return event + scale * float(gammaincinv(shape, 1 - tail if scale > 0 else tail) - shape)

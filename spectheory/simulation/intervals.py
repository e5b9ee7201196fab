"""Confidence intervals for means of bounded draws, which cover the mean also if rejections are rare.

A call decodes between 1 and L + 1 tokens.  If rejections are rare, most runs see few or none.  The variance V
estimated for the mean m is then too small, and the normal interval m ± z √V misses the true mean.  The range
is known, so each end of our interval allows for one more event: a draw at that end of the range.  It would
move the estimate by J = (distance of m from the end) x (weight of a draw).  We also allow for skewness.  We
model the error of the estimate by a shifted and scaled gamma law with the moments

    mean J,  variance V + J²,  third central moment 2 (T + J³),

where V is the sum of the squared weighted deviations and T the sum of their cubes.  The distance of an end
from m is the quantile of this law at (1 + confidence) / 2.  After c rare events of size J, V = c J² and T = c
J³.  The distance is then the exact limit of a Poisson mean, J (γ(c + 1) - c) (Garwood 1936): 3.69 J for c = 0
at 95 %.  With many draws it is z √V + O(J), as for a normal interval.  Fay and Feuer (1997) add one event to
a gamma law in the same way, for weighted sums of Poisson counts.  If T is not known, we use its largest
possible value, V J.

If strata have different distances, J is their second moment divided by their first.  This is the effective
size of events that are equally frequent in all strata.

**Guarantee.**  An interval lies in the range, contains the estimate and has a positive width.

- Exact, for n ≥ 2 independent draws of one law and a confidence of at least 50 %: the event that all n draws
  are equal and the interval misses the mean has probability at most 1 - confidence.  (Normal intervals have
  width zero in this event.)
- Exact, for n independent draws of a law on the two ends of the range, at a confidence of at least 80 %: the
  interval contains Clopper and Pearson's (1934), which covers for every n.  We computed this
  containment at 80 % and 95 %, for every n from 2 to 199 and for five sizes from 300 to 3 000.
- Approximate otherwise, because V and T are estimated: the coverage tends to the confidence as the number of
  draws grows (of prompts for whole texts).  ``benchmarks/interval_coverage.py`` measures it.
- For whole texts the added event is one call.  The interval makes no allowance for kinds of prompts that are
  too rare to be among the prompts.

**Price.**  At 95 % the interval is at most 1.5 times as wide as the normal interval if √n times the standard
deviation of a draw is at least 1.1 times the width of the range (1.3 times if T is not known).  For smaller
deviations, an interval as short as the normal one cannot cover rare events.  Example: add an event of
probability 3 / n to a law of small variance.  One run in twenty does not show it, while the mean moves by 3
J.

Betting intervals (Waudby-Smith and Ramdas 2024) are guaranteed for every bounded law.  But their width tends
to 1.39 times the normal width, and they need all draws in order.  We need only sums by stratum.
"""

import math

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

_LARGE_SHAPE = 1e6
"""Shape from which we use an expansion of the gamma quantile.  Its error is below 1e-3 of the scale."""


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
    """Compute an interval for the mean of draws in a known range, with the guarantee stated above.

    Args:
        mean: the estimate, a weighted sum of all draws.
        error: its standard error √V; infinite if unknown, as with one prompt.
        third: T; None if unknown.
        stratum_means: means of the draws of each stratum, [strata].
        draws: number of draws of each stratum, [strata].
        weights: weight of a single draw in the estimate, [strata] or a number.
        bounds: lowest and highest value of a draw.
        confidence: level of the interval.
        degrees_of_freedom: degrees of freedom of the standard error.  If finite, ``error`` is scaled from the
            normal law to Student's t.

    Returns:
        The ends of the interval, within ``bounds``.

    Example:
        >>> mean, draws = np.array([2.0]), np.array([1_000])  # every token was accepted
        >>> low, high = bounded_mean_interval(2.0, 0.0, 0.0, mean, draws, 1e-3, (1, 2), 0.95)
        >>> round(low, 4), high
        (1.9963, 2.0)
    """
    lowest, highest = bounds
    mean = min(max(mean, lowest), highest)  # rounding can move it outside
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
    """Compute J from the distances by which an event moves the estimate: the second moment over the first."""
    sizes = np.maximum(sizes, 0)
    first = float((draws * sizes).sum())
    return float((draws * sizes**2).sum()) / first if first else 0.0


def _reach(error: float, third: float | None, event: float, tail: float) -> float:
    """Compute the distance of an end from the estimate: the upper quantile of the shifted gamma law."""
    # If deviations have the sum of squares s, their cubes sum to at most s^(3/2).
    third = error**2 * event if third is None else min(max(third, -(error**3)), error**3)
    spread = math.hypot(error, event)
    scale = (third + event**3) / spread**2 if spread else 0.0
    shape = (spread / scale) ** 2 if abs(scale) * math.sqrt(_LARGE_SHAPE) > spread else math.inf
    if math.isinf(shape):
        z = float(ndtri(1 - tail))
        return event + z * spread + scale * (z**2 - 1) / 3
    return event + scale * float(gammaincinv(shape, 1 - tail if scale > 0 else tail) - shape)

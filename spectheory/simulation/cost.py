"""Measure the cost of drafts: seconds of calls, in rounds, and their medians with intervals.

The unit is a call of the target that scores no drafts, as plain decoding makes for each token.  A measured
cost is the median over rounds.  Its interval comes from order statistics and covers for every law of the
rounds if they are independent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import is_number
from spectheory.pairs.drafts import DraftProcess

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, SamplingOptions

MOST_ROUNDS, MEASURING_SECONDS = 100, 30.0
"""Limits of a measurement: more rounds give shorter intervals, and decoding takes longer than 30 seconds."""
SLOW_ROUNDS = 2
"""Rounds that an interval leaves out at each end: other programs may disturb 1 or 2 of 20 rounds."""


def check_cost(name: str, cost: Any) -> float:
    """Convert a cost to a float.  Refuse a negative or infinite number."""
    if not is_number(cost) or cost < 0:
        raise InvalidInputError(f"{name} must be a number of at least 0, got {cost!r}")
    return float(cost)


def time_calls(
    pair: LanguageModelPair,
    prompts: Sequence[Sequence[int]],
    shapes: Sequence[tuple[DraftProcess, int]],
    options: SamplingOptions,
    fewest: int,
) -> np.ndarray:
    """Time the calls of both models for drafts of several shapes, in turn, after one round to warm up.

    Args:
        prompts: token ids.  Each round uses the next prompt.
        shapes: draft processes, each with L.
        fewest: smallest number of rounds.  More follow until ``MEASURING_SECONDS`` have passed, at most
            ``MOST_ROUNDS``.

    Returns:
        Seconds, [rounds, shapes, 3]: a call of the target without drafts, drafting, and the call of the
        target that scores the drafts.
    """
    from spectheory.decoding import timed_call
    from spectheory.models.drafting import prefill

    found: list[list[Any]] = []
    generator, begun = pair.generator(0), time.monotonic()
    while len(found) <= fewest or (
        len(found) <= MOST_ROUNDS and time.monotonic() - begun < MEASURING_SECONDS
    ):
        prefilled = prefill(pair, [prompts[len(found) % len(prompts)]])
        found.append(
            [timed_call(prefilled, process, length, generator, options) for process, length in shapes]
        )
    return np.array(found[1:], dtype=float)


def relative_costs(seconds: np.ndarray) -> np.ndarray:
    """Cost of a call with drafts, in plain calls.  [rounds, shapes]

    This is the time of drafting and scoring, divided by the median time of the calls without drafts in the
    same round.
    """
    return seconds[..., 1:].sum(axis=-1) / np.median(seconds[..., 0], axis=1, keepdims=True)


def rounds_for(level: float) -> int:
    """Compute how many rounds an interval of the median needs that leaves out ``SLOW_ROUNDS`` at each end.

    Args:
        level: the largest probability that the interval misses the median.

    Example:
        >>> rounds_for(0.05), rounds_for(0.0005)
        (12, 20)
    """
    rounds = 2 * SLOW_ROUNDS + 1
    while bdtr(SLOW_ROUNDS, rounds, 0.5) > level / 2:
        rounds += 1
    return rounds


def median_interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """Confidence interval for the median of n independent values, from order statistics.

    The ends are the k-th smallest and the k-th largest value.  For any law the interval misses the median
    with probability at most 2 P(Binomial(n, 1/2) < k).  k is the largest for which this bound is at most
    ``level``.  If all values are equal, as with a given cost, both ends are that value.

    Args:
        values: [rounds].
        level: the largest probability that the interval misses the median.

    Returns:
        The ends of the interval; (0, infinity) if there are too few values.

    Example:
        >>> median_interval(np.arange(12.0), 0.05)
        (2.0, 9.0)
    """
    ordered, number = np.sort(values), len(values)
    if ordered[0] == ordered[-1]:
        return float(ordered[0]), float(ordered[0])
    k = int((bdtr(np.arange(number), number, 0.5) <= level / 2).sum())
    return (float(ordered[k - 1]), float(ordered[number - k])) if k else (0.0, float("inf"))

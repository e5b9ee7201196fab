"""What drafts cost: seconds of calls, measured round by round, and the speed that tokens per call come to.

The unit is a call of the target that scores no drafts, of which plain decoding makes one per token.  A
measured cost is the median over rounds.  Its interval is that of the order statistics, which covers for every
law of the rounds if they are independent.
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
"""More rounds make costs sharper; these few seconds are short beside the texts that candidates decode."""
SLOW_ROUNDS = 2
"""Rounds at either end that an interval leaves out: another program may disturb one or two of some twenty."""


def check_cost(name: str, cost: Any) -> float:
    """A cost as a float; a negative or infinite one is refused."""
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
    """Time the calls of both models for drafts of several shapes, in turn, after a round to warm up.

    Args:
        prompts: token ids; each round is behind one text, the next of these.
        shapes: draft processes with L.
        fewest: rounds; more are made until ``MEASURING_SECONDS`` have passed, up to ``MOST_ROUNDS``.

    Returns:
        Seconds, [rounds, shapes, 3]: of a call of the target that scores no drafts, of drafting, and of the
        call of the target that scores the drafts.
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
    """Drafting and scoring over the median plain call of the round, [rounds, shapes]."""
    return seconds[..., 1:].sum(axis=-1) / np.median(seconds[..., 0], axis=1, keepdims=True)


def rounds_for(level: float) -> int:
    """How many rounds an interval of the median needs that leaves out ``SLOW_ROUNDS`` at either end.

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
    """The interval of the median between the k-th smallest and the k-th largest of n independent values.

    It misses the median with probability 2 P(Binomial(n, 1/2) < k) or less, whatever their law.  The largest
    k is taken for which that is at most ``level``.  Equal values are exact: a cost that was given.

    Args:
        values: [rounds].
        level: the largest probability that the interval misses the median.

    Returns:
        Its ends; (0, infinity) if there are too few values.

    Example:
        >>> median_interval(np.arange(12.0), 0.05)
        (2.0, 9.0)
    """
    ordered, number = np.sort(values), len(values)
    if ordered[0] == ordered[-1]:
        return float(ordered[0]), float(ordered[0])
    k = int((bdtr(np.arange(number), number, 0.5) <= level / 2).sum())
    return (float(ordered[k - 1]), float(ordered[number - k])) if k else (0.0, float("inf"))

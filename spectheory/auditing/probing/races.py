"""Find the weights of a race of exponential numbers from the answers of a function of these numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

from spectheory.auditing.handing.numbers import exponential, mix

_TIMES = {"-log(1-u)": (1e-9, 1e-3, 25.0, 2e-8), "-log(u)": (1e-6, 1e-2, 14.0, 1e-5)}
"""Form -> a time before all others, an early one, a late one, and the error of a logarithm of a weight.

Near 1, float32 holds u to 2^-24 only: times below 10^-6 and weights beyond 10^-5 are lost in -log(u) there.
"""
_PREDICTED = 4
"""Random points at which the weights must say the winner."""


def weights_of(
    answer: Callable[[Sequence[float]], Hashable], size: int, form: str, seed: int
) -> tuple[float, ...] | None:
    """Find the relative weights w_i of a race.  Return ``None`` if the answers do not come from a race.

    The time e_i at which i and j tie satisfies e_i / w_i = e_j / w_j.  We find it by bisection, and from it
    the ratio of the two weights.

    Args:
        answer: times e_1, .., e_n -> the answer.
        size: n.
        form: how times are computed, a name in ``tree.FORMS``.
        seed: seed of random times.
    """
    first, early, late, error = _TIMES[form]

    def times(special: int, time: float, others: Sequence[float]) -> list[float]:
        return [time if place == special else other for place, other in enumerate(others)]

    alone = [answer(times(place, first, [late] * size)) for place in range(size)]
    if len(set(alone)) < 2:
        return None
    # A place that never wins changes nothing where another one leads.
    leads = (place for place in range(size) if answer(times(place, early, [late] * size)) == alone[place])
    weights: dict[int, float] = {next(leads, 0): 1.0}
    for _ in range(2):  # a place may differ only from one whose weight is found in the first round
        for place in range(size):
            if place in weights:
                continue
            others = [other for other, weight in weights.items() if weight and alone[other] != alone[place]]
            for other in others[:1]:
                field = times(other, early, [late] * size)
                lead = answer(times(place, first, field))
                if lead == answer(field):
                    weights[place] = 0.0
                elif answer(times(place, late, field)) != lead:
                    low, high = math.log(first), math.log(late)
                    while high - low > error:
                        middle = (low + high) / 2
                        is_first = answer(times(place, math.exp(middle), field)) == lead
                        low, high = (middle, high) if is_first else (low, middle)
                    weights[place] = weights[other] * math.exp((low + high) / 2) / early
    found = tuple(weights.get(place, 0.0) for place in range(size))
    if sum(weight > 0 for weight in found) < 2:
        return None
    for number in range(_PREDICTED):
        drawn = [exponential(mix(seed, number, place) >> 11) for place in range(size)]
        clocks = [time / weight if weight else math.inf for time, weight in zip(drawn, found, strict=True)]
        winner = clocks.index(min(clocks))
        if answer(drawn) != answer(times(winner, first, drawn)):
            return None
    return found

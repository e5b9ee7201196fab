"""Races of logarithms: of a uniform number u, -log u is exponential, and -log(-log u) a Gumbel number."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from typing import Any

import torch

from spectheory.auditing.tape.atoms import MINUS_UNIFORM, UNIFORM, Number
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.races import (
    WINNER_EXPECTED,
    ArgmaxWinner,
    Exponential,
    ExponentialDraw,
    clock_after,
    lower_end,
    only_a_race,
)

LARGEST_SHIFT = 2.0**-23
"""What may be added to a number before its logarithm; the law of a race is taken without it."""


def as_clock(entry: Any) -> Any:
    """Convert a function of the logarithm of a uniform number to a clock.  Return other entries unchanged."""
    return entry.clock() if isinstance(entry, Number) and entry.clock is not None else entry


def clocks_of_row(row: Sequence[Any], largest: bool) -> list[ExponentialDraw]:
    """The clocks that race in a row.  An ordinary number that cannot win becomes a clock of rate 0.

    Raises:
        NotEnumerableError: an ordinary number may win, or an entry is random but not a clock.
    """
    clocks = list(map(as_clock, row))
    known = [clock for clock in clocks if isinstance(clock, ExponentialDraw)]
    if not known:
        raise only_a_race("argmax" if largest else "argmin", "random")
    last = lower_end(known) if largest else math.inf
    # Where no clock wins, all are equal to ``last``, and the first entry is taken.
    may_be_less = largest and (
        any(clock.rate for clock in known) or isinstance(clocks[0], ExponentialDraw) or clocks[0] == last
    )
    for entry in {entry for entry in clocks if not isinstance(entry, ExponentialDraw)}:
        if isinstance(entry, (Number, ArgmaxWinner)) or not (entry == last or (may_be_less and entry < last)):
            raise NotEnumerableError(
                f"the sampler runs a race of random numbers with other numbers; {WINNER_EXPECTED}"
            )
    never = replace(known[0], source=Exponential(known[0].source.tape), rate=Fraction(0))
    return [entry if isinstance(entry, ExponentialDraw) else never for entry in clocks]


def followed_on(name: str, entries: Sequence[Any], number: Number, bounds: Sequence[Any] = ()) -> Number:
    """Set the form or the clock of the result of an elementwise operation, if the operation keeps them.

    Args:
        name: the operation: one of ``clock_after``, "log1p" or "clamp".  Other operations lose the form.
        entries: the operands.
        number: the result.
        bounds: for "clamp", the lower and the upper bound, or ``None``.
    """
    random = [entry for entry in entries if isinstance(entry, Number)]
    if len(random) != 1 or any(isinstance(bound, Number) for bound in bounds):
        return number
    before, others = (
        random[0],
        [float(entry) for entry in entries if isinstance(entry, (Real, torch.Tensor))],
    )
    shift = others[0] if name == "add" and len(others) == 1 else None
    low, high = bounds or (None, None)
    if before.form == UNIFORM:
        if name == "log":
            return replace(number, clock=before.minus_logarithm)
        ends = (low is None or low <= LARGEST_SHIFT) and (high is None or 1 - high <= LARGEST_SHIFT)
        number = replace(number, is_complement=before.is_complement)
        if name == "subtract" and before is entries[1] and others == [1.0]:
            return replace(number, form=UNIFORM, is_complement=not before.is_complement)
        if (shift is not None and 0 <= shift <= LARGEST_SHIFT) or (name == "clamp" and ends):
            return replace(number, form=UNIFORM)
        return replace(number, form=MINUS_UNIFORM) if name == "negative" else number
    if before.form == MINUS_UNIFORM:
        complement = replace(before, form=UNIFORM, is_complement=not before.is_complement)
        if name == "log1p":
            return replace(number, clock=complement.minus_logarithm)
        return replace(complement, function=number.function) if shift == 1.0 else number
    clock = before.clock
    if clock is None:
        return number

    def after() -> ExponentialDraw:
        made = clock()
        is_small = shift is not None and 0 <= shift * made.rate <= LARGEST_SHIFT
        if (is_small or (low is not None and high is None and _is_rarely_below(made, low))) and made.is_plain:
            return made
        return clock_after(name, *(made if entry is before else entry for entry in entries))

    return replace(number, clock=after)


def _is_rarely_below(clock: ExponentialDraw, low: float) -> bool:
    """Whether a clock is below a bound with a probability of at most ``LARGEST_SHIFT``."""
    return low * clock.rate <= (math.log(LARGEST_SHIFT) if clock.negative else LARGEST_SHIFT)

"""Exponential random numbers and the races between them.

Of independent exponential numbers with rates w_i the i-th is the first with probability w_i / Σ w.  Samplers
draw a token this way: weights divided by exponential numbers, or logits plus Gumbel numbers, and ``argmax``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from spectheory.auditing.tape.decisions import NotEnumerableError, Tape
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import exact_number


class UndefinedDrawError(InvalidInputError, RuntimeError):
    """A run without a valid output: a draw from weights that are not a distribution, or an unknown token."""


@dataclass(eq=False)
class Exponential:
    """One exponential random number; ``is_used`` once a race depended on it."""

    tape: Tape
    is_used: bool = False


@dataclass(frozen=True, eq=False)
class Clock:
    """An exponential random number of a rate, its inverse, or a logarithm; only races are followed.

    Attributes:
        inverse: whether the clock is 1 / the number.
        logarithm: whether the clock is the logarithm of that; the logarithm of an inverse is a Gumbel number.
        negative: whether the clock is minus that.
    """

    source: Exponential
    rate: Fraction = Fraction(1)
    inverse: bool = False
    logarithm: bool = False
    negative: bool = False

    @property
    def is_used(self) -> bool:
        """Whether a race depended on it."""
        return self.source.is_used

    def inverted(self) -> Clock:
        """1 / the clock."""
        return replace(self._plain("divides by"), inverse=not self.inverse)

    def times(self, weight: Fraction) -> Clock:
        """The clock times a weight w: an exponential number of rate r becomes one of rate r / w."""
        if weight in (1, -1):
            return self if weight == 1 else self.negated()
        return self._plain("multiplies")._scaled(weight, self.inverse)

    def over(self, weight: Fraction) -> Clock:
        """The clock divided by a weight."""
        return self._plain("divides")._scaled(weight, not self.inverse)

    def negated(self) -> Clock:
        """Minus the clock; minus a logarithm is the logarithm of the inverse."""
        if self.logarithm:
            return replace(self, inverse=not self.inverse)
        return replace(self, negative=not self.negative)

    def log(self) -> Clock:
        """The logarithm of the clock."""
        if self.negative:
            raise NotEnumerableError("the sampler takes the logarithm of a negative random number")
        return replace(self._plain("takes the logarithm of"), logarithm=True)

    def plus(self, number: float) -> Clock:
        """A logarithm plus x: the logarithm of e^x times the number, where e^x is rounded to float64.

        Raises:
            NotEnumerableError: the clock is not a logarithm.
            UndefinedDrawError: e^x is not finite.
        """
        if not self.logarithm:
            raise NotEnumerableError(
                "the sampler adds a number to an exponential random number; only a race is followed"
            )
        try:
            weight = exact_number(math.exp(number))
        except (ValueError, OverflowError):
            raise UndefinedDrawError(f"a race of Gumbel random numbers with the logit {number}") from None
        return self._scaled(weight, self.inverse)

    def _plain(self, does: str) -> Clock:
        if self.logarithm:
            raise NotEnumerableError(f"the sampler {does} the logarithm of an exponential random number")
        return self

    def _scaled(self, weight: Fraction, rate_grows: bool) -> Clock:
        if not rate_grows and weight <= 0:
            raise NotEnumerableError(f"the sampler scales an exponential random number by {weight}")
        return replace(self, rate=self.rate * weight if rate_grows else self.rate / weight)


_UNARY: dict[str, Callable[[Clock], Clock]] = {
    "reciprocal": Clock.inverted,
    "log": Clock.log,
    "negative": Clock.negated,
}


def clock_after(operation: str, *entries: Any) -> Clock:
    """The clock that an elementwise operation makes of a clock and, where it is binary, a number.

    Args:
        operation: add, subtract, multiply, divide, reciprocal, log or negative.
        entries: the operands; of two, one is a clock and the other a number of Python, numpy or torch.

    Raises:
        NotEnumerableError: the operation is not part of a race.
        UndefinedDrawError: a weight is nan or inf.
    """
    if len(entries) == 1 and operation in _UNARY:
        return _UNARY[operation](*entries)
    clocks = [entry for entry in entries if isinstance(entry, Clock)]
    if len(clocks) == 2:
        raise NotEnumerableError(f"the sampler applies {operation} to two exponential random numbers")
    if len(entries) == 2 and clocks:
        (clock,) = clocks
        is_first = clock is entries[0]
        number = float(entries[is_first])
        if operation == "add":
            return clock.plus(number)
        if operation == "subtract":
            return clock.plus(-number) if is_first else clock.negated().plus(number)
        if operation == "multiply":
            return clock.times(_weight(number))
        if operation == "divide":
            return clock.over(_weight(number)) if is_first else clock.inverted().times(_weight(number))
    raise only_a_race(operation)


def only_a_race(operation: str) -> NotEnumerableError:
    """The refusal of an operation on exponential numbers."""
    return NotEnumerableError(
        f"the sampler applies {operation} to exponential random numbers; only a race is followed: weights "
        "divided by them and argmax, or them divided by weights and argmin"
    )


def _weight(number: float) -> Fraction:
    try:
        return exact_number(number)
    except (ValueError, OverflowError):
        raise UndefinedDrawError(f"a race of exponential random numbers with the weight {number}") from None


@dataclass(eq=False)
class Race:
    """Which of independent clocks comes first.

    Samplers often draw a winner at every position from the same numbers and use only one of them.  So a race
    branches only when its winner is used, and a second race of the same numbers is refused.

    Attributes:
        clocks: one race.
        largest: whether the largest is asked for: the first clock has the largest inverse, and the largest
            negative.
    """

    clocks: Sequence[Clock]
    largest: bool
    found: int | None = None

    def winner(self) -> int:
        """The number of the winner: i with probability w_i / Σ w for the rates w; 0 where all rates are 0.

        Raises:
            NotEnumerableError: the last is asked for, or a clock is in its second race.
            UndefinedDrawError: a rate is negative.
        """
        if self.found is None:
            self.found = self._run()
        return self.found

    def _run(self) -> int:
        if any(clock.inverse is not (self.largest is not clock.negative) for clock in self.clocks):
            raise NotEnumerableError(
                "the sampler asks for the last of exponential random numbers, not the first"
            )
        if len({(clock.logarithm, clock.negative) for clock in self.clocks}) > 1:
            raise NotEnumerableError("the sampler compares exponential random numbers with their logarithms")
        if any(clock.source.is_used for clock in self.clocks):
            raise NotEnumerableError("the sampler runs two races with the same exponential random numbers")
        rates = [clock.rate for clock in self.clocks]
        total = sum(rates, Fraction(0))
        if min(rates) < 0:
            raise UndefinedDrawError("a race of exponential random numbers with a negative weight")
        if total == 0:  # all values are equal, and the first of the largest is taken
            return 0
        for clock in self.clocks:
            clock.source.is_used = True
        return self.clocks[0].source.tape.decide([rate / total for rate in rates])


@dataclass(frozen=True, eq=False)
class Pick:
    """A whole number that depends on the winner of a race."""

    race: Race
    function: Callable[[int], int] = int

    def decide(self) -> int:
        """The number, once the race has a winner."""
        return self.function(self.race.winner())

    def fulfils(self, condition: Callable[[int], bool]) -> bool:
        """Whether a condition holds; the race is run only where the answer depends on it."""
        answers = {condition(self.function(place)) for place in range(len(self.race.clocks))}
        return answers.pop() if len(answers) == 1 else condition(self.decide())

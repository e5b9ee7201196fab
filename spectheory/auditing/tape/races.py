"""Exponential random numbers and the races between them.

If independent exponential numbers have the rates w_i, the i-th is the smallest with probability w_i / Σ w.
Samplers draw a token this way: they take the ``argmax`` of weights divided by exponential numbers, or of
logits plus Gumbel numbers.

A drafter and a verifier that share their noise run two races with the same numbers E_i.  Let the first race
have the rates q_i with sum Λ, and the winner j.  Given this,

    E_j = q_j T  and  E_i = q_i T + E'_i  for i != j,    T of rate Λ, and E'_i of rate 1, all independent.

The second race has the clocks E_i / r_i, with the rates r_i.  Let

    A(s) = Λ + Σ_{i != j} max(r_i s - q_i, 0)  and  s_j = q_j / r_j.

For s <= s_j, no clock is earlier than s T with probability Λ / A(s).  So j wins with probability Λ / A(s_j),
and k != j with probability Λ r_k ∫ ds / A(s)^2 from q_k / r_k to s_j.  A is linear between the points
q_i / r_i, and ∫ ds / A(s)^2 = (t - s) / (A(s) A(t)) there, so all probabilities are rational.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from spectheory.auditing.tape.decisions import NotEnumerableError, Tape
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import exact_number


class UndefinedDrawError(InvalidInputError, RuntimeError):
    """The run has no valid output: it draws from weights that are not a distribution, or an unknown token."""


@dataclass(eq=False)
class Exponential:
    """One exponential random number.  ``is_used`` if a decision depended on it; ``race`` is its last race."""

    tape: Tape
    is_used: bool = False
    race: Race | None = None


@dataclass(frozen=True, eq=False)
class ExponentialDraw:
    """A clock: an exponential random number with a rate, its inverse, or a logarithm of these.

    We follow clocks only in races.

    Attributes:
        inverse: whether the clock is 1 / the number.
        logarithm: whether the clock is the logarithm of that; the logarithm of an inverse is a Gumbel number.
        negative: whether the clock is minus that.
        underflowed: whether the rate 0 stands for a rate that is too small for float64.
    """

    source: Exponential
    rate: Fraction = Fraction(1)
    inverse: bool = False
    logarithm: bool = False
    negative: bool = False
    underflowed: bool = False

    @property
    def is_used(self) -> bool:
        return self.source.is_used

    @property
    def is_plain(self) -> bool:
        """Whether the clock is an exponential number, or minus an exponential number."""
        return not self.inverse and not self.logarithm

    def inverted(self) -> ExponentialDraw:
        return replace(self._plain("divides by"), inverse=not self.inverse)

    def times(self, weight: Fraction) -> ExponentialDraw:
        """The clock times a weight w: an exponential number of rate r becomes one of rate r / w."""
        if weight in (1, -1):
            return self if weight == 1 else self.negated()
        return self._plain("multiplies")._scaled(weight, self.inverse)

    def over(self, weight: Fraction) -> ExponentialDraw:
        return self._plain("divides")._scaled(weight, not self.inverse)

    def negated(self) -> ExponentialDraw:
        """Minus the clock.  Minus a logarithm is the logarithm of the inverse."""
        if self.logarithm:
            return replace(self, inverse=not self.inverse)
        return replace(self, negative=not self.negative)

    def log(self) -> ExponentialDraw:
        if self.negative:
            raise NotEnumerableError("the sampler takes the logarithm of a negative random number")
        return replace(self._plain("takes the logarithm of"), logarithm=True)

    def plus(self, number: float) -> ExponentialDraw:
        """A logarithm plus x: the logarithm of e^x times the number.  We round e^x to float64."""
        if not self.logarithm:
            raise NotEnumerableError(
                f"the sampler adds a number to an exponential random number; {WINNER_EXPECTED}"
            )
        try:
            weight = exact_number(math.exp(number))
        except (ValueError, OverflowError):
            raise UndefinedDrawError(f"a race of Gumbel random numbers with the logit {number}") from None
        underflows = not weight and number > -math.inf
        return replace(self._scaled(weight, self.inverse), underflowed=self.underflowed or underflows)

    def _plain(self, does: str) -> ExponentialDraw:
        if self.logarithm:
            raise NotEnumerableError(f"the sampler {does} the logarithm of an exponential random number")
        return self

    def _scaled(self, weight: Fraction, rate_grows: bool) -> ExponentialDraw:
        if not rate_grows and weight <= 0:
            raise NotEnumerableError(f"the sampler scales an exponential random number by {weight}")
        return replace(self, rate=self.rate * weight if rate_grows else self.rate / weight)


_UNARY: dict[str, Callable[[ExponentialDraw], ExponentialDraw]] = {
    "reciprocal": ExponentialDraw.inverted,
    "log": ExponentialDraw.log,
    "negative": ExponentialDraw.negated,
}


_BINARY = ("add", "subtract", "multiply", "divide")


def clock_after(operation: str, *entries: Any) -> ExponentialDraw:
    """Apply an elementwise operation to a clock, or to a clock and a number.

    Args:
        operation: add, subtract, multiply, divide, reciprocal, log or negative.
        entries: one clock, or a clock and a number of Python, numpy or torch in any order.

    Raises:
        NotEnumerableError: the operation is not part of a race.
        UndefinedDrawError: a weight is nan or inf.
    """
    if len(entries) == 1 and operation in _UNARY:
        return _UNARY[operation](*entries)
    clocks = [entry for entry in entries if isinstance(entry, ExponentialDraw)]
    if len(clocks) == 2:
        raise NotEnumerableError(f"the sampler applies {operation} to two exponential random numbers")
    if len(entries) == 2 and clocks and operation in _BINARY:
        (clock,) = clocks
        is_first = clock is entries[0]
        number = float(entries[is_first])
        if operation == "add":
            return clock.plus(number)
        if operation == "subtract":
            return clock.plus(-number) if is_first else clock.negated().plus(number)
        if operation == "multiply":
            return clock.times(_weight(number))
        return clock.over(_weight(number)) if is_first else clock.inverted().times(_weight(number))
    raise only_a_race(operation)


def value_of(entry: Any) -> float | None:
    """The value of an ordinary number or of a clock.  ``None`` if the clock is random."""
    if not isinstance(entry, ExponentialDraw):
        return float(entry)
    if entry.logarithm and entry.rate < 0:
        return math.nan
    if entry.rate or entry.underflowed:
        return None
    end = (-math.inf if entry.logarithm else 0.0) if entry.inverse else math.inf
    return -end if entry.negative else end


def are_equal(first: Any, second: Any) -> bool:
    """Whether a clock with a random value equals another entry.  It equals only itself, with probability 1.

    Raises:
        NotEnumerableError: both come from one random number, so that rounding decides.
    """
    sources = [entry.source for entry in (first, second) if isinstance(entry, ExponentialDraw)]
    if first is not second and len(sources) == 2 and sources[0] is sources[1]:
        raise NotEnumerableError(
            "the sampler asks whether an exponential random number equals itself after other arithmetic, "
            "which rounding decides"
        )
    return first is second


def lower_end(clocks: Iterable[ExponentialDraw]) -> float:
    """Lower bound of all clocks: 0, or -inf if some are logarithms or negative."""
    return -math.inf if any(clock.logarithm or clock.negative for clock in clocks) else 0.0


WINNER_EXPECTED = (
    "the winner of a race was expected: argmax of weights divided by exponential random numbers, or argmin "
    "of these divided by weights; only a race is followed"
)


def only_a_race(operation: str, kind: str = "exponential random") -> NotEnumerableError:
    return NotEnumerableError(f"the sampler applies {operation} to {kind} numbers; {WINNER_EXPECTED}")


def _weight(number: float) -> Fraction:
    try:
        return exact_number(number)
    except (ValueError, OverflowError):
        raise UndefinedDrawError(f"a race of exponential random numbers with the weight {number}") from None


@dataclass(eq=False)
class Race:
    """A race between independent clocks, which decides the clock that comes first.

    Samplers often draw a winner at every position from the same numbers, and use only one winner.  So a race
    branches only when its winner is used.  We follow a second race of the same numbers, and refuse a third.

    Attributes:
        clocks: the clocks of the race.
        largest: whether the sampler takes the largest value.  The first clock has the largest inverse and the
            largest negative.
        is_last: becomes false for both races when a second race uses one of the numbers.
    """

    clocks: Sequence[ExponentialDraw]
    largest: bool
    found: int | None = None
    is_last: bool = True

    def winner(self) -> int:
        """Index of the winner: i with probability w_i / Σ w for the rates w.  If all rates are 0, it is 0.

        Raises:
            NotEnumerableError: the sampler takes the last clock, or a number is in its third race.
            UndefinedDrawError: a rate is negative.
        """
        if self.found is None:
            self.found = self._run()
        return self.found

    @property
    def candidates(self) -> list[int]:
        """Indices of the clocks that may win."""
        return [number for number, clock in enumerate(self.clocks) if clock.rate] or [0]

    def _run(self) -> int:
        if any(clock.inverse is not (self.largest is not clock.negative) for clock in self.clocks):
            raise NotEnumerableError(
                f"the sampler asks for the last of exponential random numbers; {WINNER_EXPECTED}"
            )
        if len({(clock.logarithm, clock.negative) for clock in self.clocks}) > 1:
            raise NotEnumerableError("the sampler compares exponential random numbers with their logarithms")
        if min(clock.rate for clock in self.clocks) < 0:
            raise UndefinedDrawError("a race of exponential random numbers with a negative weight")
        if not any(clock.rate for clock in self.clocks):
            return 0  # all values are equal, and the first of the largest is taken
        rates = self.rates()
        before = self._race_before(rates)
        for source in rates:
            source.is_used, source.race = True, self
        if before is None:
            total = sum(rates.values())
            shares = {source: rate / total for source, rate in rates.items()}
        else:
            before.is_last = self.is_last = False
            shares = _shares_after(before.rates(), before.clocks[before.winner()].source, rates)
        cases = []
        for clock in self.clocks:  # of equal clocks with one number the first is taken
            is_first = clock.rate == rates[clock.source]
            cases.append(shares.pop(clock.source, Fraction(0)) if is_first else Fraction(0))
        return self.clocks[0].source.tape.decide(cases)

    def rates(self) -> dict[Exponential, Fraction]:
        """The largest rate of each number.  If several clocks share a number, this clock comes first."""
        rates: dict[Exponential, Fraction] = {}
        for clock in self.clocks:
            rates[clock.source] = max(clock.rate, rates.get(clock.source, clock.rate))
        return rates

    def _race_before(self, sources: Iterable[Exponential]) -> Race | None:
        """The earlier race of some of these numbers.  ``None`` if all numbers are new."""
        used = [source for source in sources if source.is_used]
        races = {id(source.race): source.race for source in used}
        if not races:
            return None
        if None in races.values():
            raise NotEnumerableError("the sampler compares a random number that it also puts into a race")
        (before, *others) = races.values()
        if others or before is None or not before.is_last:
            raise NotEnumerableError("the sampler runs three races with the same exponential random numbers")
        return before


def _shares_after(
    known: Mapping[Exponential, Fraction], winner: Exponential, rates: Mapping[Exponential, Fraction]
) -> dict[Exponential, Fraction]:
    """The probability of each number to win a second race.

    Args:
        known: the rates q_i of the first race.
        winner: the winner of the first race.
        rates: the rates r_i of the second race.  A number that was not in the first race has q_i = 0.
    """
    total = sum(known.values())
    others = {s: (known.get(s, Fraction(0)), r) for s, r in rates.items() if s is not winner and r > 0}
    end = known[winner] / rates[winner] if rates.get(winner) else None
    shares = dict.fromkeys(rates, Fraction(0))

    def rate_at(time: Fraction) -> Fraction:
        return total + sum((max(r * time - q, Fraction(0)) for q, r in others.values()), Fraction(0))

    starts = sorted({q / r for q, r in others.values() if end is None or q / r < end})
    bounds: list[Fraction | None] = [*starts, end]
    for start, stop in zip(starts, bounds[1:], strict=True):
        running = {source: r for source, (q, r) in others.items() if q / r <= start}
        if stop is None:
            integral = 1 / (sum(running.values()) * rate_at(start))
        else:
            integral = (stop - start) / (rate_at(start) * rate_at(stop))
        for source, rate in running.items():
            shares[source] += total * rate * integral
    if end is not None:
        shares[winner] = total / rate_at(end)
    return shares


@dataclass(frozen=True, eq=False)
class ArgmaxWinner:
    """An integer that depends on the winner of a race."""

    race: Race
    function: Callable[[int], int] = int

    def decide(self) -> int:
        return self.function(self.race.winner())

    def fulfils(self, condition: Callable[[int], bool]) -> bool:
        """Whether a condition holds.  We run the race only if the answer depends on its winner."""
        answers = {condition(self.function(place)) for place in self.race.candidates}
        return answers.pop() if len(answers) == 1 else condition(self.decide())

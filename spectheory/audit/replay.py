"""Every run of a function of random numbers, each with its exact probability.

The function is handed a generator whose numbers are *coins*.  A coin is a uniform number that is not drawn:
it knows an interval it lies in.  Whenever the function compares it with a number inside that interval, the
run branches, and both sides are followed, one after the other, by calling the function again with the
same answers up to there.  The probability of a run is the product of the shares of its branches.  Nothing
is assumed of the function but that it is one: same answers, same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from spectheory.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.exact_numbers import exact_number

T = TypeVar("T")
P_SUM_TOLERANCE = Fraction(1, 10**8)
"""How far the sum of the probabilities of ``choice`` may be from 1; numpy has about the same."""
MAX_DECISIONS = 1_000
"""The most random decisions of one run."""
MAX_RUNS = 100_000
"""The most runs that are followed."""


class NotEnumerableError(InvalidInputError):
    """The function does with a random number what cannot be split into finitely many cases."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        for refusals in _LISTENING:
            refusals.append(self)


class HiddenRandomnessError(NotEnumerableError):
    """The function is no function of the random numbers that it is given, and its runs are not its law."""


_LISTENING: list[list[NotEnumerableError]] = []


@contextmanager
def unswallowed() -> Iterator[None]:
    """A refusal that the code inside catches is raised at the end all the same.

    Raises:
        NotEnumerableError: the first one that was made.
    """
    refusals: list[NotEnumerableError] = []
    _LISTENING.append(refusals)
    try:
        yield
    finally:
        _LISTENING.remove(refusals)
    if refusals:
        raise refusals[0] from None


class Run(NamedTuple, Generic[T]):
    """One way the random numbers can fall.

    Attributes:
        probability: of this way, a Fraction.
        result: what the function returned.
    """

    probability: Fraction
    result: T


def all_runs(
    function: Callable[[CoinGenerator], T], max_runs: int = MAX_RUNS, given: Sequence[Branch] = ()
) -> Iterator[Run[T]]:
    """Every run of ``function(generator)``; the probabilities sum to 1.

    Args:
        function: it draws all its random numbers from the generator.
        max_runs: follow no more.
        given: only the runs that start with these decisions, as a tape has made them.

    Raises:
        NotEnumerableError: a number is used in a way that has no finite cases.
        EnumerationTooLargeError: there are more runs.

    Example:
        >>> runs = all_runs(lambda generator: generator.random() < 0.25)
        >>> [(str(probability), result) for probability, result in runs]
        [('1/4', True), ('3/4', False)]
    """
    script = list(given)
    for number in range(max_runs + 1):
        if number == max_runs:
            raise EnumerationTooLargeError(f"there are more than {max_runs} runs; use fewer tokens or drafts")
        tape = Tape(script)
        result = function(CoinGenerator(tape))
        tape.is_over = True
        yield Run(math.prod((branch.share for branch in tape.made), start=Fraction(1)), result)
        script = tape.made
        while len(script) > len(given) and script[-1].is_last:
            script.pop()
        if len(script) <= len(given):
            return
        script[-1] = script[-1].following()


class Branch(NamedTuple):
    """One decision: which of the cases was taken, and the probabilities of all."""

    taken: int
    shares: tuple[Fraction, ...]

    @property
    def share(self) -> Fraction:
        return self.shares[self.taken]

    @property
    def is_last(self) -> bool:
        return not any(self.shares[self.taken + 1 :])

    def following(self) -> Branch:
        """The next case of positive probability."""
        later = range(self.taken + 1, len(self.shares))
        return self._replace(taken=next(case for case in later if self.shares[case] > 0))


@dataclass
class Tape:
    """The decisions of a run: those that are given, then the first case of every new one.

    Attributes:
        given, made: the decisions.
        is_approximate: whether an answer was given for a box of cases that do not all agree on it.
        box_bits: a comparison of n numbers halves each of them at most box_bits / n times.
        call: how many calls of the sampler came before, in this run.
        is_over: whether the run has ended.
    """

    given: Sequence[Branch]
    made: list[Branch] = field(default_factory=list)
    is_approximate: bool = False
    box_bits: int = 8
    call: int = 0
    is_over: bool = False

    @property
    def next_given(self) -> Branch | None:
        """The decision that is given for the next question, if one is."""
        return self.given[len(self.made)] if len(self.made) < len(self.given) else None

    def decide(self, shares: Sequence[Fraction]) -> int:
        """Which of the cases with these probabilities this run takes.

        Raises:
            HiddenRandomnessError: the run has ended, or was another one with the same answers up to here.
            NotEnumerableError: it goes on for ever.
        """
        if self.is_over:
            raise HiddenRandomnessError(
                "the function keeps random numbers, or a generator, from one run to the next; draw them anew"
            )
        branch = self.next_given
        if branch is not None:
            if branch.shares != tuple(shares):
                raise HiddenRandomnessError(
                    "the function is no function of its random numbers: replayed with the same answers it "
                    "asked for others; it keeps state, or draws numbers elsewhere"
                )
        elif len(self.made) >= MAX_DECISIONS:
            raise NotEnumerableError(
                f"a run asks for more than {MAX_DECISIONS} random decisions, as a loop that draws until "
                "something is accepted may do for ever; judge the sampler by "
                "`spectheory.adapt.sampled_verdict`"
            )
        else:
            branch = Branch(-1, tuple(shares)).following()
        self.made.append(branch)
        return branch.taken


@dataclass(eq=False)
class _Uniform:
    """A uniform number on [low, high), not drawn."""

    tape: Tape
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)

    def is_below(self, threshold: Fraction) -> bool:
        """Whether it is below the threshold; narrows the interval."""
        if threshold <= self.low:
            return False
        if threshold >= self.high:
            return True
        share = (threshold - self.low) / (self.high - self.low)
        if self.tape.decide((share, 1 - share)) == 0:
            self.high = threshold
            return True
        self.low = threshold
        return False


class Coin:
    """scale * u + shift, u uniform on [0, 1) and not drawn.

    It can be compared with numbers, and added to, multiplied and divided by numbers.  Equality with a number
    has probability 0 and is never the case.
    """

    __array_priority__ = 1_000

    def __init__(
        self, uniform: _Uniform, scale: Fraction = Fraction(1), shift: Fraction = Fraction(0)
    ) -> None:
        self._uniform, self._scale, self._shift = uniform, scale, shift

    def __lt__(self, other: Any) -> Any:
        if other is self:  # as numpy's searchsorted asks
            return False
        if isinstance(other, (float, np.floating)) and math.isinf(other):
            return other > 0
        number = _exact(other, "compared with")
        if number is None:
            return NotImplemented
        below = self._uniform.is_below((number - self._shift) / self._scale)
        return below if self._scale > 0 else not below

    def __ge__(self, other: Any) -> Any:
        below = self.__lt__(other)
        return below if below is NotImplemented else not below

    # A coin equals a given number with probability 0, so <= is < and > is >=.
    __le__, __gt__ = __lt__, __ge__

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        number = _exact(other, "added to")
        return NotImplemented if number is None else Coin(self._uniform, self._scale, self._shift + number)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        number = _exact(other, "multiplied by")
        if number is None:
            return NotImplemented
        return Coin(self._uniform, self._scale * number, self._shift * number) if number else Fraction(0)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        number = _exact(other, "subtracted from")
        return NotImplemented if number is None else self + -number

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        number = _exact(other, "divided by")
        return NotImplemented if number is None else self * (1 / number)

    def __float__(self) -> float:
        raise NotEnumerableError(
            "a random number is turned into a float before it is compared; compare it as it is, or judge the "
            "sampler by `spectheory.adapt.sampled_verdict`"
        )

    __int__ = __index__ = __bool__ = __float__

    def __repr__(self) -> str:
        return "<a uniform number that is not drawn>"


class CoinGenerator:
    """Stands in for a ``numpy.random.Generator`` or a ``random.Random``: its numbers are coins."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def random(self, size: Any = None) -> Any:
        """Uniform numbers on [0, 1): one coin, or an array of coins."""
        if size is None:
            return Coin(_Uniform(self.tape))
        coins = np.empty(size, dtype=object)
        for index in np.ndindex(coins.shape):
            coins[index] = Coin(_Uniform(self.tape))
        return coins

    def uniform(self, low: Any = 0, high: Any = 1, size: Any = None) -> Any:
        """Uniform numbers on [low, high)."""
        return self.random(size) * (high - low) + low

    def choice(self, a: Any, size: None = None, replace: bool = True, p: Any = None) -> Any:
        """One of ``range(a)`` or of a sequence, with probabilities ``p`` that sum to 1."""
        if size is not None:
            raise NotEnumerableError("choice() with a size is not enumerated; draw one at a time")
        values = range(int(a)) if isinstance(a, (int, np.integer)) else list(a)
        if p is None:
            return values[self._one_of([1] * len(values))]
        total = sum((_exact(weight, "used as a weight") or Fraction(0) for weight in p), Fraction(0))
        if abs(total - 1) > P_SUM_TOLERANCE:
            raise InvalidInputError(f"choice() was given probabilities that sum to {sum(p)}, not 1")
        return values[self._one_of(p)]

    def choices(self, population: Sequence[Any], weights: Any = None, *, k: int = 1) -> list[Any]:
        """``random.choices``: k values, drawn with replacement."""
        chances = [1] * len(population) if weights is None else weights
        return [population[self._one_of(chances)] for _ in range(k)]

    def integers(self, low: int, high: int | None = None) -> int:
        """A whole number of low..high-1, or of 0..low-1."""
        first, beyond = (0, low) if high is None else (low, high)
        return first + self._one_of([1] * (beyond - first))

    def multinomial(self, n: int, pvals: Any) -> np.ndarray:
        """How often each value was drawn in n = 1 draws."""
        if n != 1:
            raise NotEnumerableError(f"multinomial() is enumerated for n = 1, got {n}")
        counts = np.zeros(len(pvals), dtype=int)
        counts[self._one_of(pvals)] = 1
        return counts

    def _one_of(self, weights: Any) -> int:
        exact = [_exact(weight, "used as a weight") or Fraction(0) for weight in weights]
        total = sum(exact, Fraction(0))
        if total <= 0 or min(exact) < 0:
            raise InvalidInputError(f"cannot draw with the weights {[str(weight) for weight in weights]}")
        return self.tape.decide([weight / total for weight in exact])

    def __getattr__(self, name: str) -> Any:
        raise NotEnumerableError(
            f"the sampler draws from generator.{name}, which is not enumerated; use random, uniform, choice, "
            "choices, integers or multinomial, or judge it by `spectheory.adapt.sampled_verdict`"
        )


def _exact(value: Any, what: str) -> Fraction | None:
    """A number at its exact value; ``None`` for what is no number."""
    if isinstance(value, Coin):
        raise NotEnumerableError(
            f"a random number is {what} another one, which has no finite cases; judge the sampler by "
            "`spectheory.adapt.sampled_verdict`"
        )
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    try:
        return exact_number(value)
    except TypeError:
        return None
    except (ValueError, OverflowError):
        raise InvalidInputError(f"a random number is {what} {value}, which is no finite number") from None

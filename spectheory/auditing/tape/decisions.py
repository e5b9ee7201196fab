"""Follow every run of a function of random numbers, each with its exact probability.

The function takes its random numbers from a *tape*, which holds the decisions of the run.  If a result
depends on a random number, the run branches.  We follow all branches one after the other: we call the
function again with the same decisions up to the branch.  The probability of a run is the product of the
probabilities of its branches.  Apart from that, the function must be deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError

T = TypeVar("T")
MAX_DECISIONS = 150
"""The most random decisions of one run."""
MAX_RUNS = 100_000
"""The most runs that are followed."""


class NotEnumerableError(InvalidInputError):
    """The function uses a random number in a way that cannot be split into finitely many cases."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        for refusals in _LISTENING:
            refusals.append(self)


class HiddenRandomnessError(NotEnumerableError):
    """The function uses randomness other than the given numbers, so its runs do not give its law."""


_LISTENING: list[list[NotEnumerableError]] = []


@contextmanager
def unswallowed() -> Iterator[None]:
    """Raise a ``NotEnumerableError`` again at the end of this context, if the code inside hides it."""
    refusals: list[NotEnumerableError] = []
    _LISTENING.append(refusals)
    try:
        yield
    except Exception as error:
        if refusals and not isinstance(error, NotEnumerableError):
            raise refusals[0] from error
        raise
    finally:
        _LISTENING.remove(refusals)
    if refusals:
        raise refusals[0] from None


class FollowedRun(NamedTuple, Generic[T]):
    """One run: its exact probability, and the result of the function."""

    probability: Fraction
    result: T


class Branch(NamedTuple):
    """One decision: the index of the case that was taken, and the probabilities of all cases."""

    taken: int
    shares: tuple[Fraction, ...]

    @property
    def share(self) -> Fraction:
        return self.shares[self.taken]

    @property
    def is_last(self) -> bool:
        return not any(self.shares[self.taken + 1 :])

    def following(self) -> Branch:
        later = range(self.taken + 1, len(self.shares))
        return self._replace(taken=next(case for case in later if self.shares[case] > 0))


@dataclass
class Tape:
    """The decisions of a run: first the given ones, then the first case of every new decision.

    Attributes:
        given, made: the decisions to repeat, and all decisions of this run.
        is_approximate: whether a box of cases got one answer although its cases do not all agree.
        box_bits: a comparison of n numbers halves each of them at most box_bits / n times.
        call: the number of earlier calls of the sampler in this run.
        is_over: whether the run has ended.
        rounded: a float that the run used and that looks rounded, if any.
        seed: a number added to the seeds of generators, which must not change the law.
        numbers, cases: the random numbers that the run got, and the cases that it drew, in order.
        again: the same as ordinary numbers, for a run that we repeat without stand-ins.
        is_watched: whether the run is made again.
        told: called with every decision and with the bound of its comparison, if it is one.
    """

    given: Sequence[Branch]
    made: list[Branch] = field(default_factory=list)
    is_approximate: bool = False
    box_bits: int = 8
    call: int = 0
    is_over: bool = False
    rounded: float | None = None
    seed: int = 0
    numbers: list[Any] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)
    again: OrdinaryNumbers | None = None
    is_watched: bool = True
    told: Callable[[Branch, float | None], None] | None = None

    @property
    def next_given(self) -> Branch | None:
        return self.given[len(self.made)] if len(self.made) < len(self.given) else None

    def decide(self, shares: Sequence[Fraction], bound: float | None = None) -> int:
        """Take a decision with these probabilities, and return the index of the case.

        If it is a comparison, ``bound`` is the number that a random number is compared with.
        """
        if self.is_over:
            raise HiddenRandomnessError(
                "the function keeps random numbers, or a generator, from one run to the next; draw them anew"
            )
        branch = self.next_given
        if branch is not None:
            if branch.shares != tuple(shares):
                raise HiddenRandomnessError(
                    "the function uses randomness other than the given generator: after the same random "
                    "numbers it asked for others; it keeps state, or draws numbers elsewhere"
                )
        elif len(self.made) >= MAX_DECISIONS:
            raise NotEnumerableError(
                f"a run asks for more than {MAX_DECISIONS} random decisions, as a loop that draws until "
                "something is accepted may do for ever"
            )
        else:
            branch = Branch(-1, tuple(shares)).following()
        self.made.append(branch)
        if self.told is not None:
            self.told(branch, bound)
        return branch.taken

    def draw(self, shares: Sequence[Fraction]) -> int:
        """Draw a case: a decision whose case the function sees."""
        if self.again is not None:
            return self.again.next_of(self.again.cases)
        self.cases.append(self.decide(shares))
        return self.cases[-1]

    def draw_among(self, weights: Sequence[Fraction]) -> int:
        """Draw a case with probabilities in proportion to weights."""
        total = sum(weights, Fraction(0))
        if total <= 0 or min(weights) < 0:
            raise InvalidInputError(f"cannot draw with the weights {[str(weight) for weight in weights]}")
        return self.draw([weight / total for weight in weights])

    def number(self, make: Callable[[], Any]) -> Any:
        """Hand out a new random number.  In a repeated run, hand out its ordinary value."""
        if self.again is not None:
            return self.again.next_of(self.again.numbers)
        self.numbers.append(make())
        return self.numbers[-1]


@dataclass
class OrdinaryNumbers:
    """The numbers and cases of a run as ordinary ones, so that we can repeat it without stand-ins."""

    numbers: list[float]
    cases: list[int]

    @staticmethod
    def next_of(left: list[T]) -> T:
        if not left:
            raise NotEnumerableError("made again with ordinary numbers, the run takes another course")
        return left.pop(0)


class Interval:
    """A random number that is uniform on a known interval [low, high)."""

    tape: Tape
    low: Any
    high: Any

    def is_below(self, cut: Any) -> bool:
        """Decide whether the number is below ``cut``, a point inside the interval.  Narrows the interval."""
        share = Fraction(cut - self.low, self.high - self.low)
        if self.tape.decide((share, 1 - share), self.value_at(cut)) == 0:
            self.high = cut
            return True
        self.low = cut
        return False

    def value_at(self, cut: Any) -> float:
        """The value of the random number at a cut."""
        return float(cut)


def all_runs(
    function: Callable[[Tape], T], max_runs: int = MAX_RUNS, given: Sequence[Branch] = ()
) -> Iterator[FollowedRun[T]]:
    """Yield every run of ``function(tape)``.  The probabilities sum to 1.

    Args:
        function: takes all its random decisions from the tape.
        max_runs: the largest number of runs.
        given: follow only the runs that start with these decisions.

    Raises:
        NotEnumerableError: the function uses a random number in a way that has no finite cases.
        EnumerationTooLargeError: there are more than ``max_runs`` runs.

    Example:
        >>> runs = all_runs(lambda tape: tape.decide([Fraction(1, 4), Fraction(3, 4)]))
        >>> [(str(probability), result) for probability, result in runs]
        [('1/4', 0), ('3/4', 1)]
    """
    script = list(given)
    for number in range(max_runs + 1):
        if number == max_runs:
            raise EnumerationTooLargeError(f"there are more than {max_runs} runs; use fewer tokens or drafts")
        tape = Tape(script)
        result = function(tape)
        tape.is_over = True
        yield FollowedRun(math.prod((branch.share for branch in tape.made), start=Fraction(1)), result)
        script = tape.made
        while len(script) > len(given) and script[-1].is_last:
            script.pop()
        if len(script) <= len(given):
            return
        script[-1] = script[-1].following()

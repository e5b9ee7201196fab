"""The laws of the random numbers that torch and Python hand out, and comparisons that follow them exactly.

``torch.rand`` does not return a real number but one of finitely many floats: its *atoms* are equally likely.
A ``Number`` is a function of such random numbers.  Where the truth of a comparison depends on the atom, the
run branches (``replay``), and the share of each side is a count of atoms, found by bisection with torch's own
arithmetic.  The law that comes out is that of the shipped code with its rounding, as a rational number.

Where several numbers meet in one comparison, as in a product of uniforms, the cases are no intervals.  They
are enclosed by boxes; a box of the smallest size that is still undecided takes the answer of its corner, and
the run says so: its probability bounds how far the law is off.

Assumed: elementwise functions are monotone in each random number, as rounding is.  Two points inside of every
cell are asked whether they have the answer of its ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from spectheory.audit.replay import NotEnumerableError, Tape
from spectheory.errors import InvalidInputError
from spectheory.exact_numbers import exact_number


class UndefinedDrawError(InvalidInputError, RuntimeError):
    """A draw from weights that are no law, as 0/0."""


@dataclass(frozen=True)
class Grid:
    """The law of one random number: ``atoms`` equally likely cases.

    Attributes:
        name: in words.
        atoms: how many.
        wrapped: the first so many atoms have the value 0: numbers that were rounded up to 1.
        dtype: what the values are rounded to.
    """

    name: str
    atoms: int
    dtype: torch.dtype
    wrapped: int = 0

    def value(self, atom: int) -> float:
        """The value of an atom; it never falls from one atom to the next."""
        exact = max(atom - self.wrapped, 0) / self.atoms
        return exact if not self.wrapped else torch.tensor(exact).to(self.dtype).item()


GRIDS = {
    torch.float64: Grid("multiples of 2^-53", 2**53, torch.float64),
    torch.float32: Grid("multiples of 2^-24", 2**24, torch.float32),
    # Half precision rounds a number of 24 bits and maps 1 to 0.
    torch.bfloat16: Grid("multiples of 2^-24 rounded to bfloat16, 1 to 0", 2**24, torch.bfloat16, 2**15),
    torch.float16: Grid("multiples of 2^-24 rounded to float16, 1 to 0", 2**24, torch.float16, 2**12),
}
"""``torch.rand`` on a CPU by dtype; Python's ``random.random`` is the first."""


PROBES = (0.382, 0.764)
"""Where a cell is probed, as shares of it."""


PLAIN_STEPS = 3
"""So many steps of a bisection are always those of a first run: they show a function that changes."""


@dataclass(eq=False)
class Source:
    """One random number: the atoms low..high-1 of a grid are still possible."""

    tape: Tape
    grid: Grid
    low: int = 0
    high: int = field(default=0)
    halvings: int = 0

    def __post_init__(self) -> None:
        self.high = self.grid.atoms

    @property
    def is_used(self) -> bool:
        """Whether something was decided by it."""
        return self.high - self.low < self.grid.atoms

    def likely_cut(self) -> tuple[int, ...]:
        """The atoms on both sides of the cut that an earlier run made here; none if this is a new decision.

        A run that is followed again makes its decisions again: two probes then take the place of most bits.
        The next given decision may belong to a race or to another number; the cut is then arbitrary and only
        costs probes.
        """
        given = self.tape.next_given
        if given is None:
            return ()
        cut = self.low + round(given.shares[0] * (self.high - self.low))
        return cut - 1, cut

    def is_below(self, cut: int) -> bool:
        """Whether the atom is below ``cut``, which lies inside; narrows the range."""
        share = Fraction(cut - self.low, self.high - self.low)
        if self.tape.decide((share, 1 - share)) == 0:
            self.high = cut
            return True
        self.low = cut
        return False


@dataclass(frozen=True, eq=False)
class Number:
    """A function of random numbers, monotone in each: torch's own, rounding included."""

    sources: tuple[Source, ...]
    function: Callable[..., Any]

    @property
    def is_used(self) -> bool:
        """Whether something was decided by one of the random numbers."""
        return any(source.is_used for source in self.sources)

    def at(self, atoms: Sequence[int]) -> Any:
        """Its value at one atom of each source."""
        return self.function(*(s.grid.value(atom) for s, atom in zip(self.sources, atoms, strict=True)))

    def decide(self) -> bool:
        """The truth of a comparison; where it depends on the atoms the run branches."""
        with torch._C.DisableTorchFunction(), _disable_current_modes():  # nothing random happens in here
            return self._decide()

    def _decide(self) -> bool:
        while True:
            ends = [(source.low, source.high - 1) for source in self.sources]
            answers = [bool(self.at(corner)) for corner in product(*ends)]
            if len(set(answers)) == 1:
                self._probe(ends, answers[0])
                return answers[0]
            if len(self.sources) == 1:
                return self._decide_by_bisection(at_low=answers[0])
            if not self._halve():
                self.sources[0].tape.is_approximate = True
                return bool(self.at([source.low for source in self.sources]))

    def _decide_by_bisection(self, at_low: bool) -> bool:
        (source,) = self.sources
        low, high = source.low, source.high - 1
        likely, steps = source.likely_cut(), 0
        while high - low > 1:
            guesses = likely if steps >= PLAIN_STEPS else ()
            middle = next((atom for atom in guesses if low < atom < high), (low + high) // 2)
            low, high = (middle, high) if bool(self.at([middle])) == at_low else (low, middle)
            steps += 1
        self._probe([(source.low, low)], at_low)
        self._probe([(high, source.high - 1)], not at_low)
        return at_low if source.is_below(high) else not at_low

    def _probe(self, ends: Sequence[tuple[int, int]], answer: bool) -> None:
        """Inside of a cell the answer is that of its corners, where the function is monotone.

        Raises:
            NotEnumerableError: it is not.
        """
        for share in PROBES:
            inside = [low + int((high - low) * share) for low, high in ends]
            if bool(self.at(inside)) != answer:
                raise NotEnumerableError(
                    "the sampler compares a function of a random number that is not monotone, which is not "
                    "followed; judge it by `spectheory.adapt.sampled_verdict`"
                )

    def _halve(self) -> bool:
        """Branch at the middle of the source that was halved least; whether one was left to halve."""
        source = min(self.sources, key=lambda source: source.halvings)
        if source.halvings >= source.tape.box_bits // len(self.sources) or source.high - source.low < 2:
            return False
        source.halvings += 1
        source.is_below((source.low + source.high) // 2)
        return True


def uniform_number(tape: Tape, dtype: torch.dtype) -> Number:
    """A fresh number of ``torch.rand``.

    Raises:
        NotEnumerableError: the law in this dtype is not known.
    """
    if dtype not in GRIDS:
        raise NotEnumerableError(f"the law of uniform random numbers of {dtype} is not known")
    return Number((Source(tape, GRIDS[dtype]),), lambda value: value)


@dataclass(eq=False)
class Exponential:
    """One exponential random number; ``is_used`` once it has run a race."""

    tape: Tape
    is_used: bool = False


@dataclass(frozen=True, eq=False)
class Clock:
    """An exponential random number of a rate, its inverse or a logarithm; only races are followed.

    Attributes:
        inverse: whether one divided by it is meant.
        logarithm: whether the logarithm of that is meant; that of an inverse is a Gumbel number.
        negative: whether minus that is meant.
    """

    source: Exponential
    rate: Fraction = Fraction(1)
    inverse: bool = False
    logarithm: bool = False
    negative: bool = False

    @property
    def is_used(self) -> bool:
        """Whether it has run a race."""
        return self.source.is_used

    def inverted(self) -> Clock:
        """One divided by it."""
        return replace(self._plain("divides by"), inverse=not self.inverse)

    def times(self, weight: Fraction) -> Clock:
        """It, multiplied by a weight: an exponential number of rate r times w has the rate r / w."""
        return self._plain("multiplies")._scaled(weight, self.inverse)

    def over(self, weight: Fraction) -> Clock:
        """It, divided by a weight."""
        return self._plain("divides")._scaled(weight, not self.inverse)

    def negated(self) -> Clock:
        """Minus it; minus a logarithm is that of the inverse."""
        if self.logarithm:
            return replace(self, inverse=not self.inverse)
        return replace(self, negative=not self.negative)

    def log(self) -> Clock:
        """Its logarithm."""
        if self.negative:
            raise NotEnumerableError("the sampler takes the logarithm of a negative random number")
        return replace(self._plain("takes the logarithm of"), logarithm=True)

    def plus(self, number: float) -> Clock:
        """A logarithm plus x: that of the number times e^x, which is rounded to float64.

        Raises:
            NotEnumerableError: it is no logarithm.
            UndefinedDrawError: e^x is no finite number.
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


@dataclass(eq=False)
class Race:
    """Which of independent clocks is the first; run when the answer is needed.

    Attributes:
        clocks: one race.
        largest: whether the largest is asked for: the first clock has the largest inverse, and the largest
            negative.

    Samplers draw one row of exponential numbers, hold a race with it at every position and use the winner
    of one.  The law of one race is simple, that of several with the same numbers is not.
    """

    clocks: Sequence[Clock]
    largest: bool
    found: int | None = None

    def winner(self) -> int:
        """The i-th with probability w_i / Σ w for the rates w; the first where all rates are 0.

        Raises:
            NotEnumerableError: another question is asked, or a clock is in its second race.
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
    """A whole number that depends on who wins a race."""

    race: Race
    function: Callable[[int], int] = int

    def decide(self) -> int:
        """The number; the race is run, unless it was."""
        return self.function(self.race.winner())

    def fulfils(self, condition: Callable[[int], bool]) -> bool:
        """Whether a condition holds; the race is run only where the answer depends on it."""
        answers = {condition(self.function(place)) for place in range(len(self.race.clocks))}
        return answers.pop() if len(answers) == 1 else condition(self.decide())

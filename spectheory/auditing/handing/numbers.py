"""Points, coordinates, and the run of a sampler on the numbers of a point.

A random primitive computes its result from numbers that are uniform on [0, 1).  Each number is a coordinate,
and a point gives a value to every coordinate.  The sampler gets ordinary tensors and floats, so ``.numpy()``,
threads, compiled code and other languages work as usual.

A coordinate is (stream, place).  A stream is a state of a generator.  So code that seeds a generator again,
or restores its state, reads the same coordinates again.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from spectheory.auditing.tape.decisions import NotEnumerableError, unswallowed

T = TypeVar("T")
BITS = 53
"""The bits of a coordinate, as many as a float64 has."""
ONE = 1 << BITS
"""A coordinate is an integer in 0..ONE-1, the number times 2^53."""
FINE = 1 << 13
"""2^-40 of the range, to which cuts are bisected: as exact as a float64 law is."""
_MASK = (1 << 64) - 1
Coordinate = tuple[int, int]
"""(stream, place)."""


class NotHandedError(NotEnumerableError):
    """The code draws with a primitive that takes no handed numbers, or its answer depends on other things."""


class Use(NamedTuple):
    """How a run used a coordinate.

    Attributes:
        kind: "uniform"; "exponential", a number that may run in a race; or "choice", the index of a case.
        step: the number is rounded down to a multiple of ``step``; 2^-24 for ``torch.rand`` in float32.
        row: index of a row of the tensor.  The numbers of a race are in one row.
        cuts: the values at which the case of a choice changes.
    """

    kind: str
    step: int = 1
    row: int = 0
    cuts: tuple[int, ...] = ()


def mix(*parts: int) -> int:
    """Hash integers to 64 bits (splitmix64): the values of coordinates that a point does not fix."""
    value = 0x9E3779B97F4A7C15
    for part in parts:
        value = (value ^ (part & _MASK)) * 0xBF58476D1CE4E5B9 & _MASK
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
        value ^= value >> 31
    return value


@dataclass(frozen=True)
class Point:
    """The values of all coordinates.  Coordinates that are not fixed have pseudo-random values.

    Example:
        >>> point = Point(seed=7).but({(0, 0): ONE // 2})
        >>> point.at((0, 0)) / ONE, point.at((0, 1)) == Point(seed=7).at((0, 1))
        (0.5, True)
    """

    seed: int
    fixed: dict[Coordinate, int] = field(default_factory=dict)

    def at(self, coordinate: Coordinate) -> int:
        value = self.fixed.get(coordinate)
        return mix(self.seed, *coordinate) >> 11 if value is None else value

    def but(self, changes: dict[Coordinate, int]) -> Point:
        return Point(self.seed, {**self.fixed, **changes})


class Run(NamedTuple, Generic[T]):
    """The result of one call, and the coordinates that the call used, in order."""

    label: T
    uses: dict[Coordinate, Use]


class HandedRun:
    """The current run, from which primitives take their numbers.  Outside of a run they draw as usual.

    Attributes:
        point: the point of the run; ``None`` outside of a run.
        uses: the coordinates that the run has used so far.
        at_begin: called before every run, to forget the seeds of the run before it.
    """

    def __init__(self) -> None:
        self.point: Point | None = None
        self.uses: dict[Coordinate, Use] = {}
        self.at_begin: list[Callable[[], None]] = []
        self._streams: dict[Hashable, int] = {}
        self._kinds: dict[int, Hashable] = {}
        self._before: dict[Hashable, int] = {}
        self._calls = 0

    def begin(self, point: Point) -> None:
        self.point, self.uses, self._streams, self._kinds = point, {}, {}, {}
        self._calls += 1
        for forget in self.at_begin:
            forget()

    def forget(self) -> None:
        """Forget the states of earlier calls, before another sampler runs."""
        self._before = {}

    def stream(self, state: Hashable = None, drawn_as: Hashable = None, name: str = "") -> int:
        """Return the index of a stream.

        Args:
            state: the state of the generator.  Without a state, the stream is new.
            drawn_as: the primitive.  Two primitives must not draw in one state.
            name: the name of the generator.

        Raises:
            NotHandedError: an earlier call has drawn in this state, so both calls have the same numbers.  Or
                this call has drawn in this state with another primitive.
        """
        if state is None:
            state = ("new", len(self._streams))
        elif self._before.setdefault(state, self._calls) != self._calls:
            raise NotHandedError(f"the sampler draws the same numbers from {name} in every call")
        number = self._streams.setdefault(state, len(self._streams))
        if self._kinds.setdefault(number, drawn_as) != drawn_as:
            raise NotHandedError(f"the sampler draws {drawn_as} and something else from one state of {name}")
        return number

    def take(self, stream: int, uses: Sequence[Use]) -> list[int]:
        """Values of the first coordinates of a stream.  Outside of a run, random numbers of the system."""
        return [self.number((stream, place), use) for place, use in enumerate(uses)]

    def number(self, coordinate: Coordinate, use: Use) -> int:
        """The value of a coordinate, which the run uses.  Outside of a run, a random number of the system."""
        if self.point is None:
            return secrets.randbits(BITS)
        self.uses.setdefault(coordinate, use)
        return self.point.at(coordinate)


NOW = HandedRun()


def run_at(function: Callable[[int], T], point: Point) -> Run[T]:
    """Call ``function(seed)`` with the numbers of a point, inside ``handing``.

    Every call gets another seed, for the generators that the call is given.  So we notice if the result
    depends on the seed, and not on the numbers alone.
    """
    NOW.begin(point)
    try:
        with unswallowed():
            return Run(function(mix(NOW._calls) >> 32), NOW.uses)
    finally:
        NOW.point = None


def exponential(value: int) -> float:
    """-log(1 - u), for u in the middle of a coordinate's cell."""
    if value < ONE // 2:  # each form is exact where the other one rounds
        return -math.log1p(-(value + 0.5) / ONE)
    return -math.log((ONE - value - 0.5) / ONE)


def normal(value: int) -> float:
    """The normal quantile at the middle of a coordinate's cell."""
    from scipy.special import ndtri

    half = float(ndtri((min(value, ONE - 1 - value) + 0.5) / ONE))
    return half if value < ONE // 2 else -half  # near 1 the share itself would be rounded to 1


def case_of(value: int, cuts: Sequence[int]) -> int:
    """Index of the case of a value: the number of cuts that are at most the value."""
    return sum(value >= cut for cut in cuts)


def cuts_of(weights: Sequence[float]) -> tuple[int, ...]:
    """The values at which a uniform number changes its case, for cases with these weights.

    Raises:
        RuntimeError: the weights are not a distribution.  torch and numpy refuse them, too.
    """
    total = math.fsum(weights)
    if not 0 < total < math.inf or min(weights) < 0:
        raise RuntimeError("probabilities contain inf, nan or a negative entry, or sum to 0")
    summed, cuts = 0.0, []
    for weight in weights[:-1]:
        summed += weight
        cuts.append(min(ONE, round(summed / total * ONE)))
    return tuple(cuts)

"""The random numbers of a sampler on formal numbers: every case of a run is followed.

A uniform number u that is compared with x splits the cases into u < x and u ≥ x.  It is then known to lie in
[lo, min(hi, x)), or in [max(lo, x), hi), and the probability of a run is the product of the lengths.  No sign
is asked: min and max stay open, and an empty interval has length max(hi - lo, 0) = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from spectheory.exact.proof.graph import Node
from spectheory.exact.proof.trace import Number
from spectheory.foundation.errors import InvalidOutcomeError

MOST_RUNS = 4_000
"""Of a sampler on one tuple of drafts."""


class FormalGenerator:
    """The generator that a sampler draws from: ``random`` and ``choice`` of numpy's, one number at a time.

    Args:
        given: the decisions of this run; after them, the first case of each.
        zero: a number of the run.
    """

    def __init__(self, given: Sequence[bool], zero: Number) -> None:
        self._given, self._zero = given, zero
        self.taken: list[bool] = []
        self._uniforms: list[Uniform] = []
        self._factors: list[Any] = []

    def decide(self) -> bool:
        """The case of the next decision."""
        place = len(self.taken)
        self.taken.append(self._given[place] if place < len(self._given) else True)
        return self.taken[-1]

    def random(self) -> Uniform:
        self._uniforms.append(Uniform(self, self._zero, self._zero + 1))
        return self._uniforms[-1]

    def choice(self, a: Any, *, p: Sequence[Any]) -> Any:
        values = range(a) if isinstance(a, int) else list(a)
        *most, last = zip(values, p, strict=True)
        value, prob = next((case for case in most if self.decide()), last)
        self._factors.append(prob)
        return value

    @property
    def probability(self) -> Node:
        """The probability of all decisions that were taken."""
        lengths = [(uniform.high - uniform.low).positive_part() for uniform in self._uniforms]
        run = self._zero.run
        return run.graph.node("case", *map(run.node_of, (*lengths, *self._factors)))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._zero.run.refuse(
            f"the method {name} of its generator: a proof follows random() and choice(n, p=row)"
        )


class Uniform:
    """A number that is uniform on [low, high)."""

    takes_numbers = True
    __array_priority__ = 1_000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, generator: FormalGenerator, low: Number, high: Number) -> None:
        self._generator, self.low, self.high = generator, low, high

    def __lt__(self, other: Any) -> bool:
        """Equality has probability 0, so that ≤ is the same."""
        bound = self.low * 0 + other
        upper = self.high - (self.high - bound).positive_part()
        lower = self.low + (bound - self.low).positive_part()
        below = self._generator.decide()
        if below:
            self.high = upper
        else:
            self.low = lower
        return below

    __le__ = __lt__

    def __ge__(self, other: Any) -> bool:
        return not self < other

    __gt__ = __ge__

    def _refuse(self, *_: Any) -> NoReturn:
        self.low.run.refuse("arithmetic with a random number: compare the number itself")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __eq__ = __bool__ = __float__ = __int__ = __index__ = __neg__ = __abs__ = _refuse


def all_runs(run: Callable[[FormalGenerator], Any], zero: Number) -> Iterator[tuple[Any, Node]]:
    """What a sampler returns in every case, with the probability of the case.

    Raises:
        InvalidOutcomeError: there are too many cases.
    """
    waiting: list[list[bool]] = [[]]
    count = 0
    while waiting:
        given = waiting.pop()
        count += 1
        if count > MOST_RUNS:
            raise InvalidOutcomeError(f"a sampler has more than {MOST_RUNS} cases of its random numbers")
        generator = FormalGenerator(given, zero)
        yield run(generator), generator.probability
        taken = generator.taken
        waiting += [[*taken[:place], not taken[place]] for place in range(len(given), len(taken))]

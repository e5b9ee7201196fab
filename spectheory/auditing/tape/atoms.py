"""The uniform random numbers of torch and Python, and comparisons that split them exactly.

``torch.rand`` returns one of finitely many floats, its *atoms*, which are equally likely.  A ``Number`` is a
function of such random numbers.  Where the truth of a comparison depends on the atom, the run branches.  The
probability of each branch is a count of atoms, found by bisection with torch's own arithmetic.  So the law is
that of the shipped code with its rounding, as a rational number.

A comparison of several numbers, such as a product of uniforms, is not decided by an interval.  Boxes enclose
its cases.  A box of the smallest size that is still undecided takes the answer of its corner, and the tape
records this: the probability of such runs bounds the error of the law.

Assumed: elementwise functions are monotone in each random number, as rounding is.  Two points inside every
cell are probed: they must have the answer of the ends of the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from spectheory.auditing.tape.decisions import JUDGE_BY_SAMPLES, Interval, NotEnumerableError, Tape


@dataclass(frozen=True)
class Grid:
    """The law of one random number: ``atoms`` equally likely cases.

    Attributes:
        name: in words.
        atoms: the number of atoms.
        wrapped: the first ``wrapped`` atoms have the value 0: numbers that were rounded up to 1.
        dtype: the type that the values are rounded to.
    """

    name: str
    atoms: int
    dtype: torch.dtype
    wrapped: int = 0

    def value(self, atom: int) -> float:
        """The value of an atom, nondecreasing in the atom."""
        exact = max(atom - self.wrapped, 0) / self.atoms
        return exact if not self.wrapped else torch.tensor(exact).to(self.dtype).item()


GRIDS = {
    torch.float64: Grid("multiples of 2^-53", 2**53, torch.float64),
    torch.float32: Grid("multiples of 2^-24", 2**24, torch.float32),
    # Half precision rounds a number of 24 bits and maps 1 to 0.
    torch.bfloat16: Grid("multiples of 2^-24 rounded to bfloat16, 1 to 0", 2**24, torch.bfloat16, 2**15),
    torch.float16: Grid("multiples of 2^-24 rounded to float16, 1 to 0", 2**24, torch.float16, 2**12),
}
"""``torch.rand`` on a CPU by dtype; Python's ``random.random`` has the grid of float64."""
PROBES = (0.382, 0.764)
"""Where a cell is probed, as shares of the cell."""
PLAIN_STEPS = 3
"""The first steps of a bisection never use the cut of an earlier run, to detect a function that changes."""


@dataclass(eq=False)
class Source(Interval):
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
        """Whether a decision depended on it."""
        return self.high - self.low < self.grid.atoms

    def likely_cut(self) -> tuple[int, ...]:
        """The atoms on both sides of the cut that an earlier run made here; none for a new decision.

        A run that is followed again repeats its decisions, so two probes replace most steps of the bisection.
        The next given decision may belong to a race or to another number.  The cut is then arbitrary and only
        costs probes.
        """
        given = self.tape.next_given
        if given is None:
            return ()
        cut = self.low + round(given.shares[0] * (self.high - self.low))
        return cut - 1, cut


@dataclass(frozen=True, eq=False)
class Number:
    """A function of random numbers, monotone in each: torch's own function, with its rounding."""

    sources: tuple[Source, ...]
    function: Callable[..., Any]

    @staticmethod
    def combined(name: str, entries: Sequence[Any], function: Callable[..., Any]) -> Number:
        """``function(*entries)``, where some entries are Numbers.

        Args:
            name: of the function, for the error.

        Raises:
            NotEnumerableError: a random number occurs in two entries.
        """
        sources = [source for entry in entries if isinstance(entry, Number) for source in entry.sources]
        if len({id(source) for source in sources}) < len(sources):
            raise NotEnumerableError(
                f"the sampler combines a random number with itself in {name}, which is not followed"
            )

        def combined(*values: Any) -> Any:
            left = iter(values)
            return function(
                *(
                    entry.function(*islice(left, len(entry.sources))) if isinstance(entry, Number) else entry
                    for entry in entries
                )
            )

        return Number(tuple(sources), combined)

    def mapped(self, function: Callable[[Any], Any]) -> Number:
        """``function`` of the number."""
        return Number(self.sources, lambda *values: function(self.function(*values)))

    @property
    def is_used(self) -> bool:
        """Whether a decision depended on one of the random numbers."""
        return any(source.is_used for source in self.sources)

    def at(self, atoms: Sequence[int]) -> Any:
        """The value at one atom of each source."""
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
        """Check that the answer inside a cell is that of its corners, as for a monotone function.

        Raises:
            NotEnumerableError: it is not.
        """
        for share in PROBES:
            inside = [low + int((high - low) * share) for low, high in ends]
            if bool(self.at(inside)) != answer:
                raise NotEnumerableError(
                    "the sampler compares a function of a random number that is not monotone, which is not "
                    f"followed; {JUDGE_BY_SAMPLES}"
                )

    def _halve(self) -> bool:
        """Branch at the middle of the source that was halved least; False if none can be halved again."""
        source = min(self.sources, key=lambda source: source.halvings)
        if source.halvings >= source.tape.box_bits // len(self.sources) or source.high - source.low < 2:
            return False
        source.halvings += 1
        source.is_below((source.low + source.high) // 2)
        return True


def uniform_number(tape: Tape, dtype: torch.dtype) -> Number:
    """A new number of ``torch.rand``.

    Raises:
        NotEnumerableError: the law in this dtype is not known.
    """
    if dtype not in GRIDS:
        raise NotEnumerableError(f"the law of uniform random numbers of {dtype} is not known")
    return Number((Source(tape, GRIDS[dtype]),), lambda value: value)

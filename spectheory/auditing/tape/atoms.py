"""The uniform random numbers of torch and Python, and comparisons that split them exactly.

``torch.rand`` returns one of finitely many floats, its *atoms*, which are equally likely.  A ``Number`` is a
function of such random numbers.  If the truth of a comparison depends on the atom, the run branches.  The
probability of each branch is a count of atoms, which we find by bisection with torch's own arithmetic.  So we
get the exact rational law of the shipped code, including its rounding.

An interval does not decide a comparison of several numbers, such as a product of uniforms.  We enclose its
cases in boxes.  If a box of the smallest size is still undecided, it takes the answer of its corner, and the
tape records this.  The probability of such runs bounds the error of the law.

``torch.randint`` of a long range returns integers with one atom each.

We assume that elementwise functions are monotone in each random number, as rounding is.  We check two points
inside every cell: they must have the answer of the ends of the cell.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from spectheory.auditing.tape.decisions import Interval, NotEnumerableError, Tape
from spectheory.auditing.tape.races import (
    Exponential,
    ExponentialDraw,
)


@contextmanager
def quietly() -> Iterator[None]:
    """Inside this context torch computes with memory as it is: no class and no mode replaces functions."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


@dataclass(frozen=True)
class Grid:
    """The law of one random number: ``atoms`` equally likely cases.

    Attributes:
        name: the law in words.
        atoms: the number of atoms.
        wrapped: the first ``wrapped`` atoms have the value 0, because they were rounded up to 1 and wrapped.
        dtype: the dtype to which the values are rounded.
    """

    name: str
    atoms: int
    dtype: torch.dtype
    wrapped: int = 0

    def value(self, atom: int) -> float:
        """The value of an atom, nondecreasing in the atom."""
        exact = max(atom - self.wrapped, 0) / self.atoms
        return exact if not self.wrapped else torch.tensor(exact).to(self.dtype).item()


@dataclass(frozen=True)
class WholeNumbers(Grid):
    """Equally likely integers low, low + 1, ..

    Attributes:
        low: the first integer.
    """

    low: int = 0

    def value(self, atom: int) -> int:
        return self.low + atom


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
MAX_CASES = 4_096
"""The most values of a whole number, such as ``int(u * n)``, that a run branches on."""
UNIFORM, MINUS_UNIFORM = "uniform", "minus uniform"
"""The forms of a number."""


@dataclass(eq=False)
class Source(Interval):
    """One random number, of which the atoms low..high-1 of a grid are still possible."""

    tape: Tape
    grid: Grid
    low: int = 0
    high: int = field(default=0)
    halvings: int = 0
    logarithm: Exponential | None = None
    of_complement: bool = False

    def __post_init__(self) -> None:
        self.high = self.grid.atoms

    @property
    def is_narrowed(self) -> bool:
        """Whether an earlier comparison depended on this number."""
        return self.high - self.low < self.grid.atoms

    @property
    def is_spent(self) -> bool:
        """Whether a race has conditioned the number, so that it is no longer uniform on its atoms."""
        return self.logarithm is not None and self.logarithm.is_used and not self.is_narrowed

    @property
    def is_used(self) -> bool:
        return self.is_narrowed or self.is_spent

    def is_below(self, cut: int) -> bool:
        below = super().is_below(cut)
        if self.logarithm is not None:
            self.logarithm.is_used = True
        return below

    def value_at(self, cut: int) -> float:
        return float(self.grid.value(cut))

    def minus_logarithm(self, of_complement: bool = False) -> Exponential:
        """The exponential random number -log u of a uniform number u, or -log(1 - u), but not both."""
        if self.logarithm is None:
            self.logarithm, self.of_complement = Exponential(self.tape, self.is_narrowed), of_complement
        if self.of_complement is not of_complement:
            raise NotEnumerableError(
                "the sampler uses the logarithms of a random number u and of 1 - u, which depend on each "
                "other; draw another number"
            )
        return self.logarithm

    def likely_cut(self) -> tuple[int, ...]:
        """The atoms on both sides of the cut that an earlier run made here.  Empty for a new decision.

        A repeated run makes the same decisions, so two probes replace most steps of the bisection.  The next
        given decision may belong to a race or to another number.  Then the cut is arbitrary, and only costs
        probes.
        """
        given = self.tape.next_given
        if given is None:
            return ()
        cut = self.low + round(given.shares[0] * (self.high - self.low))
        return cut - 1, cut


@dataclass(frozen=True, eq=False)
class Number:
    """A function of random numbers, monotone in each.  It is torch's own function, with its rounding.

    Attributes:
        sources: the random numbers.
        function: the function of their values.
        form: UNIFORM or MINUS_UNIFORM if the result is such a number, up to a shift (``logarithms``).
        is_complement: whether that uniform number is 1 - u, for the random number u.
        clock: if the result is a function of log u, builds it as a clock from the exponential number -log u.
    """

    sources: tuple[Source, ...]
    function: Callable[..., Any]
    form: str = ""
    is_complement: bool = False
    clock: Callable[[], ExponentialDraw] | None = None

    @staticmethod
    def combined(name: str, entries: Sequence[Any], function: Callable[..., Any]) -> Number:
        """Build ``function(*entries)``.  Some entries are Numbers."""
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
        return Number(self.sources, lambda *values: function(self.function(*values)))

    def minus_logarithm(self) -> ExponentialDraw:
        """The logarithm of a uniform number as a clock: minus an exponential number."""
        return ExponentialDraw(self.sources[0].minus_logarithm(self.is_complement), negative=True)

    def value(self) -> int:
        """The value of an integer function.  The run branches on it."""
        if len(self.sources) > 1:
            raise NotEnumerableError("the sampler uses a whole number that several random numbers make")
        while True:
            with quietly():
                low, high = sorted(
                    int(self.at([atom])) for atom in (self.sources[0].low, self.sources[0].high - 1)
                )
            if low == high:
                return low
            if high - low >= MAX_CASES:
                raise NotEnumerableError(
                    f"the sampler uses a random whole number of up to {high - low + 1} values other than in "
                    f"a comparison, which is followed up to {MAX_CASES} values"
                )
            middle = (low + high + 1) // 2
            self.mapped(partial(operator.le, middle)).decide()

    @property
    def is_used(self) -> bool:
        return any(source.is_used for source in self.sources)

    def at(self, atoms: Sequence[int]) -> Any:
        return self.function(*(s.grid.value(atom) for s, atom in zip(self.sources, atoms, strict=True)))

    def ends(self) -> list[float]:
        """The values of the function at all corners, where each source is at its lowest or highest atom."""
        with quietly():
            corners = product(*((source.low, source.high - 1) for source in self.sources))
            return [float(self.at(corner)) for corner in corners]

    def decide(self) -> bool:
        """The truth of a comparison.  If it depends on the atoms, the run branches."""
        if any(source.is_spent for source in self.sources):
            raise NotEnumerableError(
                "the sampler compares a random number that has decided a race, which is not followed"
            )
        with quietly():
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
        likely = source.likely_cut()
        while high - low > 1:
            middle = next((atom for atom in likely if low < atom < high), (low + high) // 2)
            low, high = (middle, high) if bool(self.at([middle])) == at_low else (low, middle)
        self._probe([(source.low, low)], at_low)
        self._probe([(high, source.high - 1)], not at_low)
        return at_low if source.is_below(high) else not at_low

    def _probe(self, ends: Sequence[tuple[int, int]], answer: bool) -> None:
        """Check that a cell has the same answer inside as at its corners, as for a monotone function."""
        for share in PROBES:
            inside = [low + int((high - low) * share) for low, high in ends]
            if bool(self.at(inside)) != answer:
                raise NotEnumerableError(
                    "the sampler compares a function of a random number that is not monotone, which is not "
                    "followed"
                )

    def _halve(self) -> bool:
        """Branch at the middle of the source that was halved least.  False if none can be halved again."""
        source = min(self.sources, key=lambda source: source.halvings)
        if source.halvings >= source.tape.box_bits // len(self.sources) or source.high - source.low < 2:
            return False
        source.halvings += 1
        source.is_below((source.low + source.high) // 2)
        return True


def uniform_number(tape: Tape, dtype: torch.dtype) -> Number:
    """Make a new random number with the law of ``torch.rand``."""
    if dtype not in GRIDS:
        raise NotEnumerableError(f"the law of uniform random numbers of {dtype} is not known")
    form = UNIFORM if dtype in (torch.float32, torch.float64) else ""
    return Number((Source(tape, GRIDS[dtype]),), lambda value: value, form)


def whole_number(tape: Tape, low: int, beyond: int) -> Number:
    """Make a new random integer in low..beyond-1, all equally likely.

    Example:
        >>> from spectheory.auditing.tape.decisions import all_runs
        >>> runs = all_runs(lambda tape: whole_number(tape, 0, 10**12).mapped(lambda n: n < 10).decide())
        >>> [(str(probability), result) for probability, result in runs]
        [('1/100000000000', True), ('99999999999/100000000000', False)]
    """
    grid = WholeNumbers(f"whole numbers of {low}..{beyond - 1}", beyond - low, torch.int64, low=low)
    return Number((Source(tape, grid),), lambda value: value)

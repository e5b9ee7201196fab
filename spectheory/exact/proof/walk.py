"""The walk: sums over the tuples of drafts, shown to be one function on all regions, context by context.

A sum over tuples has a term for every tuple: its probability times a number of the verifier.  With the rows
at some contexts S known, a tuple that depends on no other row is evaluated.  The other tuples fall into
components that share no row outside of S.  A component enters its shallowest row and walks the regions of
that row.  If its sum is the same function of the rows in S on all of them, the component is eliminated.
Regions of siblings then add up, and do not multiply.  A sign that depends on S alone splits the level of S.
Where the sum does depend on that row, the row is entered one level higher, as all rows are in a walk that
eliminates none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import process_time
from typing import Any, NamedTuple

from spectheory.exact.proof.draft_tuples import Paths
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.numbers import ZERO, Function
from spectheory.exact.proof.oracle import Oracle
from spectheory.exact.proof.region import DividesByZeroError, EmptyRegionError, Region, SplitError
from spectheory.exact.proof.runs import FailedRunError, Leaf, Rows, Runs, Vector
from spectheory.pairs.contexts import Context

Item = tuple[int, Paths]
"""The number of a part of a sum, and a tuple."""
EFFORTS = 1, 2, 3
"""Linear lemmas, lemmas with products of two entries, and with more."""
Totals = dict[Any, Function]
"""Of every key the sum over the tuples; 0 for keys that are missing."""


class OutOfTimeError(Exception):
    """The time limit is over."""


class NeedRowError(Exception):
    """A value depends on the row that should be eliminated."""


class WrongError(Exception):
    """A condition fails on a region that is not known to be empty."""

    def __init__(self, region: Region, functions: Sequence[Function], wrong: str) -> None:
        super().__init__(wrong)
        self.region, self.functions, self.wrong = region, functions, wrong


class Condition(NamedTuple):
    """One of the functions must have a sign in ``mask``; ``wrong`` says what is wrong where none has."""

    functions: Sequence[Function]
    mask: int
    wrong: str


Finish = Callable[[Region, Totals], Iterator[Condition]]
"""What the totals must satisfy on a region, where all rows are entered or eliminated."""


@dataclass(frozen=True)
class Sum:
    """A sum over the tuples of drafts of one verifier or more.

    Attributes:
        parts: the runs of each verifier, and the numbers of a tuple.
        items: the place in ``parts`` and the tuple.
        weighted: by the probabilities of the tuples.
    """

    parts: tuple[tuple[Runs, Vector], ...]
    items: tuple[Item, ...]
    weighted: bool = True

    @staticmethod
    def of(*parts: tuple[Runs, Vector]) -> Sum:
        """The sum over all tuples."""
        items = [(number, paths) for number, (runs, _) in enumerate(parts) for paths in runs.drafts.tuples]
        return Sum(parts, tuple(items))


class Walk:
    """A walk through all pairs of a shape.

    Args:
        oracle: says which parts are empty.
        deadline: seconds of the processor.

    Attributes:
        num_regions: on which a sum was evaluated.
        domain, graph: of all runs.
        runs: of the subjects of a statement.
        on_leaf, on_region: called with every leaf on a region, and with every region whose conditions hold.
    """

    def __init__(self, oracle: Oracle, deadline: float = inf) -> None:
        self.domain, self.graph, self.oracle, self._deadline = oracle.domain, Graph(), oracle, deadline
        self.num_regions, self.runs = 0, list[Runs]()
        self.on_leaf: Callable[[Runs, Leaf, Region], None] = lambda runs, leaf, region: None
        self.on_region: Callable[[Region], None] = lambda region: None
        self._needed: set[tuple[Rows, Context]] = set()
        """Where a row cannot be eliminated: the rows that are entered, and the row."""

    def check_time(self) -> None:
        """Raise ``OutOfTimeError`` after the deadline."""
        if process_time() > self._deadline:
            raise OutOfTimeError

    def require(self, region: Region, condition: Condition) -> None:
        """Decide a condition on a region.

        Raises:
            SplitError: a sign is open.
            EmptyRegionError: the region is empty.
            WrongError: it fails.
        """
        functions, mask, wrong = condition
        if self._is_known(region, functions, mask):
            return
        if mask != ZERO:  # an equality is an identity, or it fails
            for function in functions:
                if region.possible_signs(function) & mask and region.has_sign(function, mask):
                    return
        if self._fails(region, lambda: self._is_known(region, functions, mask), last=True):
            raise WrongError(region, functions, wrong)

    @staticmethod
    def _is_known(region: Region, functions: Sequence[Function], mask: int) -> bool:
        return any(not region.possible_signs(function) & ~mask for function in functions)

    def _fails(self, region: Region, holds: Callable[[], bool], *, last: bool) -> bool:
        """Whether a condition fails that does not hold by what is known of a region.

        Raises:
            EmptyRegionError: the region is empty.
        """
        for effort in EFFORTS if last else EFFORTS[:1]:
            if self.oracle.derive(region, effort) and holds():
                return False
        if self.oracle.is_empty(region, last=last):
            raise EmptyRegionError
        return True

    def each(
        self,
        parts: Sequence[Region],
        decide: Callable[[Region], Sequence[Region]],
        kept: Rows = frozenset(),
    ) -> None:
        """Decide on some regions, depth first, which are split where a sign is open.

        Args:
            parts: the regions.
            decide: decides on a region, or returns regions that cover it, to go on with.
            kept: a sign that depends on these rows alone is asked for further up.

        Raises:
            SplitError: such a sign is open.
            WrongError: a condition fails.
        """
        waiting = [*reversed(parts)]
        while waiting:
            self.check_time()
            region = waiting.pop()
            try:
                more = decide(region)
            except EmptyRegionError:
                continue
            except (DividesByZeroError, FailedRunError) as error:
                if self.oracle.is_empty(region, last=True):
                    continue
                if isinstance(error, FailedRunError):
                    raise
                raise WrongError(region, (), "the verifier divides by zero") from error
            except SplitError as split:
                if kept and split.factor.rows <= kept:
                    raise
                more = self.oracle.parts(region, split)
            waiting += reversed(more)

    def walk(
        self, total: Sum, finish: Finish, contexts: Sequence[Context] = (), *, eliminates: bool = False
    ) -> None:
        """Walk the regions of the rows that a sum depends on, and decide conditions on it.

        Args:
            total, finish, contexts: the sum, its conditions, and the contexts of other rows to be entered.
            eliminates: whether rows are eliminated where that is possible.
        """

        def decide(region: Region) -> Sequence[Region]:
            totals = self._totals(total, region, eliminates)
            if not isinstance(totals, dict):
                return self.oracle.entered(region, totals)
            if missing := {*contexts} - region.supports.keys():
                return self.oracle.entered(region, _first(missing))
            for condition in finish(region, totals):
                self.require(region, condition)
            self.num_regions += 1
            self.on_region(region)
            return ()

        self.each(self.oracle.entered(self.oracle.start(), ()), decide)

    def _totals(self, total: Sum, region: Region, eliminates: bool) -> Totals | Context:
        """The sum as a function of the rows that are entered, or a row that must be entered, too."""
        field = self.domain.field
        totals, left = self._evaluated(total, region)
        for rows, items in _components(left):
            first = _first(rows)
            place = frozenset(region.supports), first
            if not eliminates or place in self._needed:
                return first
            try:
                found = self._eliminated(replace(total, items=tuple(items)), region, first)
            except NeedRowError:
                self._needed.add(place)
                return first
            for key, function in found.items():
                totals[key] = field.add(totals.get(key, field.zero), function)
        return {key: function for key, function in totals.items() if function is not field.zero}

    def _eliminated(self, total: Sum, region: Region, first: Context) -> Totals:
        """The totals as functions of the rows of a region, the same on all values of one row more.

        Raises:
            NeedRowError: they depend on that row.
        """
        rows = frozenset(region.supports)
        reference, later = list[Totals](), list[tuple[Region, Totals]]()

        def decide(here: Region) -> Sequence[Region]:
            totals = self._totals(total, here, True)
            if not isinstance(totals, dict):
                return self.oracle.entered(here, totals)
            self.num_regions += 1
            if reference:
                self._compare(here, totals, reference[0])
            elif not here.equalities and self._is_of(totals, rows):
                reference.append(totals)  # on a region of full dimension, where equal functions are one
            else:
                later.append((here, totals))
            return ()

        self.each(self.oracle.entered(region, first), decide, rows)
        if later and not reference:
            reference += [totals for _, totals in later if self._is_of(totals, rows)][:1]
            if not reference:
                raise NeedRowError
        for here, totals in later:
            self._compare(here, totals, reference[0])
        return reference[0] if reference else {}

    def _is_of(self, totals: Totals, rows: Rows) -> bool:
        return all(self.domain.field.rows(function) <= rows for function in totals.values())

    def _compare(self, region: Region, totals: Totals, reference: Totals) -> None:
        """Refuse a region with other totals."""
        field = self.domain.field
        differences = [
            field.subtract(totals.get(key, field.zero), reference.get(key, field.zero))
            for key in dict.fromkeys([*totals, *reference])
        ]

        def holds() -> bool:
            return all(region.possible_signs(difference) == ZERO for difference in differences)

        try:
            if not holds() and self._fails(region, holds, last=False):
                raise NeedRowError
        except EmptyRegionError:
            return

    def _evaluated(self, total: Sum, region: Region) -> tuple[Totals, list[tuple[Rows, Item]]]:
        """The sums over the tuples that depend on known rows alone; the other tuples, with their rows."""
        field, totals, left, supports = (
            self.domain.field,
            Totals(),
            list[tuple[Rows, Item]](),
            region.supports,
        )
        for number, paths in total.items:
            runs, vector = total.parts[number]
            draws = runs.drafts.draws_of(self.graph, paths)
            if any(token not in supports.get(context, (token,)) for context, token, _ in draws):
                continue  # it cannot be drafted
            leaf, nodes = runs.leaf(paths, region), dict[Any, Node]()
            if isinstance(leaf, frozenset):
                needed = leaf | {path[:depth] for path in paths for depth in range(len(path) + 1)}
            else:
                self.on_leaf(runs, leaf, region)
                nodes = vector(leaf)
                draws = draws if nodes and total.weighted else []
                drawn = {context for context, _, _ in draws}
                needed = frozenset(drawn).union(*(node.rows for node in nodes.values()))
            if not needed <= supports.keys():
                left.append((needed - supports.keys(), (number, paths)))
                continue
            weight = field.product(region.value(prob) for _, _, prob in draws)
            for key, node in nodes.items():
                term = field.multiply(weight, region.value(node))
                totals[key] = field.add(totals.get(key, field.zero), term)
        return totals, left


def _first(rows: Iterable[Context]) -> Context:
    """The shallowest row."""
    return min(rows, key=lambda context: (len(context), context))


def _components(left: Sequence[tuple[Rows, Item]]) -> list[tuple[Rows, list[Item]]]:
    """Items in groups that share no row."""
    groups: list[tuple[Rows, list[Item]]] = []
    for rows, item in left:
        items, apart = [item], []
        for more, others in groups:
            if more & rows:
                rows, items = rows | more, items + others
            else:
                apart.append((more, others))
        groups = [*apart, (rows, items)]
    return groups

"""The walk: sums over the tuples of drafts, shown to be one function on all regions, context by context.

A sum over tuples has a term for every tuple: its probability times a number of the verifier.  With the rows
at some contexts S known, a tuple that depends on no other row is evaluated.  The other tuples fall into
components that share no row outside of S.  A component enters its shallowest row and walks the regions of
that row.  If its sum is the same function of the rows in S on all of them, the component is eliminated.
Regions of siblings then add up, and do not multiply.  A sign that depends on S alone splits the level of S.
Where the sum does depend on an entered row, the component enters that row together with the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import process_time
from typing import Any, NamedTuple

from spectheory.exact.proof.domain import Domain
from spectheory.exact.proof.draft_tuples import Draw, Paths
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.numbers import ZERO, Function
from spectheory.exact.proof.oracle import Oracle
from spectheory.exact.proof.region import (
    DividesByZeroError,
    EmptyRegionError,
    Region,
    SplitError,
)
from spectheory.exact.proof.runs import Leaf, Rows, Runs, Vector
from spectheory.pairs.contexts import Context

EFFORTS = range(3)
"""Linear lemmas, lemmas with products of entries, and with all products."""
Totals = dict[Any, Function]
"""Of every key the sum over the tuples; 0 for keys that are missing."""


class OutOfTimeError(Exception):
    """The time limit is over."""


class NeedRowError(Exception):
    """A value depends on rows that should be eliminated."""

    def __init__(self, rows: frozenset[Context]) -> None:
        super().__init__(rows)
        self.rows = rows


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
    items: tuple[tuple[int, Paths], ...]
    weighted: bool = True

    @staticmethod
    def of(*parts: tuple[Runs, Vector]) -> Sum:
        """The sum over all tuples."""
        items = [(number, paths) for number, (runs, _) in enumerate(parts) for paths in runs.drafts.tuples]
        return Sum(parts, tuple(items))

    def through(self, contexts: Sequence[Context]) -> Sum:
        """The sum over the tuples of which some path goes through one of the contexts."""
        some = [
            item
            for item in self.items
            if any(path[: len(context)] == context for path in item[1] for context in contexts)
        ]
        return replace(self, items=tuple(some))


class Walk:
    """A walk through all pairs of a shape.

    Attributes:
        num_regions: on which a sum was evaluated.
        domain, graph, oracle: of all runs.
    """

    def __init__(self, domain: Domain, graph: Graph, oracle: Oracle, deadline: float) -> None:
        self.domain, self.graph, self.oracle, self._deadline = domain, graph, oracle, deadline
        self.num_regions = 0
        self.on_leaf: Callable[[Runs, Leaf, Region], None] = lambda runs, leaf, region: None
        self.on_region: Callable[[Region], None] = lambda region: None
        self._joined: dict[tuple[Rows, tuple[Context, ...]], tuple[Context, ...]] = {}
        self._draws: dict[tuple[int, Paths], list[Draw]] = {}

    def require(self, region: Region, condition: Condition, *, last: bool = True) -> None:
        """Decide a condition on a region.

        Args:
            region, condition: where a condition must hold.
            last: whether nothing else is tried where it fails.

        Raises:
            SplitError: a sign is open.
            EmptyRegionError: the region is empty.
            WrongError: it fails.
        """
        functions, mask, wrong = condition
        if self._is_known(region, functions, mask):
            return
        if mask != ZERO:  # an equality is an identity, or it fails
            first = self.oracle.choose(region, functions) if len(functions) > 1 else 0
            for function in (functions[first], *functions):
                if region.possible_signs(function) & mask and region.has_sign(function, mask):
                    return
        if self._fails(region, lambda: self._is_known(region, functions, mask), last=last):
            raise WrongError(region, functions, wrong)

    @staticmethod
    def _is_known(region: Region, functions: Sequence[Function], mask: int) -> bool:
        if any(not region.possible_signs(function) & ~mask for function in functions):
            return True
        return bool(mask & ZERO) and any(region.vanishes(function) for function in functions)

    def _fails(self, region: Region, holds: Callable[[], bool], *, last: bool) -> bool:
        """Whether a condition fails that does not hold by what is known of a region.

        Raises:
            EmptyRegionError: the region is empty.
        """
        for effort in EFFORTS if last else EFFORTS[:1]:
            found = self.oracle.derive(region, effort)
            if found < 0:
                raise EmptyRegionError
            if found and holds():
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
        """Decide on some regions, which are split where a sign is open.

        Depth first, and the doubtful ones after all others.  By then more lemmas are known, and few of them
        cover most doubtful regions.

        Args:
            parts: the regions.
            decide: decides on a region, or returns regions that cover it, to go on with.
            kept: a sign that depends on these rows alone is asked for further up.

        Raises:
            SplitError: such a sign is open.
            WrongError: a condition fails.
        """
        others, doubtful = [*reversed(parts)], list[Region]()
        while others or doubtful:
            if process_time() > self._deadline:
                raise OutOfTimeError
            region = (others or doubtful).pop()
            if region.is_doubtful and self.oracle.is_empty(region):
                continue
            region.is_doubtful = False
            try:
                more = decide(region)
            except EmptyRegionError:
                continue
            except DividesByZeroError:
                raise WrongError(region, (), "the verifier divides by zero") from None
            except SplitError as split:
                if kept and split.factor.rows <= kept:
                    raise
                more = self.oracle.parts(region, split)
            for part in reversed(more):
                (doubtful if part.is_doubtful else others).append(part)

    def jointly(self, total: Sum, finish: Finish, contexts: Sequence[Context] = ()) -> None:
        """Walk regions of all rows that a sum needs, and of ``contexts``, and decide conditions on it."""

        def decide(region: Region) -> Sequence[Region]:
            rows = frozenset(region.supports)
            totals, left = self._evaluated(total, rows, region)
            needed = {context for more, _ in left for context in more} or {*contexts} - rows
            if needed:
                first = min(needed, key=lambda context: (len(context), context))
                return self.oracle.entered(region, first)
            for condition in finish(region, totals):
                self.require(region, condition)
            self.num_regions += 1
            self.on_region(region)
            return ()

        self.each([self.oracle.start()], decide)

    def eliminate(self, total: Sum, finish: Finish) -> None:
        """Decide conditions on a sum of which the rows below the root are eliminated."""
        start = self.oracle.start()
        self._explore(total, frozenset(), start, ((),), finish)

    def _explore(
        self,
        total: Sum,
        rows: Rows,
        region: Region,
        entered: tuple[Context, ...],
        finish: Finish | None = None,
    ) -> Totals:
        """The totals as functions of ``rows``, the same on all values of the rows that are entered."""
        while True:
            now = self._joined.get((rows, entered), entered)
            try:
                return self._explore_with(total, rows, region, now, finish)
            except NeedRowError as error:
                if error.rows == set(now):
                    raise
                together = sorted({*now, *error.rows}, key=lambda context: (len(context), context))
                self._joined[rows, entered] = tuple(together)

    def _explore_with(
        self, total: Sum, rows: Rows, region: Region, entered: tuple[Context, ...], finish: Finish | None
    ) -> Totals:
        parts = [region]
        for context in entered:
            parts = [part for one in parts for part in self.oracle.entered(one, context)]
        inside, reference = rows | {*entered}, list[Totals]()
        later: list[tuple[Region, Totals]] = []

        def decide(here: Region) -> Sequence[Region]:
            totals = self._total(total, inside, here)
            for condition in () if finish is None else finish(here, totals):
                self.require(here, condition)
            self.num_regions += 1
            if finish is not None:
                self.on_region(here)
            elif reference:
                self._compare(here, totals, reference[0], entered)
            elif self.oracle.may_be_reference(here) and not here.equalities and self._is_of(totals, rows):
                reference.append(totals)  # on a region of full dimension, where equal functions are one
            else:
                later.append((here, totals))
            return ()

        self.each(parts, decide, rows)
        if later and not reference:
            reference += [totals for _, totals in later if self._is_of(totals, rows)][:1]
            if not reference:
                raise NeedRowError(frozenset(entered))
        for here, totals in later:
            self._compare(here, totals, reference[0], entered)
        return reference[0] if reference else {}

    def _is_of(self, totals: Totals, rows: Rows) -> bool:
        return all(self.domain.field.rows(function) <= rows for function in totals.values())

    def _compare(
        self, region: Region, totals: Totals, reference: Totals, entered: tuple[Context, ...]
    ) -> None:
        """Refuse a region with other totals."""
        field = self.domain.field
        keys = dict.fromkeys([*totals, *reference])
        differences = [
            field.subtract(totals.get(key, field.zero), reference.get(key, field.zero)) for key in keys
        ]

        def holds() -> bool:
            return all(region.vanishes(difference) for difference in differences)

        try:
            if not holds() and self._fails(region, holds, last=False):
                raise NeedRowError(frozenset(entered))
        except EmptyRegionError:
            return

    def _total(self, total: Sum, rows: Rows, region: Region) -> Totals:
        """The totals with the rows outside of ``rows`` eliminated."""
        field = self.domain.field
        totals, left = self._evaluated(total, rows, region)
        for more, items in _components(left):
            first = min(more, key=lambda context: (len(context), context))
            some = tuple(
                item
                for item in total.items
                if any(
                    item[0] == number
                    and all(path[: len(start)] == start for path, start in zip(item[1], starts, strict=True))
                    for number, starts in items
                )
            )
            found = self._explore(replace(total, items=some), rows, region, (first,))
            for key, function in found.items():
                totals[key] = field.add(totals.get(key, field.zero), function)
        return {key: function for key, function in totals.items() if function is not field.zero}

    def _evaluated(
        self, total: Sum, rows: Rows, region: Region
    ) -> tuple[Totals, list[tuple[Rows, tuple[int, Paths]]]]:
        """The sums over the tuples that depend on known rows alone; the other tuples, with their rows."""
        field, vectors = self.domain.field, dict[tuple[int, Paths], dict[Any, Node]]()
        left: list[tuple[Rows, tuple[int, Paths]]] = []
        for item in total.items:
            if self._cannot_be_drafted(total, item, region):
                continue
            leaf = total.parts[item[0]][0].leaf(item[1], region, rows)
            if isinstance(leaf, frozenset):
                contexts = {path[:depth] for path in item[1] for depth in range(len(path) + 1)}
                left.append(((leaf | contexts) - rows, item))
                continue
            self.on_leaf(total.parts[item[0]][0], leaf, region)
            vectors[item] = total.parts[item[0]][1](leaf)
        totals: Totals = {}
        for item, vector in self._merged(total, vectors, region).items():
            draws = self._draws_of(total, item) if vector and total.weighted else []
            needed = frozenset({context for context, _, _ in draws}).union(*(n.rows for n in vector.values()))
            if not needed <= rows:
                left.append((needed - rows, item))
                continue
            weight = field.product(region.value(prob) for _, _, prob in draws)
            for key, node in vector.items():
                term = field.multiply(weight, region.value(node))
                totals[key] = field.add(totals.get(key, field.zero), term)
        return totals, left

    def _draws_of(self, total: Sum, item: tuple[int, Paths]) -> list[Draw]:
        key = id(total.parts[item[0]][0].drafts), item[1]
        if key not in self._draws:
            self._draws[key] = total.parts[item[0]][0].drafts.draws_of(self.graph, item[1])
        return self._draws[key]

    def _cannot_be_drafted(self, total: Sum, item: tuple[int, Paths], region: Region) -> bool:
        supports = region.supports
        return any(
            token not in supports[context]
            for context, token, _ in self._draws_of(total, item)
            if context in supports
        )

    def _merged(
        self, total: Sum, vectors: dict[tuple[int, Paths], dict[Any, Node]], region: Region
    ) -> dict[tuple[int, Paths], dict[Any, Node]]:
        """Make one term of i.i.d. tuples that differ in the last token of one path and have equal numbers."""
        if (
            len(total.parts) > 1
            or not total.parts[0][0].drafts.are_independent
            or self.domain.draft_length == 1
        ):
            return vectors
        drafts, merged = total.parts[0][0].drafts.num_drafts, dict(vectors)
        for k, depth in product(range(drafts), range(self.domain.draft_length, 0, -1)):
            groups: dict[Paths, list[tuple[int, Paths]]] = {}
            for item in merged:
                paths = item[1]
                if len(paths[k]) == depth:
                    groups.setdefault((*paths[:k], paths[k][:-1], *paths[k + 1 :]), []).append(item)
            for shorter, items in groups.items():
                support = region.supports.get(shorter[k], range(self.domain.vocab_size))
                first = merged[items[0]]
                if len(items) == len(support) and all(merged[item] == first for item in items):
                    for item in items:
                        del merged[item]
                    merged[0, shorter] = first
        return merged


def _components(
    left: Sequence[tuple[Rows, tuple[int, Paths]]],
) -> list[tuple[Rows, list[tuple[int, Paths]]]]:
    """Items in groups that share no row."""
    groups: list[tuple[Rows, list[tuple[int, Paths]]]] = []
    for rows, item in left:
        items, apart = [item], []
        for more, others in groups:
            if more & rows:
                rows, items = rows | more, items + others
            else:
                apart.append((more, others))
        groups = [*apart, (rows, items)]
    return groups

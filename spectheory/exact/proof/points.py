"""Pairs with simple rational rows: they show that a region is not empty, and may be wrong pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from flint import fmpq

from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.rational_functions import POSITIVE, Factor, sign_mask
from spectheory.pairs.contexts import Context

Known = Mapping[Factor, int]
"""What is known of the signs of factors on a region."""


class Point:
    """Values of the variables, with the signs of the factors that were asked for.

    Args:
        values: of the variables of rows.
        value_of: of variables behind them, which depend on the others.
        free: values of such variables that are taken as independent.
    """

    def __init__(
        self,
        values: list[fmpq],
        value_of: Callable[[Point, int], fmpq] | None = None,
        free: Mapping[int, fmpq] | None = None,
    ) -> None:
        self.values, self._value_of = values, value_of
        self.free = free or {}
        self._more = {**self.free}
        self._signs: dict[Factor, int] = {}

    def __getitem__(self, variable: int) -> fmpq:
        if variable < len(self.values) or self._value_of is None:
            return self.values[variable]
        if variable not in self._more:
            self._more[variable] = self._value_of(self, variable)
        return self._more[variable]

    def sign(self, factor: Factor) -> int:
        """The sign as a mask."""
        found = self._signs.get(factor)
        if found is None:
            found = self._signs[factor] = sign_mask(factor.at(self))
        return found

    def is_in(self, known: Iterable[tuple[Factor, int]]) -> bool:
        """Whether every factor has one of the signs."""
        return all(self.sign(factor) & mask for factor, mask in known)

    @property
    def size(self) -> int:
        """How long its numbers are: the sum of the denominators."""
        return sum(int(value.q) for value in self.values)


def random_point(pair: FormalPair, random: Random, base: Point | None = None, contexts: Any = None) -> Point:
    """Random simple rows, with zeros and with p = q now and then.

    Args:
        pair: the face.
        random: the generator.
        base, contexts: of this point only the rows of these contexts are changed.
    """
    target, draft = {}, {}
    for context in pair.contexts if contexts is None else contexts:
        parts = random.choice((1, 2, 2, 3, 4, 5, 6, 8, 12, 30, 100))
        row = None
        if context in pair.supports:
            support = pair.supports[context]
            positive = pair.draft_sign == POSITIVE and context in pair.face
            parts_of_row = max(parts, len(support)) if positive else parts
            row = _row(pair.vocab_size, support, parts_of_row, random, positive)
            draft[context] = row
        if row is not None and random.random() < 0.2 and (not pair.shape.positive or all(row)):
            target[context] = row
        else:
            size = pair.vocab_size
            smallest = size if pair.shape.positive else 1
            target[context] = _row(size, range(size), max(parts, smallest), random, pair.shape.positive)
    values = pair.point_of(target, draft)
    free: dict[int, fmpq] = {}
    if base is not None:
        changed = pair.variables_of(contexts)
        values = [
            new if i in changed else old for i, (new, old) in enumerate(zip(values, base.values, strict=True))
        ]
        free = {i: value for i, value in base.free.items() if i not in changed}
    return Point(values, pair.value_of, free)


def uniform_point(pair: FormalPair, random: Random) -> Point:
    """Rows that are uniform on their simplices, as far as denominators of a million show."""
    target: dict[Context, list[fmpq]] = {}
    draft: dict[Context, list[fmpq]] = {}
    for context in pair.contexts:
        for rows in (target, draft) if context in pair.supports else (target,):
            cuts = sorted(random.randint(0, 10**6) for _ in range(pair.vocab_size - 1))
            edges = zip([0, *cuts], [*cuts, 10**6], strict=True)
            rows[context] = [fmpq(upper - lower, 10**6) for lower, upper in edges]
    return Point(pair.point_of(target, draft), pair.value_of)


def _row(size: int, support: Iterable[int], parts: int, random: Random, positive: bool) -> list[fmpq]:
    """A composition of ``parts`` among the support, divided by it."""
    tokens = list(support)
    counts = dict.fromkeys(range(size), 0)
    for token in tokens if positive else ():
        counts[token] = 1
    favourites = [random.choice(tokens) for _ in range(random.randint(1, 3))]
    for _ in range(parts - sum(counts.values())):
        counts[random.choice(favourites if random.random() < 0.6 else tokens)] += 1
    return [fmpq(count, parts) for count in counts.values()]

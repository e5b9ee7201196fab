"""All pairs of a shape: the variables, the supports of the draft rows, and points.

The last entry of a target row is 1 minus the others.  So is the last positive entry of a draft row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
from flint import fmpq

from spectheory.exact.proof.numbers import (
    AT_LEAST_ZERO,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    Field,
    Function,
    Point,
    sign_of,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context, all_contexts
from spectheory.pairs.pair import ModelPair

MAX_NUMBERS = 128
Support = tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """The pairs that are spoken of.

    Attributes:
        vocab_size, draft_length: V and L.
        positive: only pairs whose rows have no zero.
    """

    vocab_size: int
    draft_length: int
    positive: bool = False

    @property
    def domain(self) -> str:
        """Which rows occur."""
        return "positive rows" if self.positive else "all rows"

    def __post_init__(self) -> None:
        """Refuse a shape of more variables than any search gets through."""
        size, contexts = self.vocab_size, 0
        for depth in range(min(self.draft_length, MAX_NUMBERS)):
            contexts = min(contexts + min(size, MAX_NUMBERS) ** depth, MAX_NUMBERS)
        numbers = size * size * contexts + size - 1  # (V-1)(C + V^L) + V C, with (V-1) C = V^L - 1
        if numbers > MAX_NUMBERS:
            raise InvalidInputError(
                f"a proof for {size} tokens and draft length {self.draft_length} has more than "
                f"{MAX_NUMBERS} formal numbers; take fewer tokens or a shorter draft"
            )


class Domain:
    """The pairs of a shape.

    Args:
        shape: the pairs.
        least: at every depth, the fewest tokens that a draft row has; 1 by default.

    Attributes:
        contexts: those with rows, up to depth L.
        field: the rational functions of the entries.
        p, q: (context, token) -> number of the variable.
    """

    def __init__(self, shape: Shape, least: Sequence[int] = ()) -> None:
        self.shape, self._least = shape, least
        self.vocab_size, self.draft_length = shape.vocab_size, shape.draft_length
        self.contexts = all_contexts(self.vocab_size, self.draft_length)
        names: list[str] = []
        row_of: list[Context] = []
        self.p: dict[tuple[Context, int], int] = {}
        self.q: dict[tuple[Context, int], int] = {}
        for context in self.contexts:
            for letter, place, count in (
                ("p", self.p, self.vocab_size - 1),
                ("q", self.q, self.vocab_size if self.has_draft(context) else 0),
            ):
                for token in range(count):
                    place[context, token] = len(names)
                    names.append("_".join(map(str, (letter, *context, token))))
                    row_of.append(context)
        self.field = Field(names, row_of)

    def has_draft(self, context: Context) -> bool:
        """Whether the draft has a row there."""
        return len(context) < self.draft_length

    def supports(self, context: Context) -> list[Support]:
        """The tokens that the draft may draw, in every way; the empty one where it has no row."""
        size, depth = self.vocab_size, len(context)
        if not self.has_draft(context):
            return [()]
        least = self._least[depth] if self._least else 1
        sizes = range(size, size - 1 if self.shape.positive else least - 1, -1)
        return [support for count in sizes for support in combinations(range(size), count)]

    def row(self, letter: str, context: Context, support: Support) -> list[Function]:
        """The entries of a row with the others 0."""
        field, places = self.field, self.p if letter == "p" else self.q
        row = [field.zero] * self.vocab_size
        row[support[-1]] = field.one
        for token in support[:-1]:
            row[token] = field.variables[places[context, token]]
            row[support[-1]] = field.subtract(row[support[-1]], row[token])
        return row

    @property
    def target_signs(self) -> int:
        """Of the entries of target rows."""
        return POSITIVE if self.shape.positive else AT_LEAST_ZERO

    def rows_at(self, point: Point, context: Context) -> tuple[list[fmpq], list[fmpq]]:
        """The target and the draft row at a point; where there is no draft row, an empty one."""
        p = [point[self.p[context, x]] for x in range(self.vocab_size - 1)]
        q = [point[self.q[context, x]] for x in range(self.vocab_size if self.has_draft(context) else 0)]
        return [*p, 1 - sum(p, fmpq(0))], q

    def pair_at(self, point: Point) -> ModelPair:
        """The pair at a point."""
        levels: dict[str, list[np.ndarray]] = {"p": [], "q": []}
        for depth in range(self.draft_length + 1):
            some = [context for context in self.contexts if len(context) == depth]
            rows = [self.rows_at(point, context) for context in some]
            for letter, place in (("p", 0), ("q", 1)):
                values = [[Fraction(int(v.p), int(v.q)) for v in row[place]] for row in rows]
                levels[letter].append(np.array(values, dtype=object))
        vocab = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: self.vocab_size])
        return ModelPair(tuple(levels["p"]), tuple(levels["q"][:-1]), vocab)

    def drawn_points(self, count: int) -> list[list[fmpq]]:
        """Points with simple rows, zeros and p = q now and then, the same in every process."""
        random = Random(0)
        return [self._random_point(random) for _ in range(count)]

    def _random_point(self, random: Random) -> list[fmpq]:
        point, everything = [fmpq(0)] * len(self.field.names), tuple(range(self.vocab_size))
        for context in self.contexts:
            supports, q = self.supports(context), None
            if self.has_draft(context):
                support = supports[0] if random.random() < 0.5 else random.choice(supports)
                q = self._random_row(random, support, True)
            positive = self.shape.positive or random.random() < 0.7
            same = q is not None and random.random() < 0.15
            p = q if same else self._random_row(random, everything, positive)
            for token in range(self.vocab_size):
                if token < self.vocab_size - 1:
                    point[self.p[context, token]] = p[token]  # type: ignore[index]
                if q is not None:
                    point[self.q[context, token]] = q[token]
        return point

    def _random_row(self, random: Random, support: Support, positive: bool) -> list[fmpq]:
        denominator = random.choice((2, 3, 4, 5, 6, 7, 12, 30, 60))
        denominator = max(denominator, len(support)) if positive else denominator
        counts = {token: int(positive) for token in support}
        favourites = [random.choice(support) for _ in range(2)]
        for _ in range(denominator - sum(counts.values())):
            counts[random.choice(favourites if random.random() < 0.4 else support)] += 1
        return [fmpq(counts.get(token, 0), denominator) for token in range(self.vocab_size)]


class Points:
    """Points that show that regions are not empty, and their signs in bulk.

    The first ones are drawn from a seed, so that a check has the same ones and a stored proof leaves them
    out.
    """

    COUNT = 1500
    _ROUNDING = 1e-12
    """A sum of floats this much smaller than its terms is taken as 0, which is right for drawn points."""

    def __init__(self, domain: Domain, count: int = COUNT) -> None:
        self._domain = domain
        self.points = domain.drawn_points(count)
        self.num_drawn = count
        self.matrix = np.array([list(map(float, point)) for point in self.points])
        self._signs: dict[int, np.ndarray] = {}

    def add(self, point: list[fmpq]) -> int:
        """Add a point; returns its number."""
        self.points.append(point)
        self.matrix = np.vstack([self.matrix, list(map(float, point))])
        return len(self.points) - 1

    def with_supports(self, points: np.ndarray, supports: Mapping[Context, Support]) -> np.ndarray:
        """Those of some points, by their numbers, at which the draft rows have some supports."""
        for context, support in supports.items():
            if self._domain.has_draft(context):
                columns = [self._domain.q[context, token] for token in range(self._domain.vocab_size)]
                wanted = np.array([token in support for token in range(self._domain.vocab_size)])
                points = points[((self.matrix[points][:, columns] > 0) == wanted).all(axis=1)]
        return points

    def inside(self, signs: Mapping[int, int], supports: Mapping[Context, Support]) -> np.ndarray:
        """The numbers of the points at which factors have some signs, and the draft rows some supports."""
        known = np.arange(len(self.points))
        for number, mask in [*signs.items()][::-1]:  # the newest signs exclude most points
            known = known[(self.signs(self._domain.field.factors[number])[known] & mask) != 0]
            if not len(known):
                return known
        return self.with_supports(known, supports)

    def signs(self, factor: Factor) -> np.ndarray:
        """The sign of a factor at every point, as masks."""
        known = self._signs.get(factor.number, np.zeros(0, dtype=np.int8))
        if len(known) < len(self.points):
            signs = self.signs_at(factor, self.matrix[len(known) :])
            for place in np.flatnonzero(signs == ZERO):  # changed points lie close to each other
                if len(known) + place >= self.num_drawn:
                    signs[place] = sign_of(factor.at(self.points[len(known) + place]))
            known = self._signs[factor.number] = np.concatenate([known, signs])
        return known

    def signs_at(self, factor: Factor, matrix: np.ndarray) -> np.ndarray:
        """The sign of a factor at points in floats, up to rounding."""
        total, size = np.zeros(len(matrix)), np.zeros(len(matrix))
        for coefficient, powers in factor.sparse_terms:
            term = np.full(len(matrix), float(coefficient))
            for variable, exponent in powers:
                term = term * matrix[:, variable] ** exponent
            total, size = total + term, size + np.abs(term)
        signs = np.where(total > 0, POSITIVE, NEGATIVE)
        return np.where(np.abs(total) <= self._ROUNDING * size, ZERO, signs).astype(np.int8)

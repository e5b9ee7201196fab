"""A tree of regions of the random numbers, on each of which a function has one answer.

Inner nodes are cuts of one coordinate, and races: the i-th child has the numbers for which i comes next in a
race of exponential numbers with weights.  So a race is known by the order of its winners (Plackett and Luce),
and the probability of every region is a product.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

from spectheory.auditing.handing.numbers import ONE, Coordinate, Point, Run, exponential, mix

T = TypeVar("T", bound=Hashable)


class Form(NamedTuple):
    """Conversion of a uniform number to an exponential number, and back."""

    exponential: Callable[[int], float]
    uniform: Callable[[float], int]


def _within(number: float) -> int:
    return min(ONE - 1, max(0, int(number * ONE)))


FORMS = {
    "-log(1-u)": Form(exponential, lambda time: _within(-math.expm1(-time))),
    "-log(u)": Form(lambda value: -math.log(max(value, 0.5) / ONE), lambda time: _within(math.exp(-time))),
}


@dataclass(frozen=True)
class Race:
    """Exponential numbers e_i with weights w_i.  The number with the least e_i / w_i comes first.

    Attributes:
        coordinates: the coordinates of the numbers.
        weights: relative weights.  A number with weight 0 never comes first.
        form: how the numbers are computed, a name in ``FORMS``.
        winners: the indices i that came first in this region, in order.
    """

    coordinates: tuple[Coordinate, ...]
    weights: tuple[float, ...]
    form: str
    winners: tuple[int, ...] = ()

    @property
    def left(self) -> list[int]:
        """The indices that can come next."""
        return [i for i, weight in enumerate(self.weights) if weight > 0 and i not in self.winners]

    def time(self, place: int, point: Point) -> float:
        value = point.at(self.coordinates[place])
        return FORMS[self.form].exponential(value) / self.weights[place]

    def next_winner(self, point: Point) -> int:
        return min(self.left, key=lambda place: self.time(place, point))

    def with_next(self, place: int, point: Point) -> Point | None:
        """Move a point so that this index comes next after the winners.  ``None`` if it cannot come next."""
        if place not in self.left:
            return None
        last = max((self.time(i, point) for i in self.winners), default=0.0)
        least = min(self.time(i, point) for i in self.left)
        time = (last + (least - last) / 2) * self.weights[place]
        return point.but({self.coordinates[place]: FORMS[self.form].uniform(time)})

    def drawn(self, unit: Callable[[int], float]) -> dict[Coordinate, int]:
        """Draw numbers from the law of the race given its winners.  ``unit(place)`` is exponential."""
        left, start, values = dict(enumerate(self.weights)), 0.0, {}
        for place in self.winners:
            start += unit(place) / sum(left.values())
            values[place] = start * left.pop(place)
        values |= {place: start * weight + unit(place) for place, weight in left.items() if weight > 0}
        uniform = FORMS[self.form].uniform
        return {self.coordinates[place]: uniform(value) for place, value in values.items()}


@dataclass
class Node(Generic[T]):
    """A region of the numbers: a leaf until it is split.

    Attributes:
        box: coordinate -> the interval [low, high) of its values.
        races: name -> the known races, with their winners in this region.
        mass: the probability of the region.
        label: the answer at all points of the region that were tried.
        seen: a point of the region and the run there.
        coordinate, cuts: if a coordinate splits the region, this coordinate and its cuts.
        race: if a race splits the region, this race.
        children: the parts, by case of the cut, or by the index that comes next in the race.
    """

    box: dict[Coordinate, tuple[int, int]]
    races: dict[Any, Race]
    mass: Fraction
    label: T | None = None
    seen: tuple[Point, Run[T]] | None = None
    coordinate: Coordinate | None = None
    cuts: list[int] = field(default_factory=list)
    race: Race | None = None
    children: dict[int, Node[T]] = field(default_factory=dict)

    def leaf_of(self, point: Point) -> Node[T]:
        node = self
        while node.children:
            if node.race is not None:
                case = node.race.next_winner(point)
            else:
                assert node.coordinate is not None
                value = point.at(node.coordinate)
                case = sum(value >= cut for cut in node.cuts)
            node = node.children[case]
        return node

    def leaves(self) -> Iterator[Node[T]]:
        stack = [self]
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            if not node.children:
                yield node

    def law(self) -> dict[T, Fraction]:
        """The probability of every answer."""
        law: dict[Any, Fraction] = defaultdict(Fraction)
        for leaf in self.leaves():
            law[leaf.label] += leaf.mass
        return dict(law)

    def read(self) -> set[Coordinate]:
        """The coordinates that the answer depends on."""
        found: set[Coordinate] = set()
        for leaf in self.leaves():
            found |= leaf.box.keys()
            found |= {each for race in leaf.races.values() for each in race.coordinates}
        return found

    def cut(self, coordinate: Coordinate, cuts: list[int]) -> list[Node[T]]:
        """Split the region at values of a coordinate, and return the children."""
        low, high = self.box.get(coordinate, (0, ONE))
        ends = [low, *cuts, high]
        self.coordinate, self.cuts = coordinate, cuts
        for case, (start, end) in enumerate(pairwise(ends)):
            share = Fraction(end - start, high - low)
            self.children[case] = Node({**self.box, coordinate: (start, end)}, self.races, self.mass * share)
        return list(self.children.values())

    def run(self, name: Any, race: Race) -> list[Node[T]]:
        """Split the region by the index that comes next in a race, and return the children."""
        weights = {place: Fraction(race.weights[place]) for place in race.left}
        total = sum(weights.values())
        self.race = race
        for place, weight in weights.items():
            races = {
                **self.races,
                name: Race(race.coordinates, race.weights, race.form, (*race.winners, place)),
            }
            self.children[place] = Node(self.box, races, self.mass * weight / total)
        return list(self.children.values())

    def random_point(self, seed: int) -> Point:
        """Draw a point of the region from the law of the numbers."""
        point = Point(seed)
        for coordinate, (low, high) in self.box.items():
            point.fixed[coordinate] = low + point.at(coordinate) * (high - low) // ONE
        for race in self.races.values():

            def unit(place: int, race: Race = race) -> float:
                return exponential(mix(seed, 1, *race.coordinates[place]) >> 11)

            point.fixed.update(race.drawn(unit))
        return point

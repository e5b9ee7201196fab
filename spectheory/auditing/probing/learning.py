"""Learn the regions on which a function of handed numbers has one answer.

If two points of a region have different answers, there is a coordinate at which the answer changes.  We find
this coordinate by halving, with hybrids of both points, and then find its cut by bisection.  A region becomes
a leaf when one random point, and the ends of every coordinate that the call used, have the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Generic, TypeVar

from spectheory.auditing.handing.numbers import (
    FINE,
    ONE,
    Coordinate,
    NotHandedError,
    Point,
    Run,
    Use,
    exponential,
    mix,
    run_at,
)
from spectheory.auditing.probing.races import weights_of
from spectheory.auditing.probing.tree import FORMS, Node, Race
from spectheory.auditing.tape.decisions import NotEnumerableError

T = TypeVar("T", bound=Hashable)
LEAST = 2.0**-40
"""A region that is less likely is not looked at."""
ASKED_TWICE = 8
"""Points at which we call the code twice, to check that its answer is a function of the numbers."""
INSET = 1 << 14
"""The ends of a region are tried so far inside, twice the error of a cut."""
FIRST = 1e-9
"""A time before all others in a race whose weights are not known."""
NEIGHBOURS = 4
"""Coordinates of the same row that are moved to see whether a cut moves with them, as in a race."""

Spot = tuple[Point, Run[T]]


class BudgetSpentError(NotEnumerableError):
    """The allowed number of calls is too small to learn all regions."""


class Learner(Generic[T]):
    """Learns the tree of a function.  ``learn`` grows it; ``refine`` splits a leaf after a wrong answer.

    Args:
        function: (seed) -> a hashable answer; see ``run_at``.
        budget: the largest number of calls.
        seed: seed of the random points.

    Attributes:
        root: the root of the tree.
        calls: the number of calls so far.
    """

    def __init__(self, function: Callable[[int], T], budget: int, seed: int = 0) -> None:
        self.function, self.budget, self.seed = function, budget, seed
        self.root: Node[T] = Node({}, {}, Fraction(1))
        self.calls = self._points = 0

    def learn(self) -> None:
        """Grow the tree.

        Raises:
            NotHandedError: two calls with the same numbers have different answers.
            BudgetSpentError: the budget is too small to learn all regions.
        """
        for _ in range(ASKED_TWICE):
            point, run = self._look(self.root)
            if self.at(point).label != run.label:
                raise NotHandedError("called twice with the same random numbers, it gives two answers")
        self._settle([self.root])

    def refine(self, leaf: Node[T], spot: Spot[T]) -> bool:
        """Grow the tree below a leaf, at a point whose answer differs from the leaf's.

        Returns:
            True if the tree grew.  False if neither a cut nor a race separates the two answers.
        """
        assert leaf.seen is not None
        grown = self._split(leaf, leaf.seen, spot)
        self._settle(grown)
        return bool(grown)

    def at(self, point: Point) -> Run[T]:
        if self.calls >= self.budget:
            raise BudgetSpentError(f"{self.calls} calls do not suffice to learn its law")
        self.calls += 1
        return run_at(self.function, point)

    def new_point(self, node: Node[T]) -> Point:
        self._points += 1
        return node.random_point(mix(self.seed, self._points))

    def _look(self, node: Node[T]) -> Spot[T]:
        point = self.new_point(node)
        return point, self.at(point)

    def _settle(self, nodes: Sequence[Node[T]]) -> None:
        """Try the ends of each region.  If all answers agree, keep it as a leaf; otherwise split it."""
        stack = list(nodes)
        while stack:
            node = stack.pop()
            node.seen = self._look(node)
            node.label = node.seen[1].label
            other = self._other_answer(node) if node.mass > LEAST else None
            if other is not None:
                stack.extend(self._split(node, node.seen, other))

    # ------------------------------------------------------------- another answer in a region

    def _other_answer(self, node: Node[T]) -> Spot[T] | None:
        for point in self._ends(node):
            run = self.at(point)
            if run.label != node.label:
                return point, run
        point, run = self._look(node)
        return (point, run) if run.label != node.label else None

    def _ends(self, node: Node[T]) -> Iterator[Point]:
        """Yield points at the ends of every coordinate of a run, and one per next winner in a race."""
        assert node.seen is not None
        point, run = node.seen
        rows: dict[Any, list[Coordinate]] = {}
        for coordinate, use in run.uses.items():
            name = _race_of(node, coordinate, use)
            if name is not None:
                rows.setdefault(name, []).append(coordinate)
                continue
            for value in _values_to_try(use, *node.box.get(coordinate, (0, ONE))):
                yield point.but({coordinate: value})
        for name, coordinates in rows.items():
            if name in node.races:
                race = node.races[name]
                moved = (race.with_next(place, point) for place in range(len(race.coordinates)))
                yield from (each for each in moved if each is not None)
            else:  # whatever the weights are
                least = min(exponential(point.at(each)) for each in coordinates)
                first = FORMS["-log(1-u)"].uniform(min(FIRST, least / 1000))
                yield from (point.but({each: first}) for each in coordinates)

    # ------------------------------------------------------------- where the answer changes

    def _split(self, node: Node[T], one: Spot[T], other: Spot[T]) -> list[Node[T]]:
        """Split a region that has two points with different answers, and return the new regions."""
        (start, first), (end, last) = one, other
        units = _units(node, first, last)

        def moved() -> Point:
            return start.but({each: end.at(each) for _, unit in units for each in unit})

        run = self.at(moved())
        if run.label != last.label:  # the hybrid uses numbers that neither has used
            units = _units(node, first, last, run)
            run = self.at(moved())
        if run.label == first.label or not units:
            raise NotHandedError("its answer changes where no random number that it uses does")
        place, one, other = self._changing([unit for _, unit in units], one, (moved(), run))
        name, unit = units[place]
        if name is not None:
            made = self._run(node, name, unit, one[0])
            if made or name in node.races:
                return made
            place, one, other = self._changing([[each] for each in unit], one, other)
            unit = unit[place : place + 1]
        return self._cut(node, unit[0], one, other)

    def _changing(
        self, units: Sequence[Sequence[Coordinate]], one: Spot[T], other: Spot[T]
    ) -> tuple[int, Spot[T], Spot[T]]:
        """Find the unit of coordinates at which the answer changes on the way from one point to another.

        Returns:
            The index of the unit, the point before this unit is moved, and the point after.
        """
        (start, first), (end, _) = one, other

        def moved(count: int) -> Point:
            return start.but({each: end.at(each) for unit in units[:count] for each in unit})

        low, high = 0, len(units)
        before, after = one, other
        while high - low > 1:
            middle = (low + high) // 2
            spot = moved(middle), self.at(moved(middle))
            if spot[1].label == first.label:
                low, before = middle, spot
            else:
                high, after = middle, spot
        return low, before, after

    def _cut(self, node: Node[T], coordinate: Coordinate, one: Spot[T], other: Spot[T]) -> list[Node[T]]:
        """Split a region at the only coordinate in which two points differ."""
        (below, _), (above, _) = ends = sorted((one, other), key=lambda spot: spot[0].at(coordinate))
        run = next((run for _, run in ends if coordinate in run.uses), None)
        low, high = node.box.get(coordinate, (0, ONE))
        if run is None:
            raise NotHandedError("its answer changes with a random number that it does not use")
        use = run.uses[coordinate]
        inside = sorted({cut for cut in use.cuts if low < cut < high})
        if any(below.at(coordinate) < cut <= above.at(coordinate) for cut in inside):
            return node.cut(coordinate, inside)
        cut = self._bisected(coordinate, use.step, ends[0], above.at(coordinate))
        race = self._race_at(node, coordinate, cut, below, run)
        if race:
            return race
        return node.cut(coordinate, [cut]) if low < cut < high else []

    def _bisected(self, coordinate: Coordinate, grid: int, below: Spot[T], high: int) -> int:
        """Find where the answer changes between the value at ``below`` and ``high``, by bisection."""
        point, run = below
        step, low = max(grid, FINE), point.at(coordinate)
        while high - low > step:
            middle = (low + high) // 2 // grid * grid
            middle = middle if middle > low else low + step
            if middle >= high:
                break
            is_below = self.at(point.but({coordinate: middle})).label == run.label
            low, high = (middle, high) if is_below else (low, middle)
        return high // grid * grid if grid > FINE else high

    # ------------------------------------------------------------- races

    def _race_at(
        self, node: Node[T], coordinate: Coordinate, cut: int, point: Point, run: Run[T]
    ) -> list[Node[T]]:
        """Split by a race of logarithms of uniform numbers, if a cut moves with other numbers of its row."""
        use = run.uses[coordinate]
        row = [
            each
            for each, other in run.uses.items()
            if each[0] == coordinate[0]
            and other.row == use.row
            and each not in node.box
            and _race_of(node, each, other) is None
        ]
        if coordinate not in row or not self._moves(row, coordinate, cut, point, max(use.step, FINE)):
            return []
        for form in ("-log(u)", "-log(1-u)"):
            made = self._run(node, ("race", *row), row, point, form)
            if made:
                return made
        return []

    def _moves(
        self, row: Sequence[Coordinate], coordinate: Coordinate, cut: int, point: Point, step: int
    ) -> bool:
        around = max(0, cut - 2 * step), min(ONE - 1, cut + step)
        for mate in [each for each in row if each != coordinate][:NEIGHBOURS]:
            for value in (point.at(mate) // 2, (ONE + point.at(mate)) // 2):
                moved = point.but({mate: value})
                near, far = (
                    [self.at(moved.but({coordinate: each})).label for each in values]
                    for values in (around, (0, ONE - 1))
                )
                if near[0] == near[1] and far[0] != far[1]:
                    return True
        return False

    def _run(
        self,
        node: Node[T],
        name: Any,
        coordinates: Sequence[Coordinate],
        point: Point,
        form: str = "-log(1-u)",
    ) -> list[Node[T]]:
        """Split a region by the index that comes next in a race.  Return [] if there is no such race."""
        race = node.races.get(name)
        if race is None:

            def answer(times: Sequence[float]) -> T:
                values = map(FORMS[form].uniform, times)
                return self.at(point.but(dict(zip(coordinates, values, strict=True)))).label

            self._points += 1
            seed = mix(self.seed, self._points)
            weights = weights_of(answer, len(coordinates), form, seed)
            if weights is None:
                return []
            race = Race(tuple(coordinates), weights, form)
        return node.run(name, race) if len(race.left) > 1 else []


def _race_of(node: Node[Any], coordinate: Coordinate, use: Use) -> Any:
    """The name of the race in which a coordinate runs or may run.  ``None`` if there is no race."""
    for name, race in node.races.items():
        if coordinate in race.coordinates:
            return name
    is_free = use.kind == "exponential" and coordinate not in node.box
    return (coordinate[0], use.row) if is_free else None


def _units(node: Node[Any], *runs: Run[Any]) -> list[tuple[Any, list[Coordinate]]]:
    """Group the coordinates of runs, in order.  The coordinates of one race form one group."""
    units: list[tuple[Any, list[Coordinate]]] = []
    seen: set[Coordinate] = set()
    for run in runs:
        rows: dict[Any, list[Coordinate]] = {}
        for coordinate, use in run.uses.items():
            if coordinate in seen:
                continue
            seen.add(coordinate)
            name = _race_of(node, coordinate, use)
            if name is None:
                units.append((None, [coordinate]))
            elif name in rows:
                rows[name].append(coordinate)
            else:
                rows[name] = [coordinate]
                units.append((name, rows[name]))
    return units


def _values_to_try(use: Use, low: int, high: int) -> list[int]:
    """Values of a coordinate near the ends of its interval.  For a choice, one value in every case."""
    if use.cuts:
        ends = [0, *use.cuts, ONE]
        middles = [(a + b) // 2 for a, b in pairwise(ends) if b > a]
        return [middle for middle in middles if low <= middle < high]
    inset = 0 if use.step > FINE else INSET  # cuts on a coarse grid are exact
    return [low + (inset if low else 0), high - 1 - (inset if high < ONE else 0)]

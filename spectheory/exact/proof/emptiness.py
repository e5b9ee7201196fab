"""Whether sign conditions have a solution: known lemmas, points, certificates, and a solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from time import monotonic
from typing import NamedTuple

from spectheory.exact.proof.certificates import Constraint, Lemma, Step, Term, certificate
from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.points import Point, random_point
from spectheory.exact.proof.rational_functions import ANY_SIGN, NEGATIVE, POSITIVE, ZERO, Factor
from spectheory.exact.proof.solver import RealSolver
from spectheory.exact.proof.substitution import consequences

MOVES = 24
"""How many random changes of a point are tried before a solver is asked."""
DEGREES = (1, 2, 3, 4)
"""Of the products of conditions in a certificate."""
NEAREST = 80
"""Of how many conditions a certificate of degree 1 is looked for."""
EXTRA = 12
"""How many simple conditions a core is extended by where it has no certificate."""
MOST_POINTS = 60
"""The points that are carried along with a region."""


class Finding(NamedTuple):
    """What is known of the part of a region where a factor has certain signs.

    Attributes:
        mask: these signs.
        lemma: the number of the lemma by which it is empty; ``None`` if it is not known to be.
        points: of it; empty if none is known.
    """

    mask: int
    lemma: int | None
    points: list[Point]


class Emptiness:
    """The lemmas of one proof, and the search for more.

    Args:
        deadline: of ``time.monotonic``; after it nothing is searched.
    """

    def __init__(self, deadline: float, milliseconds: int = 4000) -> None:
        self.lemmas: list[Lemma] = []
        self.deadline = deadline
        self._by_factor: dict[Factor, list[int]] = {}
        self._solver = RealSolver(milliseconds) if RealSolver.is_there() else None
        self._random = Random(0)

    def examine(
        self,
        pair: FormalPair,
        known: Mapping[Factor, int],
        factor: Factor,
        mask: int,
        points: Sequence[Point],
    ) -> list[Finding]:
        """The part of a region where a factor has signs in ``mask``; one finding for each, if closed so."""
        alive = [point for point in points if point.sign(factor) & mask]
        if alive:
            return [Finding(mask, None, alive)]
        lemma = self.quick_lemma(known, factor, mask, points)
        if lemma is not None:
            return [Finding(mask, lemma, [])]
        found = self._moved(pair, known, factor, mask, points)
        if found is not None:
            return [Finding(mask, None, [found])]
        if mask == NEGATIVE | POSITIVE:
            parts = [self.examine(pair, known, factor, one, points)[0] for one in (NEGATIVE, POSITIVE)]
            if all(part.lemma is not None for part in parts):
                return parts
            return [Finding(mask, None, [point for part in parts for point in part.points])]
        constraints = component(known, factor, mask)
        return [self._solved(pair, known, constraints, factor, mask, points)]

    def add(
        self,
        constraints: Sequence[Constraint],
        terms: tuple[Term, ...] | None,
        steps: tuple[Step, ...] = (),
    ) -> int:
        """Keep a lemma, with the conditions that its certificate uses."""
        if terms is not None:
            used = sorted({index for term in terms for index in term.indices})
            place = {index: number for number, index in enumerate(used)}
            constraints = [constraints[index] for index in used]
            terms = tuple(
                type(term)(term.coefficient, tuple(place[i] for i in term.indices), term.multiplier)
                for term in terms
            )
        self.lemmas.append(Lemma(tuple(constraints), terms, steps))
        for factor, _ in constraints:
            self._by_factor.setdefault(factor, []).append(len(self.lemmas) - 1)
        return len(self.lemmas) - 1

    def quick_lemma(
        self, known: Mapping[Factor, int], factor: Factor, mask: int, points: Sequence[Point]
    ) -> int | None:
        """The lemma by which a factor has no sign in ``mask``, if one is known or is of degree 1."""
        if any(point.sign(factor) & mask for point in points):
            return None
        lemma = self._lemma_that_covers(known, factor, mask)
        if lemma is None and mask != NEGATIVE | POSITIVE:
            near = [*component(known, factor, mask)[:NEAREST], (factor, mask)]
            terms = certificate(near, 1)
            lemma = None if terms is None else self.add(near, terms)
        return lemma

    def _lemma_that_covers(self, known: Mapping[Factor, int], factor: Factor, mask: int) -> int | None:
        signs = {**known, factor: known.get(factor, ANY_SIGN) & mask}
        for number in self._by_factor.get(factor, ()):
            if self.lemmas[number].covers(signs):
                return number
        return None

    def _moved(
        self,
        pair: FormalPair,
        known: Mapping[Factor, int],
        factor: Factor,
        mask: int,
        points: Sequence[Point],
    ) -> Point | None:
        if not points:
            return None
        contexts = sorted(frozenset().union(*(pair.contexts_of[variable] for variable in factor.variables)))
        variables = pair.variables_of(contexts)
        touched = [(factor, mask)] + [item for item in known.items() if item[0].variables & variables]
        for number in range(MOVES):
            some = contexts if number % 2 else [self._random.choice(contexts)]
            base = points[self._random.randrange(len(points))]
            point = random_point(pair, self._random, base, some)
            if point.is_in(touched):
                return point
        return None

    def _solved(
        self,
        pair: FormalPair,
        known: Mapping[Factor, int],
        constraints: Sequence[Constraint],
        factor: Factor,
        mask: int,
        points: Sequence[Point],
    ) -> Finding:
        unknown = Finding(mask, None, [])
        every = [*constraints, (factor, mask)]
        if self._solver is None or monotonic() > self.deadline:
            if len(every) <= 24 and (terms := certificate(every, 2)) is not None:
                return Finding(mask, self.add(every, terms), [])
            return unknown
        answer, values = self._solver.decide(every)
        if answer == "sat" and values:
            base = points[0].values if points else random_point(pair, self._random).values
            rows = [values.get(i, value) for i, value in enumerate(base)]
            free = {i: value for i, value in values.items() if i >= len(rows)}
            point = Point(rows, pair.value_of, free)
            # Without a known point the solver's says nothing about conditions on other variables.
            return Finding(mask, None, [point] if point.is_in({**known, factor: mask}.items()) else [])
        if answer != "unsat":
            return unknown
        core = self._solver.core(every)
        near = [*core, *_simple(constraints, core)[:EXTRA]]
        # 1 - q₀ > 0 follows from 1 - q₀ - q₁ > 0 and q₁ > 0.
        wide = [*near, *_simple(constraints, near)[:EXTRA]]
        for degree in DEGREES:
            for some in (core, near, wide):
                terms = certificate(some, degree)
                if terms is not None:
                    return Finding(mask, self.add(some, terms), [])
        return Finding(mask, self.add(core, None, self._steps(core)), [])

    def _steps(self, core: Sequence[Constraint]) -> tuple[Step, ...]:
        """Signs that follow by substitution, until none is left for some factor; empty if they stay open."""
        known, steps = dict(core), list[Step]()
        found: Step | None = None
        while found is None or found.mask:
            found = next(self._steps_from(known), None)
            if found is None:
                return ()
            steps.append(found)
            known[found.factor] = found.mask
        return tuple(steps)

    def _steps_from(self, known: Mapping[Factor, int]) -> Iterator[Step]:
        for factor, mask, conditions in consequences(known):
            before = known.get(factor, ANY_SIGN)
            excluded = [sign for sign in (NEGATIVE, ZERO, POSITIVE) if before & sign & ~mask]
            impossible = [[*conditions, (factor, sign)] for sign in excluded]
            degrees = range(1, len(conditions) + 1)
            proofs = [next(filter(None, (certificate(one, d) for d in degrees)), None) for one in impossible]
            if excluded and all(proofs):
                lemmas = map(self.add, impossible, proofs)
                yield Step(factor, before & mask, tuple(zip(excluded, lemmas, strict=True)))


def _simple(constraints: Sequence[Constraint], core: Sequence[Constraint]) -> list[Constraint]:
    """Other linear conditions with variables of a core, as 0 ≤ p is one."""
    variables = frozenset().union(*(factor.variables for factor, _ in core))
    return [
        (factor, mask)
        for factor, mask in constraints
        if (factor, mask) not in core and factor.variables & variables and max(map(sum, factor.terms)) == 1
    ]


def component(known: Mapping[Factor, int], factor: Factor, mask: int) -> list[Constraint]:
    """The known conditions that share variables with a factor, or with another of them, the nearest first."""
    reached = set(factor.variables)
    left = [item for item in known.items() if item[1] != ANY_SIGN and item[0] is not factor]
    found: list[Constraint] = []
    if factor in known and known[factor] & ~mask:
        mask = known[factor] & mask
    while True:
        near = [item for item in left if item[0].variables & reached]
        if not near:
            return found
        found += near
        left = [item for item in left if not item[0].variables & reached]
        for item, _ in near:
            reached |= item.variables

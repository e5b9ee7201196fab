"""Whether sign conditions have a solution: known lemmas, points, certificates, and a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from time import monotonic
from typing import NamedTuple

from flint import fmpq

from spectheory.exact.proof.certificates import Constraint, Lemma, Node, Part, Term, certificate
from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.points import Point, random_point
from spectheory.exact.proof.rational_functions import ANY_SIGN, NEGATIVE, POSITIVE, ZERO, Factor
from spectheory.exact.proof.solver import RealSolver
from spectheory.exact.proof.substitution import Consequence, divisions

MOVES = 24
"""How many random changes of a point are tried before a solver is asked."""
LOW_DEGREES, HIGH_DEGREES = (0, 1), (2, 3, 4)
"""Of the products in a certificate, above the highest degree of a condition; the second where equalities do
not help."""
MOST_STEPS, MOST_SPLITS = 5, 3
"""How often a core is replaced by one behind its equalities, and by how many factors it is split there."""
MOST_CORES = 30
"""That are tried in place of one that has no certificate."""
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

    def __init__(self, deadline: float, seconds: float = 1) -> None:
        self.lemmas: list[Lemma] = []
        self.deadline = deadline
        self._by_factor: dict[Factor, list[int]] = {}
        self._numbers: dict[frozenset[Constraint], int] = {}
        self._solver = RealSolver(seconds) if RealSolver.is_there() else None
        self._random = Random(0)
        self._cores_left = MOST_CORES

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
        tree: Node | None = None,
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
        number = self._numbers.setdefault(frozenset(constraints), len(self.lemmas))
        if number == len(self.lemmas):
            self.lemmas.append(Lemma(tuple(constraints), terms, tree))
            for factor, _ in constraints:
                self._by_factor.setdefault(factor, []).append(number)
        return number

    def quick_lemma(
        self, known: Mapping[Factor, int], factor: Factor, mask: int, points: Sequence[Point]
    ) -> int | None:
        """The lemma by which a factor has no sign in ``mask``, if one is known or is of degree 1."""
        if any(point.sign(factor) & mask for point in points):
            return None
        lemma = self._lemma_that_covers(known, factor, mask)
        if lemma is None:
            lemma = self._divided(known, factor, mask)
        if lemma is None and mask != NEGATIVE | POSITIVE:
            near = [*component(known, factor, mask)[:NEAREST], (factor, mask)]
            terms = certificate(near, None)
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
            degree = max(2, factor.degree)
            if len(every) <= 24 and (terms := certificate(every, degree)) is not None:
                return Finding(mask, self.add(every, terms), [])
            return unknown
        answer, values = self._solver.decide(every)
        if answer == "sat" and values:
            base = points[0].values if points else random_point(pair, self._random).values
            # Without a known point the solver's says nothing about conditions on other variables.
            point = self._point(pair, values, base, {**known, factor: mask})
            return Finding(mask, None, [] if point is None else [point])
        return Finding(mask, self._lemma_of(every), []) if answer == "unsat" else unknown

    def _lemma_of(self, every: Sequence[Constraint]) -> int:
        """The lemma that conditions have no solution, which the solver says."""
        assert self._solver is not None
        core, known = self._solver.core(every) or every, dict(every)
        lemma = self._certified(core, {}, LOW_DEGREES)
        if lemma is not None:
            return lemma
        core = self._solver.smallest_core(core)
        self._cores_left = MOST_CORES
        target = self._closed(core, known, MOST_STEPS)
        if target is None:
            target = self._certified(core, known, HIGH_DEGREES)
        if target is None:
            return self.add(core, None)
        return self._kept(target, known)

    def settle(self, pair: FormalPair, known: Mapping[Factor, int], seconds: float) -> int | Point | None:
        """The lemma by which a whole region is empty, or a point of it; ``None`` if the solver finds neither.

        Args:
            pair: the face.
            known: the region.
            seconds: for every question to the solver.
        """
        if self._solver is None:
            return None
        values, usual = dict[int, fmpq](), self._solver.seconds
        self._solver.seconds = seconds
        try:
            left = {factor: mask for factor, mask in known.items() if mask != ANY_SIGN}
            while left and monotonic() < self.deadline:
                factor, mask = next(iter(left.items()))
                every = [*component(left, factor, mask), (factor, mask)]
                answer, found = self._solver.decide(every)
                if answer == "unsat":
                    return self._lemma_of(every)
                if not found:
                    return None
                values |= found
                left = {one: sign for one, sign in left.items() if one not in dict(every)}
        finally:
            self._solver.seconds = usual
        return self._point(pair, values, random_point(pair, self._random).values, known)

    def _point(
        self,
        pair: FormalPair,
        values: Mapping[int, fmpq],
        base: Sequence[fmpq],
        known: Mapping[Factor, int],
    ) -> Point | None:
        """The point with some values, and else those of another point, if it lies in a region."""
        rows = [values.get(number, value) for number, value in enumerate(base)]
        free = {number: value for number, value in values.items() if number >= len(rows)}
        point = Point(rows, pair.value_of, free)
        return point if point.is_in(known.items()) else None

    def _kept(self, target: int | Node, known: Mapping[Factor, int]) -> int:
        """The number of a lemma that closes a part."""
        if isinstance(target, int):
            return target
        used = [factor for factor in _factors_in(target, self.lemmas) if factor in known]
        return self.add([(factor, known[factor]) for factor in used], None, target)

    def _divided(self, known: Mapping[Factor, int], factor: Factor, mask: int) -> int | None:
        """The lemma that a factor has none of some signs, by repeated division with remainder."""
        asked, derived = {**known, factor: known.get(factor, ANY_SIGN) & mask}, list[Consequence]()
        signs, zeros = (
            {**asked},
            [zero for zero, sign in asked.items() if sign == ZERO and zero is not factor],
        )
        for zero in sorted(zeros, key=lambda one: len(one.terms)):
            if not zero.variables & factor.variables:
                continue
            for division in divisions((factor, signs[factor]), zero, signs):
                found = division.consequence(signs)
                before = ANY_SIGN if found is None else signs.get(found.factor, ANY_SIGN)
                if found is not None and before & ~found.mask:
                    derived.append(found)
                    factor, signs[found.factor] = found.factor, before & found.mask
                    if not signs[factor]:
                        return self._kept(self._chain(derived, None), asked)
                    break
        return None

    def _certified(
        self, core: Sequence[Constraint], known: Mapping[Factor, int], degrees: Sequence[int]
    ) -> int | None:
        """The lemma with a certificate that a core has no solution."""
        near = [*core, *_simple(known, core)[:EXTRA]]
        # 1 - q₀ > 0 follows from 1 - q₀ - q₁ > 0 and q₁ > 0.
        wide = [*near, *_simple(known, near)[:EXTRA]]
        highest = max(factor.degree for factor, _ in core)
        for degree in degrees:
            for some in (core, near, wide):
                terms = certificate(some, highest + degree)
                if terms is not None:
                    return self.add(some, terms)
        return None

    def _closed(self, core: Sequence[Constraint], known: dict[Factor, int], steps: int) -> int | Node | None:
        """What closes conditions without a solution: a lemma, or splits of which lemmas close all parts.

        A condition is divided by an equality, and what is left has a sign.  Where two of its factors may have
        any, the signs of one of them are gone through.
        """
        lemma = self._certified(core, known, LOW_DEGREES)
        self._cores_left -= 1
        if lemma is not None or not steps or self._cores_left <= 0:
            return lemma
        zeros = [factor for factor, mask in core if mask == ZERO]
        if not zeros:
            return self._certified(core, known, HIGH_DEGREES)
        known, derived, splits = {**known}, list[Consequence](), dict[Factor, None]()
        for zero in zeros:
            for factor, mask in core:
                for division in divisions((factor, mask), zero, known) if factor is not zero else ():
                    found = division.consequence(known)
                    if found is None:
                        splits.update(dict.fromkeys(division.open_factors(known)))
                        continue
                    before = known.get(found.factor, ANY_SIGN)
                    if before & ~found.mask:
                        derived.append(found)
                        known[found.factor] = before & found.mask
                        if not known[found.factor]:
                            return self._chain(derived, None)
        if derived:
            inner = self._core_behind(known, core, zeros)
            target = self._closed(inner, known, steps - 1) if inner else None
            if target is not None:
                return self._chain(derived, target)
        for factor in sorted(splits, key=lambda one: len(one.terms))[:MOST_SPLITS]:
            parts = []
            for sign in (NEGATIVE, ZERO, POSITIVE):
                if not sign & known.get(factor, ANY_SIGN):
                    continue
                signs = {**known, factor: sign}
                inner = self._core_behind(signs, core, ())
                target = self._closed(inner, signs, steps - 1) if inner else None
                if target is None:
                    break
                parts.append(_part(sign, target))
            else:
                return self._chain(derived, Node(factor, parts))
        return None

    def _core_behind(
        self, known: Mapping[Factor, int], core: Sequence[Constraint], zeros: Sequence[Factor]
    ) -> list[Constraint]:
        """A core without some of the equalities, if there is one, and with few conditions of the old core."""
        if self._solver is None or monotonic() > self.deadline:
            return []
        old = {factor for factor, _ in core}
        conditions = sorted(known.items(), key=lambda item: item[0] not in old)
        for zero in zeros:
            fewer = [item for item in conditions if item[0] is not zero]
            if self._solver.decide(fewer)[0] == "unsat":
                conditions = fewer
        return self._solver.smallest_core(self._solver.core(conditions))

    def _chain(self, derived: Sequence[Consequence], target: int | Node | None) -> int | Node:
        """A node for every consequence that what is behind it needs."""
        needed = set() if target is None else {*_factors_in(target, self.lemmas)}
        last = target
        for found in reversed(derived):
            if last is not None and found.factor not in needed:
                continue
            lemmas = {sign: self.add(*how) for sign, how in found.excluded.items()}
            parts = [Part(sign, lemma=lemma) for sign, lemma in lemmas.items()]
            if last is not None:
                parts.append(_part(found.mask, last))
            last = Node(found.factor, parts)
            needed |= {*_factors_in(last, self.lemmas)}
        if last is None:
            raise AssertionError("a chain without an end")
        return last


def _part(mask: int, target: int | Node) -> Part:
    return Part(mask, lemma=target) if isinstance(target, int) else Part(mask, target)


def _factors_in(target: int | Node, lemmas: Sequence[Lemma]) -> list[Factor]:
    """The factors in a tree and in its lemmas."""
    found: dict[Factor, None] = {}
    waiting: list[int | Node] = [target]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int):
            found |= dict.fromkeys(factor for factor, _ in lemmas[one].constraints)
            if tree := lemmas[one].tree:
                waiting.append(tree)
        else:
            found[one.factor] = None
            waiting += [part.target if part.lemma is None else part.lemma for part in one.parts]  # type: ignore[misc]
    return list(found)


def _simple(known: Mapping[Factor, int], core: Sequence[Constraint]) -> list[Constraint]:
    """Other linear conditions with variables of a core, as 0 ≤ p is one."""
    variables = frozenset().union(*(factor.variables for factor, _ in core))
    return [
        (factor, mask)
        for factor, mask in known.items()
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

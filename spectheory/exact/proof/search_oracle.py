"""A search for lemmas and points: points show that regions are not empty, lemmas that they are.

In this order: the points that the parts inherit, known lemmas, other known points, a linear lemma, a new
point near known ones, a lemma with products of entries.  A part of which none says anything is walked.
Where a condition fails, lemmas with more products are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from flint import fmpq

from spectheory.exact.proof.certificates import Constraint, Lemmas, lemma_of
from spectheory.exact.proof.domain import Domain, Points
from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, ZERO, Factor, sign_of
from spectheory.exact.proof.oracle import Oracle
from spectheory.exact.proof.region import Region
from spectheory.pairs.contexts import Context

MOST_NEAR = 60
"""Conditions of a linear program."""
BASES, CHANGES = 5, 2
"""Known points that are changed, and changes of each."""
FRACTIONS = (2, 8, 100)
"""A variable is moved beyond a zero by these parts of the way to the end of its row."""
NEW_POINT = -1
"""A step of a search; the other steps are lemmas, with products up to a degree."""
DIFFERS = NEW_POINT, 3
"""For a region on which a row cannot be eliminated; it may be walked with that row instead."""
FAILS = NEW_POINT, *range(2, 13)
"""For a region on which a condition fails.  That of a comparison of two verifiers has degree 12."""
BY_EFFORT = (0, NEW_POINT, 2), (0,), (2,), FAILS
"""For a part of a split, and for one in which a sign is strict where a condition fails, by effort."""


class SearchOracle(Oracle):
    """An oracle that looks for lemmas and points; what it finds is known from then on.

    Attributes:
        aside: regions on which a condition fails, and of which no point is known; they are asked about last.
        used_points: the numbers of the points at which the verifier was asked.
    """

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain, Lemmas(domain.field), Points(domain))
        self.aside: list[Region] = []
        self.used_points: dict[int, None] = {}
        self._failed: set[tuple[int, frozenset[tuple[int, int]]]] = set()

    def start(self) -> Region:
        region = super().start()
        region.points = np.arange(len(self.points.points))
        return region

    def entered(self, region: Region, context: Context) -> list[Region]:
        parts = super().entered(region, context)
        for part in parts:
            part.points = self.points.with_supports(part.points, {context: part.supports[context]})
        return parts

    def closes(self, region: Region, part: Region, factor: Factor, effort: int = 0) -> bool:
        mask = part.signs[factor.number]
        part.points = region.points[(self.points.signs(factor)[region.points] & mask) != 0]
        if len(part.points) or super().closes(region, part, factor):
            return not len(part.points)
        return self._finds_lemma(part, BY_EFFORT[effort], factor if effort < 3 else None)

    def is_empty(self, region: Region, *, last: bool = False) -> bool:
        """With ``last``, a region is taken as empty, until all else is walked, if nothing else is known."""
        if len(region.points) or super().is_empty(region):
            return not len(region.points)
        if self._finds_lemma(region, FAILS if last else DIFFERS):
            return True
        if last and not len(region.points):
            self.aside.append(region)
        return last and not len(region.points)

    def settle_aside(self, check_time: Callable[[], None]) -> Region | None:
        """Ask again about the regions that were set aside, with all lemmas and points that are known by now.

        Args:
            check_time: called before each region; it may raise.

        Returns:
            A region with a point, if there is one.
        """
        regions, self.aside = self.aside, []
        for region in regions:
            check_time()
            if not self.is_empty(region, last=True):
                return region
        return None

    def point(self, region: Region) -> list[fmpq] | None:
        if not len(region.points):
            return None
        self.used_points[int(region.points[0])] = None
        return self.points.points[region.points[0]]

    def _finds_lemma(self, region: Region, steps: Sequence[int], factor: Factor | None = None) -> bool:
        """Whether a new lemma says that a region is empty; a point of it is kept in it.

        Args:
            region: of which no point is known.
            steps: what is tried.
            factor: with a new sign; conditions that are far from it are left out.
        """
        if self._find_known_point(region):
            return False
        constraints = self._all(region) if factor is None else self._near(region, factor)
        independent = region.independent() if region.equalities else ()
        some = [one for one in constraints if one[0] in independent]
        for step in steps:
            if step == NEW_POINT:
                if self._find_new_point(region):
                    return False
            elif (some and step > 2 and self._makes_lemma(some, step)) or self._makes_lemma(
                constraints, step
            ):
                return True
        return False

    def _makes_lemma(self, constraints: Sequence[Constraint], degree: int) -> bool:
        """Whether there is a new lemma of some conditions, with products up to a degree."""
        key = degree, frozenset((factor.number, mask) for factor, mask in constraints)
        if key in self._failed:
            return False
        found = lemma_of(constraints, degree)
        number = self.lemmas.add(found) if found else 0
        if not number:
            self._failed.add(key)
        return self._uses(number)

    def _all(self, region: Region) -> list[Constraint]:
        """The simplest conditions of a region."""
        factors = self.domain.field.factors
        found = [(factors[n], mask) for n, mask in region.signs.items() if mask != ANY]
        return sorted(found, key=lambda one: (one[0].degree, len(one[0].terms)))[:MOST_NEAR]

    def _near(self, region: Region, factor: Factor) -> list[Constraint]:
        """The condition on a factor after those that share variables with it, directly or through others."""
        near, variables = list[Constraint](), set(factor.variables)
        left = [one for one in self._all(region) if one[0] is not factor]
        for _ in range(3):
            more = [one for one in left if one[0].variables & variables]
            left = [one for one in left if not one[0].variables & variables]
            near += more
            variables.update(*(one[0].variables for one in more))
        return [*near, (factor, region.signs[factor.number])]

    def _find_known_point(self, region: Region) -> bool:
        """Look for points of a region among all known ones."""
        region.points = self.points.inside(region.signs, region.supports)
        return bool(len(region.points))

    def _find_new_point(self, region: Region) -> bool:
        """Look for a point of a region by changing points that lie in it but for a few signs.

        One variable is changed so that a factor, which is linear in it, changes its sign.
        """
        signs = [(self.domain.field.factors[number], mask) for number, mask in region.signs.items()]
        known = self.points.with_supports(np.arange(len(self.points.points)), region.supports)
        wrong = sum(((self.points.signs(factor)[known] & mask) == 0 for factor, mask in signs), 0 * known)
        bases = [self.points.points[number] for number in known[np.argsort(wrong, kind="stable")[:BASES]]]
        for _ in range(CHANGES):
            new = [point for base in bases for point in self._changed(region, base, signs)]
            if not new:
                return False
            matrix = np.array([list(map(float, point)) for point in new])
            wrong = sum(((self.points.signs_at(factor, matrix) & mask) == 0 for factor, mask in signs), 0)
            order = np.argsort(wrong, kind="stable")
            for number in order[: int((wrong == 0).sum())]:
                if all(sign_of(factor.at(new[number])) & mask for factor, mask in signs):
                    region.points = np.array([self.points.add(new[number])])
                    return True
            bases = [new[number] for number in order[:BASES]]
        return False

    def _changed(
        self, region: Region, point: list[fmpq], signs: Sequence[Constraint]
    ) -> Iterator[list[fmpq]]:
        """Points with another value of one variable, where a factor has a sign that it does not have here."""
        bound = {variable for equality in region.equalities for variable in equality.variables}
        for factor, mask in signs:
            if not sign_of(factor.at(point)) & mask:
                for variable in sorted(factor.variables, key=lambda v: (v in bound, v)):
                    if factor.degrees[variable] == 1:
                        yield from self._moved(region, point, factor, variable, mask)

    def _moved(
        self, region: Region, point: list[fmpq], factor: Factor, variable: int, mask: int
    ) -> Iterator[list[fmpq]]:
        """Points with another value of one variable, whose row stays a distribution."""
        domain = self.domain
        context, is_draft = domain.field.row_of[variable], domain.field.names[variable].startswith("q")
        support = region.supports[context] if is_draft else tuple(range(domain.vocab_size))
        places = domain.q if is_draft else domain.p
        free = [places[context, token] for token in support[:-1]]
        at_0, at_1 = list(point), list(point)
        at_0[variable], at_1[variable] = fmpq(0), fmpq(1)
        intercept = factor.at(at_0)
        slope = factor.at(at_1) - intercept
        if slope == 0 or variable not in free:
            return
        zero, most = -intercept / slope, 1 - sum((point[v] for v in free if v != variable), fmpq(0))
        values = [zero] if mask & ZERO else []
        if mask & (NEGATIVE | POSITIVE):
            values += [zero + (end - zero) / part for part in FRACTIONS for end in (most, fmpq(0))]
        for value in values:
            new = list(point)
            new[variable] = value
            if is_draft:
                new[places[context, support[-1]]] = most - value
            if 0 <= value <= most and sign_of(factor.at(new)) & mask:
                yield new

    def points_where(self, region: Region, factors: Sequence[Factor]) -> list[list[fmpq]]:
        """Points of a region, also some where factors are not 0."""
        found = [self.points.points[number] for number in region.points[:20]]
        for factor, mask in product(factors, (POSITIVE, NEGATIVE)):
            if region.signs.get(factor.number, ANY) & mask:
                part = region.copy()
                part.signs[factor.number] = mask
                if self._find_known_point(part) or self._find_new_point(part):
                    found.append(self.points.points[part.points[0]])
        return found

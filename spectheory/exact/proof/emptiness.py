"""Whether regions are empty, for a search: points show that they are not, lemmas that they are.

In this order: the points that the parts inherit, known lemmas, other known points, a linear lemma, a new
point near known ones, a lemma with products of entries.  A part of which none says anything waits until the
others are walked.  Then lemmas with more products are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np
from flint import fmpq

from spectheory.exact.proof.certificates import (
    Constraint,
    Lemmas,
    linear_lemma,
    product_lemma,
    row_lemma,
)
from spectheory.exact.proof.domain import Domain, Points
from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, ZERO, Factor, sign_of
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.renaming import Renamings

MOST_NEAR = 60
"""Conditions of a linear program."""
BASES, STEPS = 5, 2
"""Known points that are changed, and changes of each."""
FRACTIONS = (2, 8, 100)
"""A variable is moved beyond a zero by these parts of the way to the end of its row."""
LINEAR, ROWS, DEGREES = 0, 1, (2, 3, 4)
"""Efforts for a lemma: linear, with products of entries, with all products of a degree."""
SOON, LATER = (3,), (ROWS, *DEGREES)
"""Efforts for a region that waits, and where a condition fails.  For waiting regions of ``otm``, two thirds
of the lemmas have degree 3, none has a smaller one, and degree 4 costs more than the walk."""


class Finder:
    """A search for lemmas and points.

    Args:
        domain: the pairs.
        points, lemmas: that are known; what is found is added, with its renamings.
    """

    def __init__(self, domain: Domain, points: Points, lemmas: Lemmas) -> None:
        self._domain, self._points, self._lemmas = domain, points, lemmas
        self._renamings = Renamings(domain)
        self._examined: dict[object, tuple[int, np.ndarray]] = {}
        self._failed: set[tuple[int, frozenset[tuple[int, int]]]] = set()

    def examine(self, region: Region, part: Region, factor: Factor) -> int:
        """The number of a lemma that says that a part is empty, or 0; points of the part are kept in it.

        Args:
            region: that is split.
            part: of it.
            factor: whose sign is new.
        """
        mask = part.signs[factor.number]
        part.points = region.points[(self._points.signs(factor)[region.points] & mask) != 0]
        if len(part.points):
            return 0
        key = frozenset(part.signs.items()), frozenset(part.supports.items())
        if key not in self._examined:
            lemma = self._lemmas.covering(part.signs, factor)
            if not lemma and not self._find_known_point(part):
                near = self._near(part, factor)
                lemma = self._lemma(part, near, LINEAR)
                if not lemma and not self._find_new_point(part):
                    lemma = self._lemma(part, near, ROWS)
            self._examined[key] = lemma, part.points
        lemma, part.points = self._examined[key]
        return lemma

    def lemma_of(self, region: Region, *, last: bool) -> int:
        """The number of a lemma that says that a region is empty, or 0; a point of it is kept in it."""
        if len(region.points):
            return 0
        lemma = self._lemmas.covering(region.signs)
        if lemma or self._find_known_point(region) or self._find_new_point(region):
            return lemma
        return self._first_lemma(region, self._all(region), LATER if last else SOON)

    def derived(self, region: Region, weak: Sequence[Factor], effort: int) -> list[int]:
        """The place of a factor in ``weak`` that is 0 on a region, and the number of a lemma that says so;
        nothing if none is found.
        """
        for place, factor in enumerate(weak):
            strict = region.signs[factor.number] & ~ZERO
            if (self._points.signs(factor)[region.points] & strict).any():
                continue
            part = region.child(factor, strict)
            if part is None:
                return [place, 0]
            lemma = self._lemmas.covering(part.signs, factor)
            if not lemma and effort < DEGREES[0]:
                lemma = self._lemma(part, self._near(part, factor), effort)
            elif not lemma:
                part.points = region.points[:0]
                lemma = self.lemma_of(part, last=True)
                region.points = np.append(region.points, part.points)
            if lemma:
                return [place, lemma]
        return []

    def _lemma(self, region: Region, constraints: Sequence[Constraint], effort: int) -> int:
        """The number of a new lemma from some conditions of a region, or 0."""
        key = effort, frozenset((factor.number, mask) for factor, mask in constraints)
        if key in self._failed:
            return 0
        field = self._domain.field
        if effort == LINEAR:
            found = linear_lemma(constraints, field)
        else:
            found = (
                row_lemma(constraints, field) if effort == ROWS else product_lemma(constraints, effort, field)
            )
        number = 0 if found is None else self._lemmas.add(found)
        if not found or not number:
            self._failed.add(key)
            return 0
        for renamed in self._renamings.lemmas(found, region.supports):
            self._lemmas.add(renamed)
        return number

    def _first_lemma(self, region: Region, constraints: Sequence[Constraint], efforts: Iterable[int]) -> int:
        found = (self._lemma(region, constraints, effort) for effort in efforts)
        return next((number for number in found if number), 0)

    def _all(self, region: Region) -> list[Constraint]:
        """The simplest conditions of a region."""
        factors = self._domain.field.factors
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
        known = np.arange(len(self._points.points))
        for number, mask in reversed(region.signs.items()):  # the newest signs exclude most points
            known = known[(self._points.signs(self._domain.field.factors[number])[known] & mask) != 0]
            if not len(known):
                return False
        region.points = self._points.with_supports(known, region.supports)
        return bool(len(region.points))

    def _find_new_point(self, region: Region) -> bool:
        """Look for a point of a region by changing points that lie in it but for a few signs.

        One variable is changed so that a factor, which is linear in it, changes its sign.
        """
        signs = [(self._domain.field.factors[number], mask) for number, mask in region.signs.items()]
        known = self._points.with_supports(np.arange(len(self._points.points)), region.supports)
        wrong = sum(((self._points.signs(factor)[known] & mask) == 0 for factor, mask in signs), 0 * known)
        bases = [self._points.points[number] for number in known[np.argsort(wrong, kind="stable")[:BASES]]]
        for _ in range(STEPS):
            new = [point for base in bases for point in self._changed(region, base, signs)]
            if not new:
                return False
            matrix = np.array([list(map(float, point)) for point in new])
            wrong = sum(((self._points.signs_at(factor, matrix) & mask) == 0 for factor, mask in signs), 0)
            order = np.argsort(wrong, kind="stable")
            for number in order[: int((wrong == 0).sum())]:
                if all(sign_of(factor.at(new[number])) & mask for factor, mask in signs):
                    renamed = self._renamings.points(new[number])
                    region.points = np.array([self._points.add([new[number], *renamed])])
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
        domain = self._domain
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
        found = [self._points.points[number] for number in region.points[:20]]
        for factor, mask in product(factors, (POSITIVE, NEGATIVE)):
            if region.signs.get(factor.number, ANY) & mask:
                part = region.copy()
                part.signs[factor.number] = mask
                if self._find_known_point(part) or self._find_new_point(part):
                    found.append(self._points.points[part.points[0]])
        return found

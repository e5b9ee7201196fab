"""Whether regions are empty, for a search: points show that they are not, lemmas that they are.

In this order: the points that the parts inherit, known lemmas, a linear lemma, a new point near the old ones,
a lemma with products of entries.  A part of which none says anything is walked on.  More is asked only
where a condition fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from flint import fmpq

from spectheory.exact.proof.certificates import (
    Constraint,
    Lemma,
    Lemmas,
    linear_lemma,
    product_lemma,
    row_lemma,
)
from spectheory.exact.proof.domain import Domain, Points, Support
from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, ZERO, Factor, Function, sign_of
from spectheory.exact.proof.region import Oracle, Region, SplitError
from spectheory.exact.proof.renaming import Renamings
from spectheory.exact.proof.solver import point_or_core
from spectheory.pairs.contexts import Context

SPLIT, DERIVED, EMPTY, GUIDE, REFERENCE, CHOICE = range(6)
"""The kinds of entries of a log."""
DOUBTFUL = -1
"""In place of the number of a lemma after a split, for a part that waits."""
MOST_NEAR, MOST_WHOLE = 60, 80
"""Conditions of a linear program."""
MOST_TRIES, BASES = 40, 5
"""New points that are tried, from how many old ones."""
BRIEFLY, SECONDS, LONGER = 0.05, 2.0, (20.0,)
"""For a question to the solver: about a doubtful region, where a condition fails, and at the end."""


class Search(Oracle):
    """The answers that a search finds, and their log.

    Attributes:
        points, lemmas: that were found.
        log: the answers as lists of integers, for ``recorded.Recorded``.
        polynomials: the factors in the log, with their numbers there.
        aside: regions on which a condition fails, asked about last, with their entries of the log.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain, self.points, self.lemmas = domain, Points(domain), Lemmas(domain.field)
        self._renamings = Renamings(domain)
        self.log: list[list[int]] = []
        self.polynomials: dict[Factor, int] = {}
        self.aside: list[tuple[Region, list[int]]] = []
        self._examined: dict[Any, tuple[int | None, np.ndarray]] = {}
        self._failed: set[tuple[bool, frozenset[tuple[int, int]]]] = set()
        self._cores: dict[Any, tuple[int | None, np.ndarray]] = {}

    def start(self, domain: Domain) -> Region:
        return Region(domain, np.arange(len(self.points.points)))

    def entered(self, region: Region, context: Context) -> list[Region]:
        parts, domain = [], self.domain
        for support in domain.supports(context):
            part = region.entered(context, support)
            part.points = self._with_support(part.points, context, support)
            parts.append(part)
        return parts

    def number_of(self, factor: Factor) -> int:
        """The number of a factor in the log."""
        return self.polynomials.setdefault(factor, len(self.polynomials))

    def parts(self, region: Region, split: SplitError) -> list[Region]:
        entry, open_parts = [SPLIT, self.number_of(split.factor)], []
        for mask in split.masks:
            part = region.child(split.factor, mask)
            if part is None:
                continue
            lemma = self._examine(region, part, split.factor, mask)
            part.is_doubtful = lemma is None and not len(part.points)
            entry.append(DOUBTFUL if part.is_doubtful else 0 if lemma is None else lemma + 1)
            if lemma is None:
                open_parts.append(part)
        self.log.append(entry)
        return open_parts

    def _examine(self, region: Region, part: Region, factor: Factor, mask: int) -> int | None:
        """The number of a lemma that says that a part is empty; or a point of the part is looked for."""
        part.points = region.points[(self.points.signs(factor)[region.points] & mask) != 0]
        if len(part.points) or self._find_point(part):
            return None
        key = frozenset(part.signs.items()), frozenset(part.supports.items())
        if key not in self._examined:
            lemma = self._lemma(part, factor, mask, False)
            if lemma is None:
                new = self._near_point(region, part, factor, mask)
                if new is None:
                    lemma = self._lemma(part, factor, mask, True)
                else:
                    self._keep_point(part, new)
            self._examined[key] = lemma, part.points
        lemma, part.points = self._examined[key]
        return lemma

    def _find_point(self, region: Region) -> bool:
        """Look for points of a region among all points that were added."""
        points, domain = self.points, self.domain
        found = np.arange(points.num_drawn, len(points.points))
        for number, mask in region.signs.items():
            if not len(found):
                return False
            found = found[(points.signs(domain.field.factors[number])[found] & mask) != 0]
        for context, support in region.supports.items():
            found = self._with_support(found, context, support)
        region.points = found
        return bool(len(found))

    def _with_support(self, points: np.ndarray, context: Context, support: Support) -> np.ndarray:
        """The points at which the draft row has a support."""
        if not self.domain.has_draft(context):
            return points
        columns = [self.domain.q[context, token] for token in range(self.domain.vocab_size)]
        wanted = np.array([token in support for token in range(self.domain.vocab_size)])
        values = self.points.matrix[points][:, columns]
        return points[((values > 0) == wanted).all(axis=1)]

    def _keep_point(self, region: Region, point: list[fmpq]) -> None:
        """Keep a point of a region, and its renamings for others."""
        region.points = np.array([self.points.add([point, *self._renamings.points(point)])])

    def _keep_lemma(self, lemma: Lemma, region: Region) -> int | None:
        """Keep a lemma about a region, and its renamings for others; ``None`` if it is wrong."""
        number = self.lemmas.add(lemma)
        if number is not None:
            for renamed in self._renamings.lemmas(lemma, region.supports):
                self.lemmas.add(renamed)
        return number

    def _lemma(self, region: Region, factor: Factor, mask: int, with_products: bool) -> int | None:
        known = self.lemmas.covering(region.signs, factor)
        if known is not None or mask == NEGATIVE | POSITIVE:
            return known
        constraints = self._near_constraints(region, factor, mask)
        key = with_products, frozenset((near.number, signs) for near, signs in constraints)
        if key in self._failed:
            return None
        found = (row_lemma if with_products else linear_lemma)(constraints, self.domain.field)
        number = None if found is None else self._keep_lemma(found, region)
        if number is None:
            self._failed.add(key)
        return number

    def _near_constraints(self, region: Region, factor: Factor, mask: int) -> list[Constraint]:
        """A condition after those that share variables with it, directly or through others."""
        factors = self.domain.field.factors
        left = [(factors[n], m) for n, m in region.signs.items() if m != ANY and n != factor.number]
        near, variables = list[Constraint](), set(factor.variables)
        for _ in range(3):
            more = [constraint for constraint in left if constraint[0].variables & variables]
            left = [constraint for constraint in left if not constraint[0].variables & variables]
            near += more
            variables.update(*(constraint[0].variables for constraint in more))
            if not more or len(near) > MOST_NEAR:
                break
        near.sort(key=lambda constraint: (constraint[0].degree, len(constraint[0].terms)))
        return [*near[:MOST_NEAR], (factor, mask)]

    def _near_point(self, region: Region, part: Region, factor: Factor, mask: int) -> list[fmpq] | None:
        """A point of the part, from points of the region: one variable is changed so that a factor, which is
        linear in it, changes its sign.
        """
        tries = 0
        bases = region.points[:: max(1, len(region.points) // BASES)][:BASES]
        bound = {variable for equality in part.equalities for variable in equality.variables}
        variables = sorted(factor.variables, key=lambda v: (v in bound, v))
        for number, variable in product(bases.tolist(), variables):
            if factor.degrees[variable] != 1:
                continue
            for new in self._changed(part, self.points.points[number], factor, variable, mask):
                tries += 1
                if self._is_inside(part, new, variable):
                    return new
                if tries > MOST_TRIES:
                    return None
        return None

    def _changed(
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
            values += [zero + (end - zero) / part for part in (2, 8, 100) for end in (most, fmpq(0))]
        for value in values:
            new = list(point)
            new[variable] = value
            if is_draft:
                new[places[context, support[-1]]] = most - value
            if 0 <= value <= most and sign_of(factor.at(new)) & mask:
                yield new

    def _is_inside(self, region: Region, point: list[fmpq], changed: int | None = None) -> bool:
        """Whether a point lies in a region, or goes on to after a variable has changed."""
        for number, mask in region.signs.items():
            factor = self.domain.field.factors[number]
            if (changed is None or changed in factor.variables) and not sign_of(factor.at(point)) & mask:
                return False
        return True

    def derive(self, region: Region, effort: int) -> int:
        entry, found = [DERIVED], 0
        self.log.append(entry)
        while (derived := self._derived(region, effort)) is not None:
            factor, lemma = derived
            entry += [self.number_of(factor), lemma + 1]
            found += 1
            if not set_equal(region, factor):
                return -1
        return found

    def _derived(self, region: Region, effort: int) -> tuple[Factor, int] | None:
        """A factor whose sign is ≥ 0 or ≤ 0, and the number of a lemma that excludes all but 0."""
        factors = self.domain.field.factors
        for number in sorted(region.signs, key=lambda number: factors[number].key):
            mask, factor = region.signs[number], factors[number]
            strict = mask & ~ZERO
            if mask not in (NEGATIVE | ZERO, ZERO | POSITIVE):
                continue
            if (self.points.signs(factor)[region.points] & strict).any():
                continue
            part = region.child(factor, strict)
            if part is None:
                continue
            part.points = region.points[:0]
            lemma = (
                self._core_lemma(part, SECONDS)
                if effort == 2
                else self._lemma(part, factor, strict, effort == 1)
            )
            if lemma is not None:
                return factor, lemma
            region.points = np.append(region.points, part.points)
        return None

    def is_empty(self, region: Region, *, last: bool = False) -> bool:
        if len(region.points):
            self.log.append([EMPTY, 0])
            return False
        lemma = self.lemmas.covering(region.signs)
        if lemma is None:
            lemma = self._core_lemma(region, BRIEFLY if region.is_doubtful else SECONDS)
        entry = [EMPTY, 0 if lemma is None else lemma + 1]
        self.log.append(entry)
        if lemma is None and last and not len(region.points):
            self.aside.append((region, entry))
            return True
        return lemma is not None

    def settle_aside(self) -> Region | None:
        """Ask longer about the regions that were set aside.

        Returns:
            A region with a point, if there is one.
        """
        for seconds, (region, entry) in product(LONGER, list(self.aside)):
            lemma = self._core_lemma(region, seconds)
            if len(region.points):
                return region
            if lemma is not None:
                entry[1] = lemma + 1
                self.aside = [one for one in self.aside if one[1] is not entry]
        return None

    def _core_lemma(self, region: Region, seconds: float) -> int | None:
        """A lemma about all signs of a region, or a point of the region."""
        key = frozenset(region.signs.items()), frozenset(region.supports.items()), seconds
        if key not in self._cores:
            number, field = None, self.domain.field
            whole = [(field.factors[n], mask) for n, mask in region.signs.items() if mask != ANY]
            found = point_or_core(whole, seconds)
            if isinstance(found, dict):
                self._take_point(region, found)
            elif found:
                kept = (self._keep_lemma(one, region) for one in self._core_candidates(found, whole))
                number = next((lemma for lemma in kept if lemma is not None), None)
            self._cores[key] = number, region.points
        number, region.points = self._cores[key]
        return number

    def _core_candidates(self, core: Sequence[Constraint], whole: Sequence[Constraint]) -> Iterator[Lemma]:
        """Lemmas for a core, and for a core with the entries of its rows, of growing degree."""
        field = self.domain.field
        variables = {variable for factor, _ in core for variable in factor.variables}
        entries = [one for one in whole if one[0].degree == 1 and one[0].variables <= variables]
        wide = [*core, *(one for one in entries if one not in core)]
        top = max(factor.degree for factor, _ in core)
        for few, more in (
            (True, 0),
            (False, None),
            (True, 1),
            (False, 0),
            (False, 1),
            (True, 2),
            (True, 3),
            (False, 2),
        ):
            some = core if few else wide
            found = row_lemma(some, field) if more is None else product_lemma(some, top + more, field)
            if found is not None:
                yield found

    def _take_point(self, region: Region, values: dict[int, fmpq]) -> None:
        """Keep a solver's point if it lies in the region; the other rows are generic."""
        domain = self.domain
        point = [values.get(variable, fmpq(0)) for variable in range(len(domain.field.names))]
        for context, support in region.supports.items():
            if domain.has_draft(context):
                rest = (point[domain.q[context, token]] for token in support[:-1])
                point[domain.q[context, support[-1]]] = 1 - sum(rest, fmpq(0))
        if self._is_inside(region, point):
            self._keep_point(region, point)

    def guide(self, region: Region) -> Sequence[fmpq] | None:
        number = int(region.points[0]) if len(region.points) else -1
        self.log.append([GUIDE, number + 1])
        return None if number < 0 else self.points.points[number]

    def may_be_reference(self, region: Region) -> bool:
        good = bool(len(region.points))
        self.log.append([REFERENCE, int(good)])
        return good

    def choose(self, region: Region, functions: Sequence[Function]) -> int:
        best = 0
        if len(region.points):
            point = self.points.points[region.points[0]]
            values = [self.domain.field.at(function, point) for function in functions]
            best = values.index(max(values))
        self.log.append([CHOICE, best])
        return best

    def points_where(self, region: Region, factors: Sequence[Factor]) -> list[list[fmpq]]:
        """Points of a region, also some where factors are not 0."""
        found = [self.points.points[number] for number in region.points[:20]]
        for factor, mask in product(factors, (POSITIVE, NEGATIVE)):
            if region.signs.get(factor.number, ANY) & mask:
                part = region.copy()
                part.signs[factor.number] = mask
                new = self._near_point(region, part, factor, mask)
                found += [] if new is None else [new]
        return found


def set_equal(region: Region, factor: Factor) -> bool:
    """Note on a region that a factor is 0 there; False if the region turned out to be empty."""
    region.signs[factor.number] = ZERO
    region.equalities.append(factor)
    return region.use_equalities()

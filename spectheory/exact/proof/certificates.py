"""Lemmas: sign conditions without a solution, each with an identity in integers.

An identity is a list of terms whose sum is the polynomial 0.  A term is an integer times a product of
polynomials of the conditions, turned to be at least 0.  The integer is positive, unless one of the
polynomials is 0.  One product is above 0.  Such terms cannot sum to 0 at a point, so no point satisfies the
conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, lcm

import highspy
import numpy as np
from flint import fmpq, fmpq_mat

from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, ZERO, Factor, Field
from spectheory.exact.proof.region import Region

Constraint = tuple[Factor, int]
"""A factor and the signs that it may have."""
Term = tuple[int, tuple[int, ...]]
"""A coefficient, and the conditions that are multiplied; one ≠ 0 occurs an even number of times."""
Packed = dict[int, int]
"""``Factor.packed_terms`` of a polynomial."""
Products = dict[tuple[int, ...], Packed]
"""Conditions in ascending order -> the product of their polynomials, turned to be at least 0."""
MOST_COLUMNS = 9000
"""Larger programs cost more than the regions that they close."""
LARGEST = 10**300
"""Of the coefficients, for a program in floats."""
TURNED = (NEGATIVE, NEGATIVE | ZERO)
"""The signs of a polynomial f for which -f is at least 0."""
INEQUALITIES = (*TURNED, POSITIVE, ZERO | POSITIVE)
SIGNED = (ZERO, *INEQUALITIES)


@dataclass(frozen=True)
class Lemma:
    """Conditions without a solution, and the identity that says so."""

    constraints: tuple[Constraint, ...]
    terms: tuple[Term, ...]

    def covers(self, region: Region) -> bool:
        """Whether the conditions hold on a region."""
        return all(not region.signs_of(factor) & ~mask for factor, mask in self.constraints)

    def holds(self, field: Field) -> bool:
        """Whether every term has its sign, one is above 0, and the sum is the polynomial 0."""
        context, strict = field.context, False
        total = context.constant(0)
        for coefficient, indices in self.terms:
            product, masks = context.constant(coefficient), set[int]()
            for index in set(indices):
                factor, mask = self.constraints[index]
                power = indices.count(index)
                if power % 2 and mask not in SIGNED:
                    return False
                product = product * (-factor.polynomial if mask in TURNED else factor.polynomial) ** power
                masks.add(mask)
            if coefficient <= 0 and ZERO not in masks:
                return False
            strict = strict or not any(mask & ZERO for mask in masks)
            total = total + product
        return strict and bool(total.is_zero())


class Lemmas:
    """The lemmas of a proof."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self.lemmas: list[Lemma] = []
        self._with: dict[int, list[int]] = {}

    def covering(self, region: Region, whole: Region | None = None) -> int:
        """The number of a lemma that says that a region is empty, or 0.

        Args:
            region: the region.
            whole: of which it is a part: only lemmas that speak of a sign that is new in it are asked.
        """
        some: Iterable[int] = range(1, len(self.lemmas) + 1)
        if whole is not None:
            new = (number for number, mask in region.signs.items() if whole.signs.get(number) != mask)
            some = (number for factor in new for number in self._with.get(factor, ()))
        return next((number for number in some if self.lemmas[number - 1].covers(region)), 0)

    def add(self, lemma: Lemma) -> int:
        """Check a lemma's identity and keep it; returns its number, from 1, or 0 if it is wrong."""
        if not lemma.holds(self._field):
            return 0
        self.lemmas.append(lemma)
        for factor, _ in lemma.constraints:
            self._with.setdefault(factor.number, []).append(len(self.lemmas))
        return len(self.lemmas)


def _multiplied(one: Packed, other: Packed) -> Packed:
    product: Packed = {}
    for a, c in one.items():
        for b, d in other.items():
            product[a + b] = product.get(a + b, 0) + c * d
    return product


def _usable(constraints: Sequence[Constraint]) -> Products:
    """What is at least 0 by each condition: f, -f, or f² where f is not 0."""
    found: Products = {}
    for index, (factor, mask) in enumerate(constraints):
        terms = factor.packed_terms
        if mask == NEGATIVE | POSITIVE:
            found[index, index] = _multiplied(terms, terms)
        elif mask in SIGNED:
            found[(index,)] = {m: -c for m, c in terms.items()} if mask in TURNED else terms
    return found


def lemma_of(constraints: Sequence[Constraint], degree: int) -> Lemma | None:
    """A lemma that adds multiples of conditions and of products.

    A product has up to ``degree`` entries, or one other condition and entries up to that degree, or that
    condition and one entry if ``degree`` is not 0.  Entries are the linear conditions that do not follow from
    others.
    """
    usable, entries = _usable(constraints), _facets(constraints) if degree else []
    if comb(len(entries) + degree, degree) > MOST_COLUMNS:
        return None
    products: Products = {(): {0: 1}}
    longest = products
    for _ in range(degree):
        longest = {
            (*indices, entry): _multiplied(terms, usable[(entry,)])
            for indices, terms in longest.items()
            for entry in entries
            if entry >= max(indices, default=0)
        }
        products = products | longest
    found = dict(products)
    for place, terms in usable.items():
        if place[0] not in entries:
            left = max(degree - len(place) * constraints[place[0]][0].degree, min(degree, 1))
            found |= {
                (*indices, *place): _multiplied(product, terms)
                for indices, product in products.items()
                if len(indices) <= left
            }
    return _solved(found, constraints)


def _facets(constraints: Sequence[Constraint]) -> list[int]:
    """The linear conditions that do not follow from the other ones."""
    facets = [
        i for i, (factor, mask) in enumerate(constraints) if factor.degree == 1 and mask in INEQUALITIES
    ]
    for i in reversed(facets):
        factor, mask = constraints[i]
        others = [constraints[j] for j in facets if j != i]
        if lemma_of([*others, (factor, ANY & ~mask)], 0):
            facets = [j for j in facets if j != i]
    return facets


def _solved(products: Products, constraints: Sequence[Constraint]) -> Lemma | None:
    """Weights of products by a linear program in floats, whose support is solved again in rationals.

    One product above 0 is enough.  Conditions that it does not contain may hold with equality.
    """
    if len(products) > MOST_COLUMNS or any(abs(c) > LARGEST for p in products.values() for c in p.values()):
        return None
    columns = [*products]
    is_free = [any(constraints[i][1] == ZERO for i in indices) for indices in columns]
    equations = [
        terms if any(constraints[i][1] & ZERO for i in indices) else terms | {STRICT: 1}
        for indices, terms in products.items()
    ]
    weights = _program(columns, equations, np.array(is_free))
    support = [] if weights is None else [n for n, weight in enumerate(weights) if abs(weight) > 1e-9]
    solution = _exact([equations[number] for number in support])
    if solution is None or any(v < 0 and not is_free[n] for v, n in zip(solution, support, strict=True)):
        return None
    scale = lcm(*(int(value.q) for value in solution))
    terms = [
        (int(value * scale), columns[number])
        for value, number in zip(solution, support, strict=True)
        if value
    ]
    strict = (indices for _, indices in terms if not any(constraints[i][1] & ZERO for i in indices))
    kept = min(strict, key=lambda indices: len(set(indices)))
    used = sorted({index for _, indices in terms for index in indices})
    conditions = [(constraints[i][0], constraints[i][1] | (0 if i in kept else ZERO)) for i in used]
    moved = [(value, tuple(used.index(index) for index in indices)) for value, indices in terms]
    return Lemma(tuple(conditions), tuple(moved))


STRICT = -1
"""In place of a monomial: the equation that the columns that are above 0 weigh 1 together."""


def _program(
    columns: Sequence[tuple[int, ...]], equations: Sequence[Packed], free: np.ndarray
) -> np.ndarray | None:
    """Weights that satisfy the equations, at least 0 but for equalities; short products are cheap."""
    rows, infinity = {STRICT: 0}, highspy.kHighsInf
    places = [rows.setdefault(monomial, len(rows)) for terms in equations for monomial in terms]
    values = [float(coefficient) for terms in equations for coefficient in terms.values()]
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(columns), len(rows)
    program.col_cost_ = np.where(free, 0.0, [len(indices) + 0.01 for indices in columns])
    program.col_lower_ = np.where(free, -infinity, 0.0)
    program.col_upper_ = np.full(len(columns), infinity)
    program.row_lower_ = program.row_upper_ = np.array([1.0] + [0.0] * (len(rows) - 1))
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.cumsum([0, *map(len, equations)]).astype(np.int32)
    program.a_matrix_.index_ = np.array(places, dtype=np.int32)
    program.a_matrix_.value_ = np.array(values)
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("solver", "simplex")
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(solver.getSolution().col_value)


def _exact(equations: Sequence[Packed]) -> list[fmpq] | None:
    """The weights in rationals."""
    rows, count = {STRICT: 0}, len(equations)
    for monomial in (monomial for terms in equations for monomial in terms):
        rows.setdefault(monomial, len(rows))
    matrix = [[fmpq(0)] * (count + 1) for _ in rows]
    matrix[0][count] = fmpq(1)
    for number, terms in enumerate(equations):
        for monomial, coefficient in terms.items():
            matrix[rows[monomial]][number] = fmpq(coefficient)
    reduced, rank = fmpq_mat(matrix).rref()
    solution = [fmpq(0)] * count
    for row in range(rank):
        pivot = next(column for column in range(count + 1) if reduced[row, column] != 0)
        if pivot == count:
            return None
        solution[pivot] = reduced[row, count]
    return solution

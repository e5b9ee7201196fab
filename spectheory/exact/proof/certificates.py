"""Lemmas: sign conditions without a solution, each with an identity in rationals.

An identity is a list of terms whose sum is the polynomial 0.  A term is a rational times a product of
polynomials of the conditions, turned to be at least 0.  The rational is positive, unless one of the
polynomials is 0.  One product is above 0.  Such terms cannot sum to 0 at a point, so no point satisfies the
conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import highspy
import numpy as np
from flint import fmpq, fmpq_mat

from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, ZERO, Factor, Field

Constraint = tuple[Factor, int]
"""A factor and the signs that it may have."""
Signs = Mapping[int, int]
"""The number of a factor -> the signs that it may have; all for the others."""
Term = tuple[fmpq, tuple[int, ...]]
"""A coefficient, and the conditions that are multiplied; one ≠ 0 occurs an even number of times."""
Packed = dict[int, int]
"""``Factor.packed_terms`` of a polynomial."""
Products = dict[tuple[int, ...], Packed]
"""Conditions in ascending order -> the product of their polynomials, turned to be at least 0."""
MOST_COLUMNS, MOST_ROW_PRODUCTS = 9000, 300
"""Larger programs cost more than the regions that they close."""
LARGEST = 10**300
"""Of the coefficients, for a program in floats."""
TURNED = (NEGATIVE, NEGATIVE | ZERO)
"""The signs of a polynomial f for which -f is at least 0."""
SIGNED = (*TURNED, ZERO, POSITIVE, ZERO | POSITIVE)


@dataclass(frozen=True)
class Lemma:
    """Conditions without a solution, and the identity that says so."""

    constraints: tuple[Constraint, ...]
    terms: tuple[Term, ...]

    def covers(self, signs: Signs) -> bool:
        """Whether the conditions hold wherever the signs do."""
        return all(not signs.get(factor.number, ANY) & ~mask for factor, mask in self.constraints)

    def holds(self, field: Field) -> bool:
        """Whether every term has its sign, one is above 0, and the sum is the polynomial 0."""
        context, strict = field.context, False
        scale = lcm(*(int(coefficient.q) for coefficient, _ in self.terms))
        total = context.constant(0)
        for coefficient, indices in self.terms:
            product, masks = context.constant(int(coefficient * scale)), set[int]()
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

    def covering(self, signs: Signs, factor: Factor | None = None) -> int:
        """The number of a lemma that says that no point has these signs, and speaks of a factor if given; 0
        if there is none.
        """
        some = range(1, len(self.lemmas) + 1) if factor is None else self._with.get(factor.number, ())
        return next((number for number in some if self.lemmas[number - 1].covers(signs)), 0)

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


def linear_lemma(constraints: Sequence[Constraint]) -> Lemma | None:
    """A lemma that adds multiples of the conditions."""
    return _solved({(): {0: 1}} | _usable(constraints), constraints)


def row_lemma(constraints: Sequence[Constraint], field: Field) -> Lemma | None:
    """A lemma with few products: of a condition and an entry of a row, of the entries in a monomial of a
    condition, and of one entry of every row.
    """
    usable = {place[0]: terms for place, terms in _usable(constraints).items() if len(place) == 1}
    entries = {i: terms for i, terms in usable.items() if constraints[i][0].degree == 1}
    found: Products = {(): {0: 1}}
    found.update({(i,): terms for i, terms in usable.items()})

    def keep(indices: tuple[int, ...], terms: Packed) -> None:
        found.setdefault(tuple(sorted(indices)), terms)

    for i, terms in usable.items():
        for j, entry in entries.items():
            if constraints[i][0].degree > 1 or j >= i:
                keep((i, j), _multiplied(terms, entry))
    variable_of = {min(constraints[i][0].variables): i for i, terms in entries.items() if len(terms) == 1}
    for monomial in (monomial for terms in usable.values() for monomial in terms):
        powers = enumerate(monomial.to_bytes(len(field.names), "little"))
        known = [variable_of.get(v, -1) for v, exponent in powers for _ in range(exponent)]
        if known and -1 not in known:
            keep(tuple(known), {monomial: 1})
    for letter in ("p", "q"):
        products: Products = {(): {0: 1}}
        by_row: dict[Any, list[int]] = {}
        for i in entries:
            factor = constraints[i][0]
            if len(factor.rows) == 1 and field.names[min(factor.variables)].startswith(letter):
                by_row.setdefault(min(factor.rows), []).append(i)
        for row in sorted(by_row, key=lambda context: (len(context), context)):
            if len(products) <= MOST_ROW_PRODUCTS:
                products |= {
                    (*indices, i): _multiplied(terms, entries[i])
                    for indices, terms in products.items()
                    for i in by_row[row]
                }
        for indices, terms in products.items():
            keep(indices, terms)
    return _solved(found, constraints)


def product_lemma(constraints: Sequence[Constraint], degree: int) -> Lemma | None:
    """A lemma with all products of conditions up to a total degree."""
    usable = [
        (place, terms, len(place) * constraints[place[0]][0].degree)
        for place, terms in _usable(constraints).items()
    ]
    found, last = dict[tuple[int, ...], Packed]({(): {0: 1}}), [((), {0: 1}, 0, 0)]
    while last:
        longer: list[Any] = []
        for indices, terms, size, first in last:
            for number, (more, factor_terms, more_size) in enumerate(usable[first:], first):
                if size + more_size <= degree:
                    product = _multiplied(terms, factor_terms)
                    found[*indices, *more] = product
                    longer.append(((*indices, *more), product, size + more_size, number))
            if len(found) > MOST_COLUMNS:
                return None
        last = longer
    return _solved(found, constraints)


def _solved(products: Products, constraints: Sequence[Constraint]) -> Lemma | None:
    """Weights of products by a linear program in floats, whose support is solved again in rationals."""
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
    terms = [(value, columns[number]) for value, number in zip(solution, support, strict=True) if value]
    used = sorted({index for _, indices in terms for index in indices})
    moved = [(value, tuple(used.index(index) for index in indices)) for value, indices in terms]
    return Lemma(tuple(constraints[index] for index in used), tuple(moved))


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

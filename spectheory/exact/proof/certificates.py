"""Lemmas: sign conditions without a solution, each with an identity in rationals.

An identity is a list of terms whose sum is the polynomial 0.  A term is a positive number times a product
of polynomials that are at least 0 under the conditions, or a monomial times a polynomial that is 0.  One term
of the first kind is above 0.  Such terms cannot sum to 0 at a point, so no point satisfies the conditions.
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
Packed = dict[int, int]
"""``Factor.packed_terms`` of a polynomial."""
MOST_COLUMNS, MOST_ROW_PRODUCTS, MOST_OF_A_DEGREE = 1500, 300, 4000
"""Larger programs cost more than the regions that they close."""
LARGEST = 10**300
"""Of the coefficients, for a program in floats."""


@dataclass(frozen=True)
class Term:
    """A term of an identity.

    Attributes:
        coefficient: a rational; positive where ``multiplier`` is ``None``.
        indices: of the conditions whose polynomials, turned to be at least 0, are multiplied.  A condition
            ≠ 0 occurs an even number of times.
        multiplier: the exponents of a monomial, for a term with a polynomial that is 0.
    """

    coefficient: fmpq
    indices: tuple[int, ...]
    multiplier: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Lemma:
    """Conditions without a solution, and the identity that says so."""

    constraints: tuple[Constraint, ...]
    terms: tuple[Term, ...]

    def covers(self, signs: Signs) -> bool:
        """Whether the conditions hold wherever the signs do."""
        return all(not signs.get(factor.number, ANY) & ~mask for factor, mask in self.constraints)


class Lemmas:
    """The lemmas of a proof."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self.lemmas: list[Lemma] = []
        self._with: dict[int, list[int]] = {}
        self._numbers: dict[frozenset[Constraint], int] = {}

    def covering(self, signs: Signs, factor: Factor | None = None) -> int | None:
        """The number of a lemma that says that no point has these signs, and speaks of a factor if given."""
        some = range(len(self.lemmas)) if factor is None else self._with.get(factor.number, ())
        return next((number for number in some if self.lemmas[number].covers(signs)), None)

    def add(self, lemma: Lemma) -> int | None:
        """Check a lemma's identity and keep it; ``None`` if it is wrong."""
        key = frozenset(lemma.constraints)
        if key in self._numbers:
            return self._numbers[key]
        if not self._holds(lemma):
            return None
        self._numbers[key] = len(self.lemmas)
        for factor, _ in lemma.constraints:
            self._with.setdefault(factor.number, []).append(len(self.lemmas))
        self.lemmas.append(lemma)
        return len(self.lemmas) - 1

    def _holds(self, lemma: Lemma) -> bool:
        """Whether every term has its sign, one is above 0, and the sum is the polynomial 0."""
        context, strict = self._field.context, False
        scale = lcm(*(int(term.coefficient.q) for term in lemma.terms))
        total = context.constant(0)
        for term in lemma.terms:
            product = context.constant(int(term.coefficient * scale))
            conditions = [lemma.constraints[index] for index in term.indices]
            if term.multiplier is not None:
                if len(conditions) != 1 or conditions[0][1] != ZERO:
                    return False
                product = product * context.from_dict({term.multiplier: 1}) * conditions[0][0].polynomial
            else:
                if term.coefficient <= 0:
                    return False
                for index in sorted(set(term.indices)):
                    factor, mask = lemma.constraints[index]
                    power = term.indices.count(index)
                    if power % 2 and mask not in SIGNED:
                        return False
                    turned = -factor.polynomial if mask in TURNED else factor.polynomial
                    product = product * turned**power
                strict = strict or all(not mask & ZERO for _, mask in conditions)
            total = total + product
        return strict and bool(total.is_zero())


TURNED = (NEGATIVE, NEGATIVE | ZERO)
"""The signs of a polynomial f for which -f is at least 0."""
SIGNED = (*TURNED, ZERO, POSITIVE, ZERO | POSITIVE)


def lemma_of(constraints: Sequence[Constraint], terms: Sequence[Term]) -> Lemma:
    """The lemma of an identity, with the conditions that occur in it only."""
    used = sorted({index for term in terms for index in term.indices})
    place = {index: number for number, index in enumerate(used)}
    moved = [
        Term(term.coefficient, tuple(place[index] for index in term.indices), term.multiplier)
        for term in terms
    ]
    return Lemma(tuple(constraints[index] for index in used), tuple(moved))


@dataclass(frozen=True)
class _Column:
    """A candidate for a term: the conditions, the packed monomial of a multiplier, and the product."""

    indices: tuple[int, ...]
    multiplier: int | None
    terms: Packed


def _turned(constraint: Constraint) -> Packed:
    """The polynomial of a condition, its sign changed where it is at most 0."""
    factor, mask = constraint
    if mask in TURNED:
        return {monomial: -coefficient for monomial, coefficient in factor.packed_terms.items()}
    return factor.packed_terms


def _multiplied(one: Packed, other: Packed) -> Packed:
    product: Packed = {}
    for a, c in one.items():
        for b, d in other.items():
            product[a + b] = product.get(a + b, 0) + c * d
    return product


def _at_least_zero(constraints: Sequence[Constraint]) -> list[tuple[tuple[int, ...], Packed]]:
    """What is at least 0 by each condition that is no equality: f, -f, or f² where f is not 0."""
    found: list[tuple[tuple[int, ...], Packed]] = []
    for index, (factor, mask) in enumerate(constraints):
        if mask == NEGATIVE | POSITIVE:
            found.append(((index, index), _multiplied(factor.packed_terms, factor.packed_terms)))
        elif mask in SIGNED and mask != ZERO:
            found.append(((index,), _turned((factor, mask))))
    return found


def linear_lemma(constraints: Sequence[Constraint], field: Field) -> Lemma | None:
    """A lemma that adds multiples of the conditions."""
    columns = [_Column((), None, {0: 1})]
    columns += [_Column(indices, None, terms) for indices, terms in _at_least_zero(constraints)]
    equalities = [(i, factor) for i, (factor, mask) in enumerate(constraints) if mask == ZERO]
    columns += [_Column((index,), 0, factor.packed_terms) for index, factor in equalities]
    return _solved(columns, constraints, field)


def row_lemma(constraints: Sequence[Constraint], field: Field) -> Lemma | None:
    """A lemma with few products: of a condition and an entry of a row, of the entries in a monomial of a
    condition, and of one entry of every row; and with the equalities times one variable.
    """
    usable = [(place[0], terms) for place, terms in _at_least_zero(constraints) if len(place) == 1]
    entries = [(i, terms) for i, terms in usable if constraints[i][0].degree == 1]
    found: dict[tuple[int, ...], _Column] = {(): _Column((), None, {0: 1})}

    def keep(indices: tuple[int, ...], terms: Packed) -> None:
        ordered = tuple(sorted(indices))
        found.setdefault(ordered, _Column(ordered, None, terms))

    for i, terms in usable:
        keep((i,), terms)
    for i, terms in usable:
        for j, entry in entries:
            if constraints[i][0].degree > 1 or j >= i:
                keep((i, j), _multiplied(terms, entry))
    variable_of = {next(iter(constraints[i][0].variables)): i for i, terms in entries if len(terms) == 1}
    for _, terms in usable:
        for monomial in terms:
            powers = enumerate(monomial.to_bytes(len(field.names), "little"))
            known = [variable_of.get(v, -1) for v, exponent in powers for _ in range(exponent)]
            if known and -1 not in known:
                keep(tuple(known), {monomial: 1})
    for letter in ("p", "q"):
        products: list[tuple[tuple[int, ...], Packed]] = [((), {0: 1})]
        by_row: dict[Any, list[tuple[int, Packed]]] = {}
        for i, terms in entries:
            factor = constraints[i][0]
            if len(factor.rows) == 1 and field.names[min(factor.variables)].startswith(letter):
                by_row.setdefault(next(iter(factor.rows)), []).append((i, terms))
        for row in sorted(by_row, key=lambda context: (len(context), context)):
            products += [
                ((*indices, i), _multiplied(terms, entry))
                for indices, terms in products
                for i, entry in by_row[row]
            ]
            if len(products) > MOST_ROW_PRODUCTS:
                break
        for indices, terms in products:
            keep(indices, terms)
    columns = list(found.values())
    variables = sorted(set().union(*(factor.variables for factor, _ in constraints)))
    monomials = [0, *(1 << (8 * variable) for variable in variables)]
    for i, (factor, mask) in enumerate(constraints):
        if mask == ZERO:
            columns += [_Column((i,), m, _multiplied(factor.packed_terms, {m: 1})) for m in monomials]
    return _solved(columns, constraints, field) if len(columns) <= MOST_COLUMNS else None


def product_lemma(constraints: Sequence[Constraint], degree: int, field: Field) -> Lemma | None:
    """A lemma with all products of conditions up to a total degree, and with multiples of the equalities."""
    usable = [
        (indices, terms, len(indices) * constraints[indices[0]][0].degree)
        for indices, terms in _at_least_zero(constraints)
    ]
    columns, last = [_Column((), None, {0: 1})], [((), {0: 1}, 0, 0)]
    while last:
        longer: list[Any] = []
        for indices, terms, size, first in last:
            for place, (more, factor_terms, more_size) in enumerate(usable[first:], first):
                if size + more_size <= degree:
                    made = (*indices, *more), _multiplied(terms, factor_terms)
                    columns.append(_Column(made[0], None, made[1]))
                    longer.append((*made, size + more_size, place))
                    if len(columns) > MOST_OF_A_DEGREE:
                        return None
        last = longer
    monomials = sorted({monomial for column in columns for monomial in column.terms})
    guard = int.from_bytes([128] * len(field.names), "little")
    for index, (factor, mask) in enumerate(constraints):
        made_of: set[int] = set()
        for term in factor.packed_terms if mask == ZERO else ():
            for monomial in monomials:
                quotient = (monomial | guard) - term  # a guard bit is lost where a term does not divide
                if quotient & guard == guard and (quotient := quotient ^ guard) not in made_of:
                    made_of.add(quotient)
                    columns.append(
                        _Column((index,), quotient, _multiplied(factor.packed_terms, {quotient: 1}))
                    )
    return _solved(columns, constraints, field) if len(columns) <= MOST_OF_A_DEGREE else None


def _solved(columns: Sequence[_Column], constraints: Sequence[Constraint], field: Field) -> Lemma | None:
    """Weights of the columns, by a linear program in floats, whose support is solved again in rationals."""
    if any(abs(c) > LARGEST for column in columns for c in column.terms.values()):
        return None
    strict = [
        column.multiplier is None and all(not constraints[i][1] & ZERO for i in column.indices)
        for column in columns
    ]
    weights = _program(columns, strict)
    if weights is None:
        return None
    support = [number for number, weight in enumerate(weights) if abs(weight) > 1e-9]
    solution = _exact([columns[number] for number in support], [strict[number] for number in support])
    if solution is None:
        return None
    terms = []
    for value, number in zip(solution, support, strict=True):
        indices, multiplier = columns[number].indices, columns[number].multiplier
        if value < 0 and multiplier is None:
            return None
        if value:
            unpacked = None if multiplier is None else tuple(multiplier.to_bytes(len(field.names), "little"))
            terms.append(Term(value, indices, unpacked))
    return lemma_of(constraints, terms)


def _program(columns: Sequence[_Column], strict: Sequence[bool]) -> np.ndarray | None:
    """Weights, of multiples of equalities of any sign, with which the columns sum to the polynomial 0 and
    the strict ones weigh 1 together; short products are cheap.
    """
    rows: dict[int, int] = {}  # the first row says that the strict columns weigh 1
    starts, places, values = [0], list[int](), list[float]()
    for column, is_strict in zip(columns, strict, strict=True):
        if is_strict:
            places.append(0)
            values.append(1.0)
        for monomial, coefficient in column.terms.items():
            places.append(rows.setdefault(monomial, len(rows) + 1))
            values.append(float(coefficient))
        starts.append(len(places))
    program, infinity = highspy.HighsLp(), highspy.kHighsInf
    program.num_col_, program.num_row_ = len(columns), len(rows) + 1
    free = np.array([column.multiplier is not None for column in columns])
    program.col_cost_ = np.where(free, 0.0, [len(column.indices) + 0.01 for column in columns])
    program.col_lower_ = np.where(free, -infinity, 0.0)
    program.col_upper_ = np.full(len(columns), infinity)
    program.row_lower_ = program.row_upper_ = np.array([1.0] + [0.0] * len(rows))
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.array(starts, dtype=np.int32)
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


def _exact(columns: Sequence[_Column], strict: Sequence[bool]) -> list[fmpq] | None:
    """The weights in rationals."""
    rows: dict[int, int] = {}
    for column in columns:
        for monomial in column.terms:
            rows.setdefault(monomial, len(rows))
    count = len(columns)
    matrix = [[fmpq(0)] * (count + 1) for _ in range(len(rows) + 1)]
    for number, column in enumerate(columns):
        for monomial, coefficient in column.terms.items():
            matrix[rows[monomial]][number] = fmpq(coefficient)
        matrix[-1][number] = fmpq(int(strict[number]))
    matrix[-1][count] = fmpq(1)
    reduced, rank = fmpq_mat(matrix).rref()
    solution = [fmpq(0)] * count
    for row in range(rank):
        pivot = next(column for column in range(count + 1) if reduced[row, column] != 0)
        if pivot == count:
            return None
        solution[pivot] = reduced[row, count]
    return solution

"""Certificates that a set of sign conditions has no solution: an identity in exact rationals.

A certificate is a list of terms whose sum is the polynomial 0.  A term is a positive number times a product
of polynomials that are at least 0 under the conditions, or any polynomial times one that is 0.  One term of
the first kind is above 0.  Such terms cannot sum to 0 at a point, so no point satisfies the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from scipy.optimize import linprog
from scipy.sparse import csc_array

from spectheory.exact.proof.rational_functions import NEGATIVE, POSITIVE, ZERO, Factor

Constraint = tuple[Factor, int]
"""A factor and the signs that it may have."""
Terms = dict[int, int]
"""Packed monomial (``Factor.packed_terms``) -> coefficient."""


@dataclass(frozen=True)
class Term:
    """A term of a certificate.

    Attributes:
        coefficient: a rational; positive where ``multiplier`` is empty.
        indices: of the conditions whose polynomials, turned to be at least 0, are multiplied.  A condition
            ≠ 0 occurs an even number of times.
        multiplier: exponents -> coefficient of a polynomial, for a term with a polynomial that is 0.
    """

    coefficient: fmpq
    indices: tuple[int, ...]
    multiplier: Any = None


@dataclass
class Part:
    """A part of a node: the signs, and the node, ``LEAF``, or what closes it; ``None`` while it is open."""

    mask: int
    target: Node | str | None = None
    lemma: int | None = None


@dataclass
class Node:
    """A split of a region by the sign of a factor."""

    factor: Factor
    parts: list[Part]


@dataclass(frozen=True)
class Lemma:
    """Conditions without a solution.

    Attributes:
        terms: the certificate; ``None`` where there is none.
        tree: in place of a certificate, splits of which other lemmas close all parts.
    """

    constraints: tuple[Constraint, ...]
    terms: tuple[Term, ...] | None
    tree: Node | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether nothing but the word of a solver says so."""
        return self.terms is None and self.tree is None

    def covers(self, known: Any) -> bool:
        """Whether the conditions hold wherever the known signs do."""
        return all(not known.get(factor, 7) & ~mask for factor, mask in self.constraints)


def _turned(constraint: Constraint) -> Terms:
    """The polynomial of a condition, its sign changed where it is at most 0."""
    factor, mask = constraint
    if mask & NEGATIVE and not mask & POSITIVE:
        return {monomial: -coefficient for monomial, coefficient in factor.packed_terms.items()}
    return factor.packed_terms


def _multiplied(one: Terms, other: Terms) -> Terms:
    """The product of two polynomials."""
    product: Terms = {}
    for a, c in one.items():
        for b, d in other.items():
            product[a + b] = product.get(a + b, 0) + c * d
    return product


def _column_products(
    constraints: Sequence[Constraint], degree: int | None, most: int
) -> list[tuple[tuple[int, ...], Terms]]:
    """Products of conditions that are at least 0, the empty one first; [] if there are too many."""
    usable: list[tuple[tuple[int, ...], Terms, int]] = []
    for index, (factor, mask) in enumerate(constraints):
        if mask == NEGATIVE | POSITIVE:
            square = _multiplied(factor.packed_terms, factor.packed_terms)
            usable.append(((index, index), square, 2 * factor.degree))
        elif mask not in (ZERO, 7):
            usable.append(((index,), _turned((factor, mask)), factor.degree))
    products: list[tuple[tuple[int, ...], Terms]] = [((), {0: 1})]
    if degree is None:
        return products + [(indices, terms) for indices, terms, _ in usable]
    last: list[tuple[tuple[int, ...], Terms, int, int]] = [((), {0: 1}, 0, 0)]
    while last:
        longer = []
        for indices, terms, size, first in last:
            for place, (more, factor_terms, more_size) in enumerate(usable[first:], first):
                if size + more_size <= degree:
                    made = indices + more, _multiplied(terms, factor_terms)
                    products.append(made)
                    longer.append((*made, size + more_size, place))
                    if len(products) > most:
                        return []
        last = longer
    return products


def _is_strict(constraints: Sequence[Constraint], indices: Iterable[int]) -> bool:
    return all(not constraints[index][1] & ZERO for index in indices)


def certificate(
    constraints: Sequence[Constraint], degree: int | None, size_limit: int = 4000
) -> tuple[Term, ...] | None:
    """Search for a certificate by linear programming.

    The program is solved in floats, and its support is solved again in rationals.

    Args:
        constraints: conditions without a solution.
        degree: of the products of conditions; ``None`` for the conditions alone.
        size_limit: the most products, with the multiples of equalities.

    Returns:
        The terms, or ``None`` if none was found.
    """
    longest = max(len(factor.packed_terms) for factor, _ in constraints)
    products = [] if longest > MOST_TERMS else _column_products(constraints, degree, size_limit)
    if not products:
        return None
    columns: list[tuple[tuple[int, ...], Any, Terms]] = [
        (indices, None, terms) for indices, terms in products
    ]
    columns += _multiples(constraints, products, FEW_MONOMIALS if degree is None else MOST_MONOMIALS)
    if len(columns) > size_limit:
        return None
    if any(abs(coefficient) > LARGEST for _, _, terms in columns for coefficient in terms.values()):
        return None
    rows: dict[int, int] = {}
    places: tuple[list[int], list[int]] = ([], [])
    values: list[float] = []
    for number, (_, _, terms) in enumerate(columns):
        for exponents, coefficient in terms.items():
            places[0].append(rows.setdefault(exponents, len(rows)))
            places[1].append(number)
            values.append(float(coefficient))
    strict = [
        number
        for number, (indices, multiplier, _) in enumerate(columns)
        if multiplier is None and _is_strict(constraints, indices)
    ]
    places[0].extend([len(rows)] * len(strict))
    places[1].extend(strict)
    values.extend([1.0] * len(strict))
    matrix = csc_array((values, places), shape=(len(rows) + 1, len(columns)))
    wanted = np.zeros(len(rows) + 1)
    wanted[-1] = 1
    bounds = [(0, None) if multiplier is None else (None, None) for _, multiplier, _ in columns]
    cost = [float(len(indices)) + 0.01 if multiplier is None else 0.0 for indices, multiplier, _ in columns]
    found = linprog(cost, A_eq=matrix, b_eq=wanted, bounds=bounds, method="highs-ds")
    if found.status != 0:
        return None
    support = [number for number, value in enumerate(found.x) if abs(value) > 1e-9]
    exact = _solved([columns[number] for number in support], constraints)
    return exact


LARGEST = 10**300
"""Of the coefficients, for a program in floats."""
MOST_TERMS = 600
"""Of the longest condition."""
ROUNDS = 3
FEW_MONOMIALS, MOST_MONOMIALS = 600, 3000
"""Multiples are formed of multiples this often, as long as there are few monomials: more for products, which
are asked for rarely."""


def _multiples(
    constraints: Sequence[Constraint],
    products: Sequence[tuple[tuple[int, ...], Terms]],
    most_monomials: int,
) -> list[tuple[tuple[int, ...], Any, Terms]]:
    """Monomials times the polynomials that are 0, as far as they can cancel terms of the products."""
    zeros = [(index, factor) for index, (factor, mask) in enumerate(constraints) if mask == ZERO]
    if not zeros:
        return []
    new = {monomial for _, terms in products for monomial in terms}
    guard, degree = zeros[0][1].guard, zeros[0][1].degree_of
    highest = max(map(degree, {*new, *(monomial for _, factor in zeros for monomial in factor.packed_terms)}))
    seen, made = set(new), dict[tuple[int, int], Terms]()
    for _ in range(ROUNDS):
        found: set[int] = set()
        for index, factor in zeros:
            room = highest - max(map(degree, factor.packed_terms))
            for term in factor.packed_terms:
                for monomial in new:
                    quotient = (monomial | guard) - term  # a guard bit is lost where not divisible
                    if quotient & guard != guard:
                        continue
                    quotient ^= guard
                    if (index, quotient) not in made and degree(quotient) <= room:
                        made[index, quotient] = _multiplied(factor.packed_terms, {quotient: 1})
                        found |= made[index, quotient].keys()
        new = found - seen
        seen |= new
        if len(seen) > most_monomials:
            break
    return [((index,), quotient, terms) for (index, quotient), terms in made.items()]


def _solved(
    columns: Sequence[tuple[tuple[int, ...], Any, Terms]], constraints: Sequence[Constraint]
) -> tuple[Term, ...] | None:
    """The exact solution on a support, if it has the right signs."""
    rows: dict[int, int] = {}
    for _, _, terms in columns:
        for exponents in terms:
            rows.setdefault(exponents, len(rows))
    count = len(columns)
    matrix = [[fmpq(0)] * (count + 1) for _ in range(len(rows) + 1)]
    for number, (indices, multiplier, terms) in enumerate(columns):
        for exponents, coefficient in terms.items():
            matrix[rows[exponents]][number] = fmpq(coefficient)
        if multiplier is None and _is_strict(constraints, indices):
            matrix[-1][number] = fmpq(1)
    matrix[-1][count] = fmpq(1)
    reduced, rank = fmpq_mat(matrix).rref()
    solution = [fmpq(0)] * count
    for row in range(rank):
        pivot = next(column for column in range(count + 1) if reduced[row, column] != 0)
        if pivot == count:
            return None
        solution[pivot] = reduced[row, count]
    if any(x < 0 and column[1] is None for x, column in zip(solution, columns, strict=True)):
        return None
    return tuple(
        Term(x, indices, None if multiplier is None else constraints[0][0].unpacked(multiplier))
        for x, (indices, multiplier, _) in zip(solution, columns, strict=True)
        if x != 0
    )

"""Rational functions with factored denominators; equal functions are one object.

python-flint's polynomials have no hash, and writing them out costs more than computing with them.  So every
polynomial carries its value at one integer point, which is its hash.  Equality is confirmed exactly.  The
value is a filter for divisibility, too: f divides g only if f's value divides g's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from math import gcd, lcm
from random import Random
from typing import Any, Generic, TypeVar

from flint import Ordering, fmpq, fmpq_mpoly_ctx, fmpz_mpoly_ctx

from spectheory.pairs.contexts import Context

NEGATIVE, ZERO, POSITIVE = 1, 2, 4
ANY = NEGATIVE | ZERO | POSITIVE
AT_LEAST_ZERO = ZERO | POSITIVE
Point = Sequence[fmpq]
"""A value of every variable."""


def sign_of(value: Any) -> int:
    """The sign of a number, as a mask."""
    return POSITIVE if value > 0 else NEGATIVE if value < 0 else ZERO


def opposite(mask: int) -> int:
    """The signs of -f, with those of f."""
    return (mask & ZERO) | (POSITIVE if mask & NEGATIVE else 0) | (NEGATIVE if mask & POSITIVE else 0)


def _product(one: int, other: int) -> int:
    masks = {-1: NEGATIVE, 0: ZERO, 1: POSITIVE}
    found = {masks[a * b] for a in masks for b in masks if masks[a] & one and masks[b] & other}
    return sum(found)


PRODUCTS = [[_product(one, other) for other in range(ANY + 1)] for one in range(ANY + 1)]
"""The signs of f g, with those of f and of g."""


def power_signs(mask: int, exponent: int) -> int:
    """The signs of a power, with those of its base."""
    return mask if exponent % 2 else (mask & ZERO) | (POSITIVE if mask & (NEGATIVE | POSITIVE) else 0)


class Factor:
    """An irreducible polynomial with integer coefficients, the leading one positive.

    Attributes:
        number: in the order of appearance.
        polynomial, value: the polynomial, and its value at the field's integer point.
        variables: the numbers of the variables that occur.
        rows: the contexts whose rows occur.
    """

    def __init__(self, field: Field, number: int, polynomial: Any, value: int) -> None:
        self.field, self.number, self.polynomial, self.value = field, number, polynomial, value
        self.degrees = polynomial.degrees()
        self.variables = frozenset(i for i, degree in enumerate(self.degrees) if degree)
        self.rows = frozenset(field.row_of[i] for i in self.variables)

    def __repr__(self) -> str:
        return str(self.polynomial)

    @cached_property
    def terms(self) -> dict[tuple[int, ...], int]:
        """Exponents -> coefficient."""
        return {tuple(map(int, e)): int(c) for e, c in self.polynomial.to_dict().items()}

    @cached_property
    def packed_terms(self) -> dict[int, int]:
        """Exponents, one byte each -> coefficient: the sum of two keys is the product of their monomials."""
        return {int.from_bytes(e, "little"): c for e, c in self.terms.items()}

    @cached_property
    def sparse_terms(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """(coefficient, [(variable, exponent)]) of every term."""
        return [(c, [(i, n) for i, n in enumerate(e) if n]) for e, c in self.terms.items()]

    @cached_property
    def degree(self) -> int:
        """The total degree."""
        return max(map(sum, self.terms))

    @cached_property
    def key(self) -> tuple[int, int, str]:
        """Simple polynomials first; the same order in every process."""
        return self.degree, len(self.terms), str(self.polynomial)

    @cached_property
    def linear_parts(self) -> list[tuple[int, Any, Any]]:
        """(variable v, a, b) of every way to write the polynomial as a v + b without v in a and b."""
        generators, parts = self.field.context.gens(), []
        for variable in sorted(self.variables):
            if self.degrees[variable] == 1:
                slope = self.polynomial.derivative(variable)
                parts.append((variable, slope, self.polynomial - slope * generators[variable]))
        return parts

    def at(self, point: Point) -> fmpq:
        """The value at a point."""
        total = fmpq(0)
        for coefficient, powers in self.sparse_terms:
            term = fmpq(coefficient)
            for variable, exponent in powers:
                term *= point[variable] ** exponent
            total += term
        return total


class Function:
    """A rational function: numerator / (divisor · Π factor^exponent), without common factors.

    Attributes:
        numerator: a polynomial.
        denominator: pairs (number of a factor, exponent).
        divisor: a positive integer.
        number: in the order of appearance.
    """

    __slots__ = ("_parts", "_rows", "denominator", "divisor", "number", "numerator")

    def __init__(
        self, numerator: Any, denominator: tuple[tuple[int, int], ...], divisor: int, number: int
    ) -> None:
        self.numerator, self.denominator = numerator, denominator
        self.divisor, self.number = divisor, number
        self._parts: Any = None
        self._rows: Any = None


Parts = Sequence[tuple[Factor, int]]
"""Pairs (factor, exponent)."""
Factored = tuple[int, Parts]
"""A constant and its factors."""


Element = TypeVar("Element")


class Ring(ABC, Generic[Element]):
    """Sums and products of elements that are one object if they are equal.

    Attributes:
        zero, one: what leaves another element as it is.
    """

    zero: Element
    one: Element

    @abstractmethod
    def _result(self, operation: str, one: Element, other: Element) -> Element:
        """The element for ``+``, ``-`` or ``*`` of two others."""

    def add(self, one: Element, other: Element) -> Element:
        if one is self.zero:
            return other
        return one if other is self.zero else self._result("+", one, other)

    def subtract(self, one: Element, other: Element) -> Element:
        if one is other:
            return self.zero
        return one if other is self.zero else self._result("-", one, other)

    def multiply(self, one: Element, other: Element) -> Element:
        if one is self.zero or other is self.zero:
            return self.zero
        if one is self.one or other is self.one:
            return other if one is self.one else one
        return self._result("*", one, other)

    def sum(self, elements: Iterable[Element]) -> Element:
        return reduce(self.add, elements, self.zero)

    def product(self, elements: Iterable[Element]) -> Element:
        return reduce(self.multiply, elements, self.one)


class Field(Ring[Function]):
    """The rational functions of some variables.

    Args:
        names: of the variables.
        row_of: the context to whose row each of them belongs.
    """

    def __init__(self, names: Sequence[str], row_of: Sequence[Context]) -> None:
        self.names, self.row_of = tuple(names), row_of
        self.context = fmpz_mpoly_ctx.get(self.names, Ordering.degrevlex)
        random = Random(1)
        self._place = [random.randrange(1 << 20, 1 << 21) for _ in names]
        self.factors: list[Factor] = []
        self._factor_table: dict[int, list[Factor]] = {}
        self._factored: dict[int, list[tuple[Any, Factored]]] = {}
        self._table: dict[Any, list[Function]] = {}
        self._count, self._results = 0, dict[tuple[str, int, int], Function]()
        self._substituted: dict[tuple[int, int, int], tuple[Factored, int]] = {}
        one = self.context.constant(1)
        self.zero, self.one = self._function(one * 0, (), 1), self._function(one, (), 1)
        self.variables = [self._function(generator, (), 1) for generator in self.context.gens()]

    def constant(self, numerator: int, denominator: int = 1) -> Function:
        return self._function(self.context.constant(numerator), (), denominator)

    def _function(self, numerator: Any, denominator: tuple[tuple[int, int], ...], divisor: int) -> Function:
        """The one object for a function that is in lowest terms but for integers."""
        if numerator.is_zero():
            denominator, divisor = (), 1
        elif divisor != 1:
            common = gcd(int(numerator.content()), divisor)
            if common != 1:
                numerator, divisor = numerator // self.context.constant(common), divisor // common
        bucket = self._table.setdefault((self.value_of(numerator), denominator, divisor), [])
        for known in bucket:
            if known.numerator == numerator:
                return known
        made = Function(numerator, denominator, divisor, self._count)
        self._count += 1
        bucket.append(made)
        return made

    def value_of(self, polynomial: Any) -> int:
        """The value at the integer point."""
        return int(polynomial(*self._place))

    def factored(self, polynomial: Any) -> Factored:
        """The factors of a polynomial; the constant is 0 for the polynomial 0."""
        bucket = self._factored.setdefault(self.value_of(polynomial), [])
        for known, result in bucket:
            if known == polynomial:
                return result
        found: Factored
        if polynomial.is_constant():
            found = (0 if polynomial.is_zero() else int(polynomial.leading_coefficient())), ()
        else:
            (constant, parts), made = self._irreducible(polynomial), []
            for part, exponent in parts:
                turned = part.leading_coefficient() < 0
                constant *= (-1) ** int(exponent) if turned else 1
                made.append((self.factor(-part if turned else part), int(exponent)))
            found = constant, tuple(sorted(made, key=lambda pair: pair[0].number))
        bucket.append((polynomial, found))
        return found

    def _irreducible(self, polynomial: Any) -> tuple[int, list[tuple[Any, int]]]:
        """The constant and the irreducible factors of a polynomial, with their exponents."""
        try:
            constant, parts = polynomial.factor()
            return int(constant), parts
        except OverflowError:  # python-flint sorts factors by coefficients that fit into 32 bits
            rational = fmpq_mpoly_ctx.get(self.names, Ordering.degrevlex)
            constant, parts = rational.from_dict(polynomial.to_dict()).factor()
            whole = []
            for part, exponent in parts:
                scale = lcm(*(int(number.q) for number in part.coeffs()))
                divided = {powers: int(number * scale) for powers, number in part.to_dict().items()}
                whole.append((self.context.from_dict(divided), int(exponent)))
                constant /= fmpq(scale) ** int(exponent)
            return int(constant), whole

    def factor(self, polynomial: Any) -> Factor:
        """The one object for an irreducible polynomial."""
        value = self.value_of(polynomial)
        bucket = self._factor_table.setdefault(value, [])
        for known in bucket:
            if known.polynomial == polynomial:
                return known
        made = Factor(self, len(self.factors), polynomial, value)
        self.factors.append(made)
        bucket.append(made)
        return made

    def divide(self, one: Function, other: Function) -> Function:
        """The quotient; ``other`` is not 0."""
        if one is self.zero or other is self.one:
            return one
        return self.one if one is other else self._result("/", one, other)

    def _result(self, operation: str, one: Function, other: Function) -> Function:
        key = operation, one.number, other.number
        found = self._results.get(key)
        if found is None:
            if operation == "/":
                found = self.multiply(one, self._inverse(other))
            elif operation == "*":
                found = self._product(one, other)
            else:
                found = self._sum(one, other, -1 if operation == "-" else 1)
            self._results[key] = found
        return found

    def _product(self, one: Function, other: Function) -> Function:
        exponents: dict[int, int] = {}
        product = self.context.constant(1)
        for mine, theirs in ((one, other), (other, one)):
            numerator = mine.numerator
            for number, exponent in theirs.denominator:
                numerator, left = self._cancelled(numerator, number, exponent)
                if left:
                    exponents[number] = exponents.get(number, 0) + left
            product = product * numerator
        return self._function(product, tuple(sorted(exponents.items())), one.divisor * other.divisor)

    def _sum(self, one: Function, other: Function, sign: int) -> Function:
        a, b, mine, theirs = (
            one.numerator,
            other.numerator * sign,
            dict(one.denominator),
            dict(other.denominator),
        )
        exponents, shared = dict(mine), []
        for number in mine.keys() | theirs.keys():
            x, y, polynomial = mine.get(number, 0), theirs.get(number, 0), self.factors[number].polynomial
            exponents[number] = max(x, y)
            if x < y:
                a = a * polynomial ** (y - x)
            elif y < x:
                b = b * polynomial ** (x - y)
            else:
                shared.append(number)
        common = gcd(one.divisor, other.divisor)
        numerator = a * (other.divisor // common) + b * (one.divisor // common)
        for number in shared:  # only a factor with the same exponent in both can cancel
            numerator, exponents[number] = self._cancelled(numerator, number, exponents[number])
        left = tuple(sorted((number, exponent) for number, exponent in exponents.items() if exponent))
        return self._function(numerator, left, one.divisor * (other.divisor // common))

    def _cancelled(self, numerator: Any, number: int, exponent: int) -> tuple[Any, int]:
        """A numerator divided by a factor as often as possible, and the exponent that is left."""
        factor = self.factors[number]
        while exponent and (not factor.value or self.value_of(numerator) % factor.value == 0):
            quotient, rest = divmod(numerator, factor.polynomial)
            if not rest.is_zero():
                break
            numerator, exponent = quotient, exponent - 1
        return numerator, exponent

    def _inverse(self, function: Function) -> Function:
        constant, parts = self.factored(function.numerator)
        if constant == 0:
            raise ZeroDivisionError("division by the function 0")
        numerator = self.context.constant(function.divisor if constant > 0 else -function.divisor)
        for number, exponent in function.denominator:
            numerator = numerator * self.factors[number].polynomial ** exponent
        return self._function(numerator, tuple((factor.number, n) for factor, n in parts), abs(constant))

    def parts(self, function: Function) -> Factored:
        """A constant of the same sign, and all factors with their exponents, simple ones first."""
        if function._parts is None:
            constant, parts = self.factored(function.numerator)
            below = [(self.factors[number], exponent) for number, exponent in function.denominator]
            function._parts = constant, tuple(sorted((*parts, *below), key=lambda part: part[0].key))
        return function._parts

    def rows(self, function: Function) -> frozenset[Context]:
        """The contexts whose rows occur in a function."""
        if function._rows is None:
            degrees = () if function.numerator.is_zero() else function.numerator.degrees()
            found = {self.row_of[i] for i, degree in enumerate(degrees) if degree}
            for number, _ in function.denominator:
                found |= self.factors[number].rows
            function._rows = frozenset(found)
        return function._rows

    def at(self, function: Function, point: Point) -> fmpq:
        """The value at a point where the denominator is not 0."""
        constant, parts = self.factored(function.numerator)
        value = fmpq(constant, function.divisor)
        for factor, exponent in parts:
            value *= factor.at(point) ** exponent
        for number, exponent in function.denominator:
            value /= self.factors[number].at(point) ** exponent
        return value

    def substituted(self, factor: Factor, other: Factor, place: int) -> tuple[Factored, int]:
        """a^n f at v = -b/a, factored, and n, with other = a v + b its linear part at ``place``."""
        key = factor.number, other.number, place
        if key not in self._substituted:
            variable, slope, rest = other.linear_parts[place]
            generator, coefficients, left = self.context.gens()[variable], [], factor.polynomial
            while not left.is_zero():
                coefficients.append(left.subs({self.names[variable]: 0}))
                left = (left - coefficients[-1]) // generator
            degree, total = len(coefficients) - 1, self.context.constant(0)
            for power, coefficient in enumerate(coefficients):
                total = total + coefficient * (-rest) ** power * slope ** (degree - power)
            self._substituted[key] = self.factored(total), degree
        return self._substituted[key]

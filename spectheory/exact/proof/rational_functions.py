"""Rational functions in lowest terms, and the irreducible factors that give their signs.

A function is made once (``RationalFunctions.of``), so that equal functions are the same object.  The result
of an operation is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx, fmpz_mpoly_ctx

from spectheory.exact.proof.factoring import integer_factors

Polynomial = Any
"""A ``flint.fmpz_mpoly``."""

NEGATIVE, ZERO, POSITIVE = 1, 2, 4
"""The signs that a polynomial may have, as bits: a *mask* is a set of them."""
ANY_SIGN = NEGATIVE | ZERO | POSITIVE


FEW_TERMS = 12
"""Of a polynomial that is faster evaluated term by term than by flint, which reads all variables."""


def sign_mask(value: Any) -> int:
    """The sign of one number as a mask."""
    return POSITIVE if value > 0 else NEGATIVE if value < 0 else ZERO


def opposite(mask: int) -> int:
    """The signs of -f where those of f are ``mask``.

    Example:
        >>> opposite(NEGATIVE | ZERO) == ZERO | POSITIVE
        True
    """
    return (mask & ZERO) | (POSITIVE if mask & NEGATIVE else 0) | (NEGATIVE if mask & POSITIVE else 0)


class Factor:
    """An irreducible polynomial with a positive leading coefficient.

    Attributes:
        number: in the order in which factors were met.
        polynomial: with integer coefficients.
        variables: the numbers of the variables that occur.
    """

    def __init__(self, field: RationalFunctions, number: int, polynomial: Polynomial) -> None:
        self.field, self.number, self.polynomial = field, number, polynomial
        self.variables = frozenset(i for i, degree in enumerate(polynomial.degrees()) if degree)

    @cached_property
    def terms(self) -> dict[tuple[int, ...], int]:
        """Exponents -> coefficient."""
        return {tuple(map(int, exponents)): int(c) for exponents, c in self.polynomial.to_dict().items()}

    @cached_property
    def degree(self) -> int:
        """The total degree."""
        return max(map(sum, self.terms))

    @cached_property
    def packed_terms(self) -> dict[int, int]:
        """Monomial -> coefficient; a monomial is a whole number with a byte per exponent."""
        return {int.from_bytes(exponents, "little"): c for exponents, c in self.terms.items()}

    @property
    def guard(self) -> int:
        """The highest bit of every byte of a monomial, which no exponent reaches."""
        return int.from_bytes([128] * len(self.field.names), "little")

    def unpacked(self, monomial: int) -> tuple[int, ...]:
        """The exponents of a packed monomial."""
        return tuple(monomial.to_bytes(len(self.field.names), "little"))

    def degree_of(self, monomial: int) -> int:
        """The degree of a packed monomial."""
        return sum(self.unpacked(monomial))

    @cached_property
    def _over_rationals(self) -> Any:
        return self.field.rational_context.from_dict(self.terms)

    @cached_property
    def _powers(self) -> list[tuple[int, list[int]]]:
        """(coefficient, the variables with their repetitions) of every term."""
        return [
            (c, [i for i in self.variables for _ in range(powers[i])]) for powers, c in self.terms.items()
        ]

    def at(self, point: Any) -> fmpq:
        """The value at a point: the values of all variables, by number."""
        if len(self.terms) > FEW_TERMS:
            values = (point[i] if i in self.variables else 0 for i in range(len(self.field.names)))
            return self._over_rationals(*values)
        total = fmpq(0)
        for coefficient, variables in self._powers:
            product = fmpq(coefficient)
            for variable in variables:
                product *= point[variable]
            total += product
        return total

    def __repr__(self) -> str:
        return str(self.polynomial)


class RationalFunction:
    """Numerator and denominator without a common divisor, the second with a positive leading coefficient."""

    __slots__ = ("_memo", "_signs", "denominator", "field", "numerator")

    def __init__(self, field: RationalFunctions, numerator: Polynomial, denominator: Polynomial) -> None:
        self.field, self.numerator, self.denominator = field, numerator, denominator
        self._memo: dict[tuple[str, int], RationalFunction] = {}
        self._signs: tuple[int, tuple[Factor, ...], tuple[Factor, ...]] | None = None

    def _remembered(self, operation: str, other: RationalFunction) -> RationalFunction:
        key = operation, id(other)  # functions live as long as their field
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self.field.combined(operation, self, other)
        return found

    def __add__(self, other: RationalFunction) -> RationalFunction:
        return self._remembered("+", other)

    def __sub__(self, other: RationalFunction) -> RationalFunction:
        return self._remembered("-", other)

    def __mul__(self, other: RationalFunction) -> RationalFunction:
        return self._remembered("*", other)

    def __truediv__(self, other: RationalFunction) -> RationalFunction:
        return self._remembered("/", other)

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 everywhere."""
        return bool(self.numerator.is_zero())

    @property
    def signs(self) -> tuple[int, tuple[Factor, ...], tuple[Factor, ...]]:
        """(the sign of the constant, the factors with an odd exponent, those with an even one)."""
        if self._signs is None:
            constant = 1
            odd: list[Factor] = []
            even: list[Factor] = []
            for polynomial in (self.numerator, self.denominator):
                number, parts = self.field.factors(polynomial)
                constant *= 1 if number > 0 else -1
                for factor, times in parts:
                    (odd if times % 2 else even).append(factor)
            self._signs = constant, tuple(odd), tuple(even)
        return self._signs

    def denominator_factors(self) -> tuple[Factor, ...]:
        """The irreducible factors of the denominator."""
        return tuple(factor for factor, _ in self.field.factors(self.denominator)[1])

    def at(self, point: Any) -> fmpq:
        """The value at a point, 1/0 being an error."""
        values = []
        for polynomial in (self.numerator, self.denominator):
            constant, parts = self.field.factors(polynomial)
            value = fmpq(int(constant))
            for factor, times in parts:
                value *= factor.at(point) ** times
            values.append(value)
        return values[0] / values[1]

    def __repr__(self) -> str:
        return f"({self.numerator})/({self.denominator})"


class RationalFunctions:
    """The rational functions in some variables.

    Args:
        names: of the variables.

    Example:
        >>> field = RationalFunctions(["x", "y"])
        >>> x, y = field.variables
        >>> (x * x - y * y) / (x - y)
        (x + y)/(1)
        >>> (x - y) / (x - y) is field.constant(1)
        True
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self.context = fmpz_mpoly_ctx.get(self.names, Ordering.degrevlex)
        self.rational_context = fmpq_mpoly_ctx.get(self.names, Ordering.degrevlex)
        self._functions: dict[tuple[str, str], RationalFunction] = {}
        self._factors: dict[str, Factor] = {}
        self._factored: dict[str, tuple[Any, tuple[tuple[Factor, int], ...]]] = {}
        self._one = self.context.constant(1)
        self.variables = tuple(self.of(x, self._one) for x in self.context.gens())

    def constant(self, numerator: int, denominator: int = 1) -> RationalFunction:
        """A rational number."""
        return self.of(self.context.constant(numerator), self.context.constant(denominator))

    def of(self, numerator: Polynomial, denominator: Polynomial) -> RationalFunction:
        """The function with this numerator and denominator."""
        if not denominator.is_one():
            common = numerator.gcd(denominator)
            if denominator.leading_coefficient() < 0:
                common = -common
            if not common.is_one():
                numerator, denominator = numerator // common, denominator // common
        key = str(numerator), str(denominator)
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = RationalFunction(self, numerator, denominator)
        return found

    def combined(self, operation: str, one: RationalFunction, other: RationalFunction) -> RationalFunction:
        """One operation of ``RationalFunction``."""
        a, b, c, d = one.numerator, one.denominator, other.numerator, other.denominator
        if operation == "*":
            return self.of(a * c, b * d)
        if operation == "/":
            return self.of(a * d, b * c)
        if b == d:
            return self.of(a + c if operation == "+" else a - c, b)
        return self.of(a * d + c * b if operation == "+" else a * d - c * b, b * d)

    def factor(self, polynomial: Polynomial) -> Factor:
        """The factor that an irreducible polynomial is, up to its sign and a constant."""
        _, parts = self.factors(polynomial)
        if len(parts) != 1 or parts[0][1] != 1:
            raise ValueError(f"{polynomial} is not irreducible")
        return parts[0][0]

    def factors(self, polynomial: Polynomial) -> tuple[Any, tuple[tuple[Factor, int], ...]]:
        """The constant, and every irreducible factor with its exponent."""
        key = str(polynomial)
        found = self._factored.get(key)
        if found is None:
            if polynomial.is_constant():
                found = polynomial.leading_coefficient() if not polynomial.is_zero() else 0, ()
            else:
                constant, parts = integer_factors(polynomial)
                made = []
                for part, times in parts:
                    if part.leading_coefficient() < 0:
                        part, constant = -part, constant * (-1) ** (times % 2)
                    name = str(part)
                    if name not in self._factors:
                        self._factors[name] = Factor(self, len(self._factors), part)
                    made.append((self._factors[name], times))
                found = constant, tuple(made)
            self._factored[key] = found
        return found

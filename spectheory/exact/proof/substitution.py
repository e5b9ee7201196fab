"""What equalities make of other conditions: the signs of the factors that a division leaves, with identities.

Where f = 0, the identity s g = m f + r gives g the sign of r / s.  It comes from the division of g by f, or
from the one that eliminates a variable, whose s is a power of the leading coefficient of f.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from flint import fmpq

from spectheory.exact.proof.certificates import Constraint, Term
from spectheory.exact.proof.rational_functions import (
    ANY_SIGN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    Polynomial,
    opposite,
    sign_mask,
)

STRICT = NEGATIVE, POSITIVE
MOST_TERMS = 3000
"""Of what a division leaves; longer polynomials are not factored."""


class Consequence(NamedTuple):
    """A factor has a sign of ``mask``; every other sign is excluded by conditions with a certificate."""

    factor: Factor
    mask: int
    excluded: dict[int, tuple[list[Constraint], tuple[Term, ...]]]


class Division(NamedTuple):
    """scale · dividend = multiple · zero + rest, with the factors of the scale."""

    dividend: Constraint
    zero: Factor
    scale: Polynomial
    scale_factors: list[Constraint]
    multiple: Polynomial
    rest: Polynomial

    @property
    def turn(self) -> int:
        """The sign of the scale."""
        constant, parts = self.zero.field.factors(self.scale)
        return (1 if constant > 0 else -1) * _turn(self.scale_factors, [times for _, times in parts])

    def open_factors(self, known: Mapping[Factor, int]) -> list[Factor]:
        """The factors of the rest that may be 0, or have either sign."""
        _, parts = self.zero.field.factors(self.rest)
        return [factor for factor, _ in parts if known.get(factor, ANY_SIGN) not in STRICT]

    def consequence(self, known: Mapping[Factor, int]) -> Consequence | None:
        """The sign of the open factor, or of the dividend where the rest is a constant.

        Where two factors are open, nothing.
        """
        constant, parts = self.zero.field.factors(self.rest)
        factor, mask = self.dividend
        if not parts:
            sign = sign_mask(constant)
            return self._of(factor, sign if self.turn > 0 else opposite(sign), [], [])
        others = [(factor, known.get(factor, ANY_SIGN)) for factor, _ in parts]
        open_factors = [number for number, (_, signs) in enumerate(others) if signs not in STRICT]
        if len(open_factors) > 1:
            return None
        place = open_factors[0] if open_factors else len(parts) - 1
        factor, powers = others.pop(place)[0], [times for _, times in parts]
        power = powers.pop(place)
        turn = self.turn * (1 if constant > 0 else -1) * _turn(others, powers)
        mask = mask if turn > 0 else opposite(mask)
        if power % 2 == 0:
            mask = (mask & ZERO) | (NEGATIVE | POSITIVE if mask & POSITIVE else 0)
        return self._of(factor, mask, others, powers, power)

    def _of(
        self, factor: Factor, mask: int, others: list[Constraint], powers: list[int], power: int = 0
    ) -> Consequence:
        excluded = {}
        for sign in (NEGATIVE, ZERO, POSITIVE):
            if not sign & mask:
                excluded[sign] = self._certificate(factor, sign, others, powers, power)
        return Consequence(factor, mask, excluded)

    def _certificate(
        self, factor: Factor, sign: int, others: list[Constraint], powers: list[int], power: int
    ) -> tuple[list[Constraint], tuple[Term, ...]]:
        """That the factor of the rest, or without one the dividend, does not have the sign."""
        dividend, mask = self.dividend
        if not power:
            mask = sign
        conditions = [(self.zero, ZERO), (dividend, mask), *self.scale_factors, *others]
        conditions += [(factor, sign)] if power else []
        field, last = self.zero.field, len(conditions) - 1
        scale_number, scale_parts = field.factors(self.scale)
        rest_number, _ = field.factors(self.rest)
        above = [number for n, (_, times) in enumerate(scale_parts, 2) for number in [n] * times]
        start = 2 + len(self.scale_factors)
        below = [number for n, times in enumerate(powers, start) for number in [n] * times] + [last] * power
        left = _turn([*self.scale_factors, (dividend, mask)], [*(t for _, t in scale_parts), 1])
        left = left if scale_number > 0 else -left
        terms: list[Term] = []
        if mask == NEGATIVE | POSITIVE:  # the square of the identity
            square = fmpq(int(scale_number)) ** 2
            terms = [Term(square, (*above, *above, 1, 1))]
            by = self.scale * dividend.polynomial
            terms += _multiples(0, -by * self.multiple)
            terms += _multiples(last, -by * (self.rest // factor.polynomial))
        elif mask == ZERO:
            if not self.rest.is_zero():
                right = _turn([*others, (factor, sign)], [*powers, power])
                right = right if rest_number > 0 else -right
                terms = [Term(fmpq(abs(int(rest_number))), tuple(below))]
                terms += _multiples(0, self.multiple * right) + _multiples(1, -self.scale * right)
        else:
            terms = [Term(fmpq(abs(int(scale_number))), (*above, 1))]
            terms += _multiples(0, -self.multiple * left)
            if sign == ZERO and power:
                terms += _multiples(last, -(self.rest // factor.polynomial) * left)
            elif not self.rest.is_zero():
                terms.append(Term(fmpq(abs(int(rest_number))), tuple(below)))
        return conditions, tuple(terms)


def _turn(constraints: list[Constraint], powers: list[int]) -> int:
    """The sign of a product of factors with signs that are not both."""
    odd = sum(mask & NEGATIVE > 0 for (_, mask), power in zip(constraints, powers, strict=True) if power % 2)
    return -1 if odd % 2 else 1


def _multiples(index: int, polynomial: Polynomial) -> list[Term]:
    return [
        Term(fmpq(int(coefficient)), (index,), tuple(map(int, exponents)))
        for exponents, coefficient in polynomial.to_dict().items()
    ]


def divisions(dividend: Constraint, zero: Factor, known: Mapping[Factor, int]) -> Iterator[Division]:
    """Those of a condition by a factor that is 0, as far as the signs of what multiplies it are known.

    Example:
        >>> from spectheory.exact.proof.rational_functions import RationalFunctions
        >>> field = RationalFunctions(["p", "q", "u", "v"])
        >>> p, q, u, v = (function.numerator for function in field.variables)
        >>> more, zero = field.factor(p * u - q * v), field.factor(u - v)
        >>> found = next(divisions((more, POSITIVE), zero, {})).consequence({field.factor(v): POSITIVE})
        >>> found.factor, found.mask == POSITIVE
        (p - q, True)
    """
    one = zero.field.context.constant(1)
    multiple, rest = divmod(dividend[0].polynomial, zero.polynomial)
    if not multiple.is_zero():
        yield Division(dividend, zero, one, [], multiple, rest)
    for variable in zero.variables & dividend[0].variables:
        found = eliminated(dividend[0].polynomial, zero.polynomial, variable)
        if found is not None:
            factors = [(factor, known.get(factor, ANY_SIGN)) for factor, _ in zero.field.factors(found[0])[1]]
            if all(mask in STRICT for _, mask in factors) and len(found[2]) <= MOST_TERMS:
                yield Division(dividend, zero, found[0], factors, *found[1:])


def leading(polynomial: Polynomial, variable: int) -> tuple[int, Polynomial]:
    """The degree in a variable, and the coefficient of its highest power."""
    degree, terms = polynomial.degrees()[variable], {}
    for exponents, coefficient in polynomial.to_dict().items():
        if exponents[variable] == degree:
            terms[*exponents[:variable], 0, *exponents[variable + 1 :]] = coefficient
    return degree, polynomial.context().from_dict(terms)


def eliminated(
    dividend: Polynomial, zero: Polynomial, variable: int
) -> tuple[Polynomial, Polynomial, Polynomial] | None:
    """(s, m, r) with s g = m f + r, where r has a lower degree in the variable than f has."""
    degree, coefficient = leading(zero, variable)
    power = dividend.degrees()[variable]
    if degree == 0 or power < degree:
        return None
    if degree == 1:  # up to its sign the resultant with a x + b is a power of a times the value at -b/a
        scale, rest = coefficient**power, dividend.resultant(zero, variable)
        for some in (rest, -rest):
            multiple, left = divmod(scale * dividend - some, zero)
            if left.is_zero():
                return scale, multiple, some
    if len(dividend) > MOST_TERMS:
        return None
    gen = zero.context().gens()[variable]
    scale, multiple, rest = zero.context().constant(1), zero.context().constant(0), dividend
    while (now := leading(rest, variable))[0] >= degree and not rest.is_zero():
        factor = now[1] * gen ** (now[0] - degree)
        scale, multiple = scale * coefficient, multiple * coefficient + factor
        rest = rest * coefficient - factor * zero
    return scale, multiple, rest


def solved_form(zeros: Iterable[Factor], near: Sequence[fmpq]) -> list[tuple[int, Factor]]:
    """Equations with a variable each in which they are linear, and which those behind do not contain.

    Args:
        zeros: factors that are 0 at a point.
        near: rationals close to that point; of a product the factor that is smallest there is taken to be 0.
    """
    left, found = list(zeros), list[tuple[int, Factor]]()
    while left:
        linear = [(len(f.terms), n, f) for f in left for n in f.variables if leading(f.polynomial, n)[0] == 1]
        if not linear:
            break
        _, variable, zero = min(linear, key=lambda choice: choice[:2])
        found.append((variable, zero))
        rests = [eliminated(f.polynomial, zero.polynomial, variable) or (f.polynomial,) for f in left]
        factors = [[factor for factor, _ in zero.field.factors(rest[-1])[1]] for rest in rests]
        left = [min(some, key=lambda factor: abs(factor.at(near))) for some in factors if some]
    return found


def solve(form: Sequence[tuple[int, Factor]], values: list[fmpq]) -> bool:
    """Give the variables of a solved form their values, in place; whether that was possible."""
    for variable, zero in reversed(form):
        values[variable] = fmpq(0)
        rest = zero.at(values)
        values[variable] = fmpq(1)
        slope = zero.at(values) - rest
        if slope == 0:
            return False
        values[variable] = -rest / slope
    return True

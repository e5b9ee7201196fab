"""What equalities make of other conditions: the sign of a factor that a substitution leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from spectheory.exact.proof.rational_functions import (
    ANY_SIGN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    opposite,
    sign_mask,
)


class Consequence(NamedTuple):
    """A factor has a sign of ``mask`` where the conditions hold."""

    factor: Factor
    mask: int
    conditions: tuple[tuple[Factor, int], ...]


def consequences(known: Mapping[Factor, int]) -> Iterator[Consequence]:
    """Substitute by the linear equalities among conditions, divide by another one, and factor what is left.

    With p' = q' the condition p p' - q q' > 0 is q' (p - q) > 0, hence p - q > 0 where q' > 0.

    Example:
        >>> from spectheory.exact.proof.rational_functions import RationalFunctions
        >>> field = RationalFunctions(["p", "q", "u", "v"])
        >>> p, q, u, v = (function.numerator for function in field.variables)
        >>> more = field.factor(p * u - q * v)
        >>> known = {field.factor(u - v): ZERO, field.factor(v): POSITIVE, more: POSITIVE}
        >>> [(found.factor, found.mask == POSITIVE) for found in consequences(known)]
        [(p - q, True)]
    """
    values, used = _eliminated(known)
    for factor, mask in known.items():
        if mask == ANY_SIGN or (factor, mask) in used:
            continue
        left = factor.polynomial.compose(*values)
        if left != factor.polynomial:
            yield from _signs_in(known, left, ((factor, mask), *used))
        for zero, other_mask in known.items():
            divisor = zero.polynomial.compose(*values)
            if other_mask != ZERO or zero is factor or divisor.is_zero():
                continue
            rest = left % divisor
            if rest != left:
                yield from _signs_in(known, rest, ((factor, mask), (zero, ZERO), *used))


def _signs_in(
    known: Mapping[Factor, int], left: Any, conditions: tuple[tuple[Factor, int], ...]
) -> Iterator[Consequence]:
    """What follows for the factors of a polynomial that equals that of the first condition."""
    factor, mask = conditions[0]
    if left.is_constant():
        value = 0 if left.is_zero() else left.leading_coefficient()
        yield Consequence(factor, sign_mask(value), conditions[1:])
        return
    constant, parts = factor.field.factors(left)
    for place, (other, times) in enumerate(parts):
        rest = parts[:place] + parts[place + 1 :]
        signs = [known.get(part, ANY_SIGN) for part, _ in rest]
        if times % 2 == 1 and all(sign in (NEGATIVE, POSITIVE) for sign in signs):
            turns = sum(sign == NEGATIVE for sign, (_, power) in zip(signs, rest, strict=True) if power % 2)
            found = opposite(mask) if (turns + (constant < 0)) % 2 else mask
            used = zip((part for part, _ in rest), signs, strict=True)
            yield Consequence(other, found, (*conditions, *used))


def _eliminated(known: Mapping[Factor, int]) -> tuple[list[Any], list[tuple[Factor, int]]]:
    """Polynomials in place of all variables, by the linear factors that are 0, and the conditions used."""
    used: list[tuple[Factor, int]] = []
    values: list[Any] = []
    for factor, mask in known.items():
        values = values or list(factor.field.context.gens())
        if mask != ZERO or max(map(sum, factor.terms)) > 1:
            continue
        left = factor.polynomial.compose(*values)
        terms = {tuple(map(int, exponents)): int(c) for exponents, c in left.to_dict().items()}
        unit = next((e for e, c in terms.items() if sum(e) == 1 and abs(c) == 1), None)
        if unit is None:
            continue
        variable = factor.field.context.gens()[unit.index(1)]
        value = variable - left * terms[unit]
        inner = [value if gen == variable else gen for gen in factor.field.context.gens()]
        values = [old.compose(*inner) for old in values]
        used.append((factor, mask))
    return values, used

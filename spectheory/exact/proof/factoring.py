"""Irreducible factors of integer polynomials, by python-flint, also where its own sort of them fails."""

from math import gcd, lcm
from typing import Any

from flint import fmpq_mpoly_ctx

Polynomial = Any
"""A ``flint.fmpz_mpoly``."""


def integer_factors(polynomial: Polynomial) -> tuple[Any, list[tuple[Polynomial, int]]]:
    """The constant, and the irreducible factors with their exponents.

    ``fmpz_mpoly.factor`` of python-flint 0.9 sorts the factors, and keeps the difference of two coefficients
    in 32 bits.  Where it does not fit, the factors over the rationals are made primitive.

    Args:
        polynomial: not constant.

    Example:
        >>> from flint import Ordering, fmpz_mpoly_ctx
        >>> x, y = fmpz_mpoly_ctx.get(["x", "y"], Ordering.degrevlex).gens()
        >>> print(*integer_factors(6 * (x + 2**70) * (2 * x + 3)))
        6 [(x + 1180591620717411303424, 1), (2*x + 3, 1)]
    """
    try:
        constant, parts = polynomial.factor()
    except OverflowError:
        constant, parts = _rational_factors(polynomial)
    return constant, [(part, int(times)) for part, times in parts]


def _rational_factors(polynomial: Polynomial) -> tuple[Any, list[tuple[Polynomial, int]]]:
    """The same by way of the rationals, in another order."""
    context = polynomial.context()
    rational = fmpq_mpoly_ctx.get(context.names(), context.ordering())
    constant, parts = polynomial.leading_coefficient(), []
    for part, times in rational.from_dict(polynomial.to_dict()).factor()[1]:
        terms = part.to_dict()
        scale = lcm(*(int(number.q) for number in terms.values()))
        whole = {exponents: int(number * scale) for exponents, number in terms.items()}
        content = gcd(*whole.values())
        primitive = context.from_dict({exponents: number // content for exponents, number in whole.items()})
        constant //= primitive.leading_coefficient() ** int(times)
        parts.append((primitive, times))
    return constant, parts

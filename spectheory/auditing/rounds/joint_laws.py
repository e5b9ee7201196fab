"""Laws as dictionaries, outcome -> exact probability: marginals and total variation."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

Outcome = TypeVar("Outcome", bound=Hashable)


def marginal(law: Mapping[tuple[Outcome, ...], Fraction], place: int) -> dict[Outcome, Fraction]:
    """The law of one entry of a tuple of outcomes.

    Example:
        >>> law = {("a", "x"): Fraction(1, 2), ("a", "y"): Fraction(1, 4), ("b", "y"): Fraction(1, 4)}
        >>> print(*marginal(law, 0).values())
        3/4 1/4
    """
    masses: dict[Outcome, Fraction] = defaultdict(Fraction)
    for outcomes, mass in law.items():
        masses[outcomes[place]] += mass
    return masses


def dependence(law: Mapping[tuple[Outcome, ...], Fraction]) -> Fraction:
    """The total variation of a law of pairs of outcomes from that of independent ones.

    Example:
        >>> print(dependence({("a", "x"): Fraction(1, 2), ("b", "y"): Fraction(1, 2)}))
        1/2
    """
    product = {
        (first, second): mass * other
        for first, mass in marginal(law, 0).items()
        for second, other in marginal(law, 1).items()
    }
    return total_variation(law, product)


def total_variation(first: Mapping[Any, Fraction], second: Mapping[Any, Fraction]) -> Fraction:
    """Half the sum of absolute differences.

    Example:
        >>> print(total_variation({"a": Fraction(1)}, {"a": Fraction(1, 3), "b": Fraction(2, 3)}))
        2/3
    """
    zero = Fraction(0)
    return sum((abs(first.get(key, zero) - second.get(key, zero)) for key in {*first, *second}), zero) / 2

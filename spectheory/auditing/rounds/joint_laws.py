"""Laws as dictionaries, outcome -> exact probability: marginals and total variation."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

Outcome = TypeVar("Outcome", bound=Hashable)


def marginal(law: Mapping[tuple[Outcome, ...], Fraction], place: int) -> dict[Outcome, Fraction]:
    """The law of one entry of a tuple of outcomes."""
    masses: dict[Outcome, Fraction] = defaultdict(Fraction)
    for outcomes, mass in law.items():
        masses[outcomes[place]] += mass
    return masses


def dependence(law: Mapping[tuple[Outcome, ...], Fraction]) -> Fraction:
    """Total variation between a law of tuples of outcomes and the product of its marginals.

    Example:
        >>> print(dependence({("a", "x"): Fraction(1, 2), ("b", "y"): Fraction(1, 2)}))
        1/2
    """
    independent: dict[tuple[Outcome, ...], Fraction] = {(): Fraction(1)}
    for place in range(len(next(iter(law)))):
        independent = {
            (*before, outcome): mass * share
            for before, mass in independent.items()
            for outcome, share in marginal(law, place).items()
        }
    return total_variation(law, independent)


def total_variation(first: Mapping[Any, Fraction], second: Mapping[Any, Fraction]) -> Fraction:
    """Total variation: half the sum of absolute differences of two laws."""
    zero = Fraction(0)
    return sum((abs(first.get(key, zero) - second.get(key, zero)) for key in {*first, *second}), zero) / 2

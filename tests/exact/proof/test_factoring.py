"""Factors of integer polynomials by both ways, and where one of them fails."""

from random import Random
from typing import Any

import pytest
from flint import Ordering, fmpz_mpoly_ctx

from spectheory.exact.proof import factoring
from spectheory.exact.proof.factoring import integer_factors

x, y, z = fmpz_mpoly_ctx.get(["x", "y", "z"], Ordering.degrevlex).gens()


def _product(constant: Any, parts: Any) -> Any:
    for part, times in parts:
        constant = constant * part**times
    return constant


def _up_to_sign(parts: Any) -> set[tuple[str, int]]:
    return {(min(str(part), str(-part)), times) for part, times in parts}


def test_both_ways_find_the_same_factors() -> None:
    random = Random(0)
    for _ in range(60):
        linear = [
            sum(random.randint(-9, 9) * one for one in (x, y, z)) + random.randint(1, 9) for _ in range(3)
        ]
        polynomial = random.choice([-6, 1, 10]) * linear[0] * linear[1] ** 2 * (linear[2] ** 2 + x * y + 1)
        for found in (integer_factors(polynomial), factoring._rational_factors(polynomial)):
            assert _product(*found) == polynomial
        assert _up_to_sign(found[1]) == _up_to_sign(integer_factors(polynomial)[1])


@pytest.mark.parametrize("large", [2**31, 3**90])
def test_coefficients_that_the_library_cannot_compare(large: int) -> None:
    polynomial = -10 * (x + large) * (3 * x + 3) * (y * z - 7) ** 2
    with pytest.raises(OverflowError):
        polynomial.factor()
    constant, parts = integer_factors(polynomial)
    assert _product(constant, parts) == polynomial
    assert sorted(times for _, times in parts) == [1, 1, 2]
    assert constant in (-30, 30)

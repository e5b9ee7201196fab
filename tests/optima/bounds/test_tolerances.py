"""Rounding that is allowed for: outward floats and the allowance of sums."""

import math
from fractions import Fraction

import numpy as np
import pytest

from spectheory.optima.bounds.tolerances import outward, rounding_allowance


def test_outward_brackets_a_rational_as_closely_as_floats_can() -> None:
    """low <= x <= high with no float between them; equal only where x is a float."""
    rng = np.random.default_rng(0)
    for numerator, denominator in rng.integers(1, 10**12, (200, 2)).tolist():
        for sign in (1, -1):
            value = Fraction(sign * numerator, denominator)
            low, high = outward(value)
            assert Fraction(low) <= value <= Fraction(high)
            is_float = Fraction(float(value)) == value
            assert high == (low if is_float else math.nextafter(low, math.inf))
    assert outward(Fraction(0)) == (0.0, 0.0)
    low, high = outward(Fraction(1, 10) + Fraction(1, 10**30))
    assert low < Fraction(1, 10) + Fraction(1, 10**30) < high


def test_outward_partner_the_nearest_float_is_on_one_side_only() -> None:
    assert Fraction(1 / 3) < Fraction(1, 3)
    assert Fraction(1 / 10) > Fraction(1, 10)


@pytest.mark.parametrize("num_terms", [1, 10, 1000, 50_000])
def test_allowance_covers_a_running_sum(num_terms: int) -> None:
    """Adding one by one in float64: off by less than the allowance, relatively, and by more than nothing."""
    values = np.random.default_rng(num_terms).random(num_terms)
    total = 0.0
    for value in values.tolist():
        total += value
    exact = sum(map(Fraction, values.tolist()))
    error = abs(Fraction(total) - exact) / exact
    assert error <= Fraction(rounding_allowance(num_terms))
    if num_terms >= 1000:
        assert error > 0

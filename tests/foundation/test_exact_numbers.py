"""Conversions between kinds of rationals lose nothing, and take nothing that was never exact."""

from fractions import Fraction
from typing import Any, get_type_hints

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from array_kinds import objects
from spectheory.exact import Certificate
from spectheory.foundation import exact_numbers
from spectheory.optima.call_counts import SeveralCalls
from spectheory.optima.solving.solution import Solution

F = Fraction


def test_one_number() -> None:
    """A float is the rational of its bits where that is asked for, and refused where it is not."""
    assert exact_numbers.exact_number(0.1) == F(3602879701896397, 36028797018963968) != F(1, 10)
    assert exact_numbers.exact_values(np.array([0.5, 0.25])).tolist() == [F(1, 2), F(1, 4)]
    assert exact_numbers.to_fraction(fmpq(-2, 6)) == F(-1, 3)
    assert isinstance(exact_numbers.plain_number(np.float64(0.5)), float)
    assert exact_numbers.plain_number(np.int64(3)) == F(3)
    for value in (0.5, True, "1/2"):
        with pytest.raises(TypeError, match="expected an exact rational"):
            exact_numbers.to_fraction(value)


@given(terms=st.lists(st.fractions(), max_size=9))
def test_there_and_back(terms: list[Fraction]) -> None:
    """Entry by entry, in the shape they had; floats pass through what converts exact entries only."""
    there = exact_numbers.to_flint(objects(terms).reshape(1, -1))
    assert there.shape == (1, len(terms))
    assert {type(value) for value in there.flat} <= {fmpq}
    assert exact_numbers.to_fractions(there).tolist() == [terms]
    assert exact_numbers.fractions_if_exact(exact_numbers.flint_if_exact(objects(terms))).tolist() == terms
    floats = np.array([0.5])
    assert exact_numbers.fractions_if_exact(exact_numbers.flint_if_exact(floats)) is floats
    assert [exact_numbers.is_exact(array) for array in (there, floats, [F(1)])] == [True, False, False]


@pytest.mark.parametrize("convert", [exact_numbers.to_flint, exact_numbers.to_fractions])
def test_partner_a_float_among_rationals_is_refused(convert: Any) -> None:
    with pytest.raises(TypeError, match="expected an exact rational, got float"):
        convert(objects([F(1, 2), 0.5]))


def test_results_say_which_numbers_they_hold() -> None:
    """What a type checker reveals; the partner is a float whatever the pair."""
    assert get_type_hints(Certificate.optimum.fget)["return"] == Fraction | float | None
    assert get_type_hints(Solution)["value"] == get_type_hints(SeveralCalls)["value"] == Fraction | float


@given(terms=st.lists(st.fractions(), max_size=9))
def test_balanced_sums(terms: list[Fraction]) -> None:
    """In any order of additions a sum of rationals is the same; of nothing it is 0."""
    assert exact_numbers.balanced_sum(objects(terms)) == sum(terms)
    of_flint = exact_numbers.balanced_sum(exact_numbers.to_flint(objects(terms)))
    assert exact_numbers.plain_number(of_flint) == sum(terms)

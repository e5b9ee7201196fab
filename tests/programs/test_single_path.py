"""The single-path program: golden values."""

from __future__ import annotations

from fractions import Fraction

import pytest

from program_support import TWO_TOKENS
from spectheory.pair import ModelPair
from spectheory.programs import optimum


@pytest.mark.parametrize(
    ("draft_length", "value"),
    [(1, "5/3"), (2, "20/9"), (3, "8/3"), (4, "247/81"), (8, "26945/6561")],
)
def test_single_path_two_tokens(draft_length: int, value: str) -> None:
    """theory.md §4: E[τ] of block verification is 11/9, 5/3, 166/81, 20384/6561 at L = 2, 3, 4, 8."""
    solution = optimum(ModelPair.context_free_pair(*TWO_TOKENS, draft_length))
    assert solution.value == Fraction(value)
    assert solution.method == "single-path LP"
    assert Fraction(solution.lower) <= solution.value <= Fraction(solution.upper)
    assert solution.upper - solution.lower <= 1e-15
    assert (solution.status, solution.gap, solution.arithmetic) == ("optimal", 0, "exact")

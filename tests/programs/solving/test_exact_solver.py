"""Rational solutions: tiny coefficients and rows that are generated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from program_support import PAIRS, block_verification_value
from spectheory.errors import CertificationError
from spectheory.pair import ModelPair
from spectheory.programs import (
    check_solution,
    multi_path_optimum,
    multi_path_program,
    single_path_optimum,
    solve_exact,
    solve_exact_by_rows,
)


def test_tiny_probabilities_are_solved_by_exact_pivots() -> None:
    """HiGHS drops coefficients below 1e-9; the rational pivots put them back."""
    tiny = Fraction(1, 10**14)
    rng = np.random.default_rng(11)
    for _ in range(20):
        rows = []
        for _ in range(2):
            weights = [Fraction(int(w)) * (tiny if rng.random() < 0.5 else 1) for w in rng.integers(1, 9, 3)]
            rows.append([weight / sum(weights) for weight in weights])
        pair = ModelPair.context_free_pair(rows[0], rows[1], draft_length=2)
        assert single_path_optimum(pair).value == block_verification_value(pair)
        exact, floating = multi_path_optimum(pair, 2), multi_path_optimum(pair.to_float(), 2)
        assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)


def test_row_generation_finds_the_same_optimum() -> None:
    for pair in PAIRS[3:60:6]:  # V = 3, L = 2
        program = multi_path_program(pair, 2)
        solution = solve_exact_by_rows(program, "prefix matching", range(13), rows_per_round=5)
        assert solution.value == solve_exact(program).value
        check_solution(program, solution)
    with pytest.raises(CertificationError, match="raise max_rounds"):
        solve_exact_by_rows(program, "prefix matching", range(13), max_rounds=0)

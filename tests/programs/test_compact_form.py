"""The compact form encloses the optimum and the certified interval."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from spectheory import instances
from spectheory.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.programs import multi_path_optimum, solve, solve_exact
from spectheory.programs.compact_form import compact_form_program
from spectheory.programs.interval.interval import multi_path_interval


def test_compact_form_bounds_shrink_to_the_optimum() -> None:
    """inner ≤ optimum ≤ outer, monotone in nested points, and exact once every q(T) is a point."""
    for number in range(6):
        pair, num_drafts = instances.random_rational([9, number], 2, 2), 2 + number % 3
        exact = multi_path_optimum(pair, num_drafts).value
        last_inner, last_outer = -np.inf, np.inf
        for count in (2, 4, 8):
            points = np.arange(count + 1) / count
            inner = solve(compact_form_program(pair.to_float(), num_drafts, points, "inner")).value
            outer = solve(compact_form_program(pair.to_float(), num_drafts, points, "outer")).value
            assert last_inner - 1e-8 <= inner <= float(exact) + 1e-8
            assert last_outer + 1e-8 >= outer >= float(exact) - 1e-8
            last_inner, last_outer = inner, outer
        leaves = pair.draft_path_probs(2)
        every = {sum(leaves[i] for i in range(4) if bits >> i & 1) for bits in range(16)}
        for side in ("inner", "outer"):
            program = compact_form_program(pair, num_drafts, sorted(Fraction(u) for u in every), side)
            assert solve_exact(program).value == exact


def test_compact_form_agrees_with_the_interval_beyond_listed_antichains() -> None:
    """V = 3, L = 4 has more antichains than atoms; inner and outer enclose the interval."""
    pair = instances.random_float(6, 3, 4, concentration=0.7, agreement=0.3)
    best = multi_path_interval(pair, 3)
    points = np.linspace(0, 1, 13)
    inner = solve(compact_form_program(pair, 3, points, "inner"))
    outer = solve(compact_form_program(pair, 3, points, "outer"))
    assert inner.value - 1e-7 <= best.lower <= best.upper <= outer.upper
    assert 0 < outer.value - inner.value < 0.05
    assert inner.value < best.lower < best.upper < outer.value


def test_compact_form_refuses() -> None:
    """Points out of order or range, no end, a wrong side, floats for an exact pair, a large program."""
    pair = instances.two_token()
    for points, side, message in (
        (["0", "1", "1/2"], "outer", "increase"),
        (["0", "3/2"], "outer", "increase"),
        ([], "outer", "increase"),
        (["1/4", "1"], "inner", "start with 0"),
        (["0", "1"], "both", "side"),
        ([0.0, 1.0], "inner", "exact"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            compact_form_program(pair, 2, points, side)  # type: ignore[arg-type]
    with pytest.raises(EnumerationTooLargeError, match="points"):
        compact_form_program(pair, 2, ["0", "1/2", "1"], "outer", max_variables=20)

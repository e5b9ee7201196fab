"""Block transport against its closed form."""

from fractions import Fraction

import pytest

from deep import first_is_quick
from program_support import ALL_PAIRS, assert_solved
from spectheory import instances
from spectheory.optima import single_path_optimum
from spectheory.optima.block_transport import (
    block_transport_optimum,
    block_transport_program,
    block_transport_value,
)


@pytest.mark.parametrize(("draft_length", "value"), [(1, "2/3"), (2, "4/3"), (3, "50/27"), (4, "64/27")])
def test_block_transport_two_tokens(draft_length: int, value: str) -> None:
    """E[τ] of greedy block verification on the two-token example (theory.md §4)."""
    pair = instances.two_token(draft_length)
    assert block_transport_value(pair) == Fraction(value)
    if draft_length <= 3:
        assert block_transport_optimum(pair).value == Fraction(value)


@first_is_quick("first", range(3))
def test_block_transport_is_its_closed_form(first: int) -> None:
    """max E[β] = Σ_ℓ Σ_a min{p(a), q(a)} (block2024 Lemma 10 and Theorem 3)."""
    for pair in ALL_PAIRS[first::3]:
        floats = pair.to_float()
        exact, value = block_transport_optimum(pair), block_transport_value(pair)
        assert exact.value == value
        assert block_transport_value(floats) == pytest.approx(float(value), abs=1e-12)
        programs = block_transport_program(pair), block_transport_program(floats)
        assert_solved(programs[0], exact, programs[1], block_transport_optimum(floats))
        # any valid verifier of one path is a coupling too
        assert single_path_optimum(pair).value - 1 <= value

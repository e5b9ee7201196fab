"""The cost model: an iteration by iteration clock against the formula, and its limits."""

from dataclasses import replace

import pytest

from spectheory.foundation.errors import InvalidInputError
from spectheory.simulation import Simulation, predicted_speed_up
from spectheory.simulation.estimates import Estimate


def clock(tokens_per_call: list[int], draft_length: int, cost_ratio: float) -> float:
    plain = sum(tokens_per_call) * 1.0
    speculative = 0.0
    for _ in tokens_per_call:
        for _ in range(draft_length):
            speculative += cost_ratio
        speculative += 1.0
    return plain / speculative


@pytest.mark.parametrize("cost_ratio", [0, 0.05, 0.18, 1.5])
@pytest.mark.parametrize("draft_length", [1, 4, 8])
def test_the_formula_is_the_clock(draft_length: int, cost_ratio: float) -> None:
    calls = [1, 3, 2, 2, 5]
    block_efficiency = sum(calls) / len(calls)
    found = predicted_speed_up(block_efficiency, draft_length, cost_ratio)
    assert found == pytest.approx(clock(calls, draft_length, cost_ratio))
    longer = predicted_speed_up(block_efficiency, draft_length + 1, cost_ratio)
    assert longer < found or cost_ratio == 0  # the partner: another length costs more


def test_a_simulation_predicts_with_its_intervals() -> None:
    numbers = (2.5, (2.0, 3.0), 0.25, 2.4, (1.9, 2.9), 0.25, [0.5, 0.5], [0.5, 0.5], 40)
    simulation = Simulation([Estimate("block", True, 1, *numbers)], {"draft_length": 8})
    assert simulation.speed_ups(0.125) == [(1.25, 1.0, 1.5)]
    assert simulation.speed_ups(0) == [(2.5, 2.0, 3.0)]
    assert "speed_up" not in simulation.rows()[0]
    (row,) = replace(simulation, cost_ratio=0.125).rows()
    assert (row["speed_up"], row["speed_up_low"], row["speed_up_high"]) == (1.25, 1.0, 1.5)
    assert (row["block_efficiency"], row["low"], row["high"], row["samples"]) == (2.5, 2.0, 3.0, 40)
    assert (row["counted"], row["counted_low"], row["counted_high"]) == (2.4, 1.9, 2.9)


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), "0.1", None, True])
def test_what_is_no_ratio(wrong: float) -> None:
    with pytest.raises(InvalidInputError, match="cost_ratio must be a number of at least 0"):
        predicted_speed_up(2.0, 8, wrong)

"""The cost model: an iteration by iteration clock against the formula, and its limits."""

import pytest

from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import Iid
from spectheory.simulation.candidates import Candidate
from spectheory.simulation.cost import check_cost
from spectheory.verification.algorithms import verifiers


def clock(tokens_per_call: list[int], draft_length: int, draft_cost: float, row_cost: float) -> float:
    plain = sum(tokens_per_call) * 1.0
    speculative = 0.0
    for _ in tokens_per_call:
        for _ in range(draft_length):
            speculative += draft_cost
        speculative += 1.0 + 2 * draft_length * row_cost
    return plain / speculative


@pytest.mark.parametrize("row_cost", [0, 0.02])
@pytest.mark.parametrize("draft_cost", [0, 0.05, 0.18, 1.5])
@pytest.mark.parametrize("draft_length", [1, 4, 8])
def test_the_formula_is_the_clock(draft_length: int, draft_cost: float, row_cost: float) -> None:
    calls = [1, 3, 2, 2, 5]
    block_efficiency = sum(calls) / len(calls)
    cost = Candidate(verifiers["spectr"], Iid(2), draft_length).cost(draft_cost, row_cost)
    assert block_efficiency / cost == pytest.approx(clock(calls, draft_length, draft_cost, row_cost))
    longer = Candidate(verifiers["spectr"], Iid(2), draft_length + 1).cost(draft_cost, row_cost)
    assert longer > cost or draft_cost == row_cost == 0  # the partner: another length costs more


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), "0.1", None, True])
def test_what_is_no_cost(wrong: float) -> None:
    with pytest.raises(InvalidInputError, match="draft_cost must be a number of at least 0"):
        check_cost("draft_cost", wrong)

"""The costs of calls are those of a clock that goes on with the models alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from decoding_support import PROMPTS, tiny_pair
from scripts import load


def test_the_costs_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on with the models alone: by a time per call, and by one per token that is read."""
    pair, passed = tiny_pair(), [0.0]
    for model, call, token in ((pair.target_model, 100.0, 1.0), (pair.drafts[0], 5.0, 0.0)):

        def goes_on(_model: Any, args: Any, named: Any, call: float = call, token: float = token) -> None:
            passed[0] += call + token * named.get("input_ids", args[0] if args else None).shape[1]

        model.register_forward_pre_hook(goes_on, with_kwargs=True)
    monkeypatch.setattr("spectheory.decoding.speed.time", SimpleNamespace(perf_counter=lambda: passed[0]))
    call_costs = load("benchmarks", "call_costs").call_costs
    costs = call_costs(pair, PROMPTS[0], 3, 2)
    assert costs == (101.0, 10.0, 107.0)
    assert costs.cost_ratio(2) == 5 / 101
    assert costs.row_cost(6) == 1 / 101
    cost = 1 + 2 * costs.cost_ratio(2) + 6 * costs.row_cost(6)
    assert costs.speed_up(2.5) == pytest.approx(2.5 / cost, rel=1e-14)
    assert call_costs(pair, PROMPTS[0], 1, 2) == (101.0, 10.0, 103.0)

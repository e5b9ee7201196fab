"""A plan recommends nothing that is not lossless, and says of what nobody knows whether it is."""

from dataclasses import replace
from typing import Any

import pytest

from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.simulation.planning import Budget, plan_pair
from spectheory.verification.outcome import Outcome


class AlwaysAccepts:
    name = "always_accepts"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stops = 0 * target_rows[..., 0]
        stops[..., 0, -1] += 1
        return Outcome.from_rows(stops, target_rows)


def test_a_verifier_that_is_not_lossless_is_no_choice() -> None:
    """It would earn the most: more than any lossless one can."""
    pair, budget = instances.two_token(1), Budget(2)
    found = plan_pair(pair, budget, ["block", AlwaysAccepts()])
    assert (found.best.verifier, tuple(found.left_out)) == ("block", ("always_accepts",))
    assert "left out, because one call is not lossless on this pair: always_accepts" in found.tables()[0].note
    assert found.to_document()["left_out"] == ["always_accepts"]
    with pytest.raises(InvalidInputError, match="one call is not lossless on this pair: always_accepts"):
        plan_pair(pair, budget, [AlwaysAccepts()])


def test_an_estimate_says_what_it_does_not_know() -> None:
    found = replace(plan_pair(instances.two_token(1), Budget(1), ["block"]), unknown=["block"])
    assert found.headline().endswith("tokens per unit of cost (not known to be lossless)")
    assert "not known to be lossless: block" in found.tables()[0].note

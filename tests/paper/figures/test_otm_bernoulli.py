"""Acceptance of otm on Bernoulli pairs against a sum over the number of heads."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper import otm_bernoulli


def test_otm_bernoulli_values() -> None:
    """OTM by summing over the number of heads: only all-tails and all-heads drafts can fail."""
    table = otm_bernoulli(max_drafts=6).tables[0]
    for row in (dict(zip(table.columns, entry, strict=True)) for entry in table.rows):
        b, c, k = Fraction(1, 4), row["target_head"], row["num_drafts"]
        law = [comb(k, heads) * b**heads * (1 - b) ** (k - heads) for heads in range(k + 1)]
        # Both tokens drafted: anything is accepted.  Otherwise at most the mass of that token.
        assert row["otm"] == min(1, sum(law[1:-1]) + min(law[-1], c) + min(law[0], 1 - c))
        assert row["multi_round"] <= row["otm"]
        if row["target_head"] == 1:
            assert row["kseq"] == pytest.approx(float(row["otm"]), abs=1e-12)


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("bernoulli_acceptance", lambda original: lambda *heads: 0, ["the min cut equals"]),
        ("otm_optimum", told(value=lambda value: value + 1), ["for K ≤"]),
        ("optimal_acceptance", told(value=lambda value: value / 9), ["no rule exceeds"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "otm_bernoulli", called, lie, claims)

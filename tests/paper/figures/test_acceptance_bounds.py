"""Optimal acceptance, its limit and its bounds. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Changed, Lie, assert_seen, told
from spectheory.paper.figures.acceptance_bounds import acceptance_bounds


def test_values() -> None:
    """α_1..α_3 of the two-token pair (theory.md §3); the third draft misses a quarter of the target."""
    table = acceptance_bounds(max_drafts=3).tables[0]
    values = [row["otm"] for row in table.select(pair="two tokens")]
    assert values == [Fraction(2, 3), Fraction(8, 9), 1]
    assert {row["limit"] for row in table.select(pair="the draft misses 1/4")} == {Fraction(3, 4)}
    for row in table.select():
        K = row["num_drafts"]
        assert row["lower"] == row["upper"] * (1 - (1 - Fraction(1, K)) ** K)


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "optimal_acceptance",
            lambda original: (
                lambda t, q, drafts: Changed(original(t, q, drafts), value=lambda _: Fraction(1, 9 * drafts))
            ),
            ["α_K does not fall", "α_K lies between", "the upper bound is attained", "for K ≤ 4"],
        ),
        ("optimal_acceptance", told(value=lambda value: value + 1), ["α_K stays at or below"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "acceptance_bounds", called, lie, claims)

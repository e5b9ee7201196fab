"""The front of lossy verifiers. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told, told_of
from spectheory.paper.figures.lossy_front import lossy_front


def test_values() -> None:
    """theory.md Statement 5.22 at L = 1: 5/3, 53/30 at 1/10, 2 from 1/3 on; and mistakes below the front."""
    findings = lossy_front(1, (1, 2), steps=5)
    front = {
        row["total_variation"]: row["most"] for row in findings.table("lossy_front").select(num_drafts=1)
    }
    assert front[Fraction(0)] == Fraction(5, 3)
    assert front[Fraction(1, 10)] == Fraction(53, 30)
    assert front[Fraction(2, 5)] == front[Fraction(1, 2)] == 2
    points = findings.table("lossy_verifiers")
    (row,) = points.select(num_drafts=1, verifier="target_correction")
    assert (row["total_variation"], row["block_efficiency"]) == (Fraction(1, 9), Fraction(5, 3))
    assert row["most"] == Fraction(5, 3) + Fraction(1, 9)
    assert {row["verifier"] for row in points.select(num_drafts=2, kind="published")} >= {"multi_round"}


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("optimum", told(value=lambda value: value + 1), ["the front starts"]),
        (
            "lossy_optimum",
            told_of(lambda pair, budget, drafts: budget == Fraction(1, 8), value=lambda value: value - 1),
            ["it is concave"],
        ),
        (
            "lossy_optimum",
            told(value=lambda value: value - 1),
            ["with a total variation of 1", "no verifier"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "lossy_front", called, lie, claims)

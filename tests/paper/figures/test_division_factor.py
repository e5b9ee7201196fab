"""K-SEQ against its division factor. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.division_factor import division_factor


def test_values_of_the_two_token_pair() -> None:
    """ρ* and its acceptance, and 5/6 > 0.811420 at ρ = 2 (theory.md §3)."""
    findings = division_factor(("two_token",), steps=4)
    best = findings.table("division_factor_best").select()[0]
    assert best["best_acceptance"] == pytest.approx(0.811420, abs=1e-6)
    assert best["optimal"] == Fraction(8, 9)
    at_two = findings.table("division_factor").select(division_factor=Fraction(2))[0]
    assert at_two["drafted"] == Fraction(5, 6)
    assert at_two["accepted"] == Fraction(3, 4)
    assert at_two["defect"] == 0


def test_a_factor_below_the_best_can_be_lossless_or_not() -> None:
    """The two pairs differ in this (Statement 3.5)."""
    table = division_factor(steps=8).table("division_factor")
    defects = {name: table.select(pair=name)[0]["defect"] for name in ("two_token", "no_ratio_between")}
    assert defects["two_token"] > 0
    assert defects["no_ratio_between"] == 0


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "output_law",
            told(total_variation=lambda value: value + 1),
            ["K-SEQ is lossless", "it is lossless exactly"],
        ),
        ("kseq_rule_at", told(acceptance=lambda value: value + 1), ["no factor above"]),
        ("optimal_acceptance", told(value=lambda value: value / 9), ["no lossless factor"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "division_factor", called, lie, claims)

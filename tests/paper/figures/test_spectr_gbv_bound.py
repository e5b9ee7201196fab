"""Bound(K) at one position. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Changed, Lie, assert_seen, told
from spectheory.paper.figures.spectr_gbv_bound import spectr_gbv_bound
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound


def test_values() -> None:
    """theory.md §2: 41/60 accepted, class 7/9, Bound 5/6, α_2 = 8/9; 2/9 undefined for fair coins."""
    table = spectr_gbv_bound(("two tokens", "equal models"), max_drafts=2).tables[0]
    row = table.select(pair="two tokens", num_drafts=2)[0]
    values = [row[name] for name in ("spectr_gbv", "class_maximum", "bound", "otm", "multi_round")]
    assert values == [Fraction(41, 60), Fraction(7, 9), Fraction(5, 6), Fraction(8, 9), Fraction(7, 9)]
    assert row["total_variation"] == Fraction(3, 40)
    assert table.select(pair="equal models", num_drafts=2)[0]["undefined"] == Fraction(2, 9)


def test_one_draft_is_all_the_same() -> None:
    for row in spectr_gbv_bound(max_drafts=1).tables[0].select():
        assert row["bound"] == row["otm"] == row["multi_round"] == row["spectr_gbv"]
        assert row["total_variation"] == 0


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "conditionally_independent_bound",
            lambda original: lambda pair, drafts: Fraction(9 * drafts),
            ["Bound(K) is no bound", "Bound(K) does not always"],
        ),
        ("output_law", told(total_variation=lambda value: value * 0), ["SpecTr-GBV is not lossless"]),
        (
            "output_law",
            lambda original: (
                lambda name, pair, drafts: Changed(
                    original(name, pair, drafts),
                    block_efficiency=lambda _: 1 + conditionally_independent_bound(pair, drafts),
                )
            ),
            ["SpecTr-GBV does not always"],
        ),
        (
            "class_maximum",
            lambda original: lambda *rows: Fraction(2),
            ["Bound(2) bounds", "its class does not"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "spectr_gbv_bound", called, lie, claims)

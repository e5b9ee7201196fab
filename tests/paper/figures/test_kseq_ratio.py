"""The worst case of K-SEQ. Its data, and that its checks can fail."""

from __future__ import annotations

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.kseq_ratio import kseq_ratio


def test_the_worst_of_the_family_with_two_drafts_is_eight_ninths() -> None:
    """Draft (2/3, 1/3), target (4/9, 5/9): α_2 = 1, and ρ* = 4/3 accepts 1 - (1/3)^2."""
    table = kseq_ratio((2,), (2,), starts=4, steps=4).tables[0]
    row = table.select(search="two tokens")[0]
    assert row["ratio"] == pytest.approx(8 / 9, abs=1e-9)
    assert row["draft"] == pytest.approx([2 / 3, 1 / 3], abs=1e-3)
    assert row["guarantee"] == pytest.approx(3 / 4)


def test_the_search_does_not_beat_the_family_by_much() -> None:
    table = kseq_ratio((2, 4), (2,), starts=40, steps=80).tables[0]
    for drafts in (2, 4):
        rows = {row["search"]: row["ratio"] for row in table.select(num_drafts=drafts)}
        assert rows["V = 2"] >= rows["two tokens"] - 1e-6


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("optimal_acceptance", told(value=lambda value: 9 * value), ["no ratio found"]),
        (
            "_worst_of_family",
            lambda original: lambda drafts: (1.0, *original(drafts)[1:]),
            ["no searched rows"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "kseq_ratio", called, lie, claims)

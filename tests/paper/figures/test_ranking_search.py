"""The ranking by p/q among all rankings. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.ranking_search import ranking_search


def test_values() -> None:
    """theory.md §5: 889/540 against 911/540 at one position; all of 2^3 rankings at V = 2, L = 2."""
    table = ranking_search(num_pairs=0, num_drafts=(3,)).tables[0]
    row = table.select(pair="two near ratios")[0]
    assert (row["greedy"], row["best"]) == (Fraction(889, 540), Fraction(911, 540))
    assert table.select(pair="two_token")[0]["rankings_tried"] == 8


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("best_ranking", told(rankings_tried=lambda _: 0), ["every tree-based"]),
        (
            "best_ranking",
            told(greedy=lambda _: SimpleNamespace(value=Fraction(9))),
            ["the ranking by p/q lies", "p/q is not always"],
        ),
        ("best_ranking", told(optimum=lambda value: value / 9), ["no ranking exceeds"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "ranking_search", called, lie, claims)

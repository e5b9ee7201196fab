"""The fall of greedy multi-path with more drafts. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.greedy_falls import greedy_falls


def test_values() -> None:
    """theory.md §5: 2.222, 2.617, 2.768, 2.633 and the limit 19/9; fair coins fall from the start."""
    table = greedy_falls(("two_token", "uniform_equal"), (1, 2, 3, 4)).table("greedy_falls")
    rows = table.select(pair="two_token")
    assert [row["greedy_multipath_float"] for row in rows] == pytest.approx(
        [2.222, 2.617, 2.768, 2.633], abs=1e-3
    )
    assert {row["limit"] for row in rows} == {Fraction(19, 9)}
    coins = [row["greedy_multipath"] for row in table.select(pair="uniform_equal")]
    assert coins == sorted(coins, reverse=True)
    assert coins[0] == 3


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("output_law", told(block_efficiency=lambda value: value + 1), ["the closed form"]),
        ("printed_times", lambda original: lambda: original()[::-1], ["every row"]),
        ("limit_of_many_drafts", lambda original: lambda pair: Fraction(9), ["it tends"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "greedy_falls", called, lie, claims)


def test_partner_a_pair_on_which_it_grows() -> None:
    """Two drafts of the two-token pair earn more than one: then nothing falls, and the check says so."""
    failures = greedy_falls(("two_token",), (1, 2)).failures
    assert any(text.startswith("it does not always grow") for text in failures)

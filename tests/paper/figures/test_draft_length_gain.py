"""The gain of block over token verification. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen
from spectheory.pairs.instances import two_token
from spectheory.paper.figures.draft_length_gain import draft_length_gain, lost_lead_pair


def test_values() -> None:
    """20/19 at two tokens on all three drawn pairs that start alike; then the third one's gain shrinks."""
    table = draft_length_gain(max_length=4, num_random=1).table("draft_length_gain")
    two, lost = (
        [row["relative_gain"] for row in table.select(pair=name)] for name in ("two_token", "lost_lead")
    )
    assert two[:2] == lost[:2] == pytest.approx([0, 1 / 19])
    assert two == sorted(two)
    assert lost[1:] == sorted(lost[1:], reverse=True)
    efficiency = [row["block"] for row in table.select(pair="two_token")]
    assert efficiency == [Fraction(5, 3), Fraction(20, 9), Fraction(8, 3), Fraction(247, 81)]  # theory.md §4


def test_printed_numbers() -> None:
    """block2024 Tables 1, 6-10: the gain grows with the draft length for both drafters.

    Of two printed digits of the efficiencies it can be recomputed to half a percent.
    """
    printed = draft_length_gain(max_length=2, num_random=1).table("draft_length_gain_printed")
    for drafter in ("PALM-2-XXS", "PALM-2-XXXS"):
        rows = printed.select(drafter=drafter)
        gains = [row["gain_in_percent"] for row in rows]
        assert gains == sorted(gains)
        for row, gain in zip(rows, gains, strict=True):
            assert abs(100 * (row["block"] / row["token"] - 1) - gain) < 0.5


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "_efficiencies",
            lambda original: (
                lambda verifier, pair: [(1 + (verifier == "token")) * v for v in original(verifier, pair)]
            ),
            ["block verification never earns"],
        ),
        ("two_token", lambda original: lost_lead_pair, ["on context-free and Markov"]),
        ("lost_lead_pair", lambda original: two_token, ["it does not always grow"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "draft_length_gain", called, lie, claims)

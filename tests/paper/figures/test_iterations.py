"""Tokens decoded in several calls. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.iterations import iterations


def test_values() -> None:
    """theory.md §4: E[N(i)] on the two-token pair, and 57/8 < 29/4 on that of Statement 4.6."""
    table = iterations(num_iterations=3, checked_tokens=2).tables[0]

    def tokens(pair: str, verifier: str) -> list[Fraction]:
        return [row["tokens"] for row in table.select(pair=pair, verifier=verifier)]

    assert tokens("two_token", "greedy_block") == [Fraction(7, 3), Fraction(40, 9), Fraction(59, 9)]
    assert tokens("two_token", "block") == [Fraction(20, 9), Fraction(40, 9), Fraction(60, 9)]
    assert tokens("forced_start", "block") == [5, Fraction(57, 8)]
    assert tokens("forced_start", "block_on_prefix") == [4, Fraction(29, 4)]


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("first_tokens_law", told(total_variation=lambda value: value + 1), ["decoded tokens follow"]),
        (
            "expected_decoded_tokens",
            lambda original: (
                lambda verifier, *rest, **options: tuple(
                    n + 9 * (verifier != "block") for n in original(verifier, *rest, **options)
                )
            ),
            ["block has the largest", "greedy block leads"],
        ),
        (
            "expected_decoded_tokens",
            lambda original: (
                lambda verifier, *rest, **options: tuple(
                    n * (verifier == "block") for n in original(verifier, *rest, **options)
                )
            ),
            ["Theorem 2 fails"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "iterations", called, lie, claims)

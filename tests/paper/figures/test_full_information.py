"""The ideal algorithm of the two-token example. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.full_information import acceptance_by_block, full_information


def test_values() -> None:
    """10/9, 11/9 and 12/9 as printed; block 5/3 and greedy block 50/27 at length 3 (theory.md §4)."""
    table = full_information((2, 3)).table("full_information")
    accepted = {(row["draft_length"], row["algorithm"]): row["accepted"] for row in table.select()}
    assert [accepted[2, name] for name in ("token", "block", "ideal")] == [
        Fraction(10, 9),
        Fraction(11, 9),
        Fraction(12, 9),
    ]
    assert accepted[3, "block"] == Fraction(5, 3)
    assert accepted[3, "greedy_block"] == accepted[3, "ideal"] == Fraction(50, 27)
    defects = {row["algorithm"]: row["total_variation"] for row in table.select(draft_length=2)}
    assert defects["greedy_block"] == Fraction(1, 9)


def test_acceptance_of_every_block() -> None:
    rows = {row[0]: row[1:4] for row in acceptance_by_block()}
    assert rows["AA"] == (Fraction(3, 4), 0, Fraction(1, 4))
    assert rows["BA"] == (0, Fraction(1, 2), Fraction(1, 2))


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "output_law",
            told(block_efficiency=lambda value: value + 1),
            [
                "E[τ] is 10/9",
                "block verification is the best",
                "no lossless verifier",
                "the coupling program",
            ],
        ),
        ("output_law", told(total_variation=lambda value: value * 0), ["greedy block reaches"]),
        ("block_transport_optimum", told(value=lambda value: value + 1), ["the coupling program"]),
        (
            "find_verifier",
            lambda original: lambda name: original("token"),
            ["block verification accepts each"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "full_information", called, lie, claims)

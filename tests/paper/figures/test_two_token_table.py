"""The table of the two-token pair against independent values."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper import two_token_table


def test_two_token_table_values() -> None:
    """E[tau] of the two-token pair (theory.md §4); token is sum_{i=1..L} (2/3)^i."""
    table = two_token_table((1, 2, 3, 4)).tables[0]
    expected_block = [Fraction(2, 3), Fraction(11, 9), Fraction(5, 3), Fraction(166, 81)]
    assert table.column("block_accepted") == expected_block
    assert table.column("token_accepted") == [
        sum(Fraction(2, 3) ** i for i in range(1, length + 1)) for length in (1, 2, 3, 4)
    ]
    assert table.column("optimum") == [value + 1 for value in expected_block]


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("optimum", told(value=lambda value: value + 1), ["block verification attains"]),
        ("output_law", told(block_efficiency=lambda value: value + 1), ["E[τ] at draft length 2"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "two_token_table", called, lie, claims)

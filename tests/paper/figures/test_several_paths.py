"""The optimum of several paths and every verifier. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Changed, Lie, assert_seen, told
from spectheory.paper.figures.several_paths import several_paths


def test_values() -> None:
    """theory.md §5: optimum 17/9 and 212/81, greedy_multipath the same, spectr 1.811420 and 2.405487."""
    table = several_paths(("two_token",), (2,), (1, 2)).tables[0]
    rows = {(row["draft_length"], row["verifier"]): row for row in table.select()}
    assert [rows[length, "spectr"]["optimum"] for length in (1, 2)] == [Fraction(17, 9), Fraction(212, 81)]
    for length, spectr, greedy in ((1, 1.811420, 17 / 9), (2, 2.405487, 212 / 81)):
        assert rows[length, "spectr"]["block_efficiency"] == pytest.approx(spectr, abs=1e-6)
        assert rows[length, "greedy_multipath"]["block_efficiency"] == pytest.approx(greedy, abs=1e-9)


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("output_law", told(total_variation=lambda value: value + 1), ["every verifier here"]),
        ("output_law", told(block_efficiency=lambda value: value + 9), ["none exceeds", "a selected path"]),
        (
            "output_law",
            lambda original: (
                lambda name, *rest: Changed(
                    original(name, *rest), block_efficiency=lambda v: v * (name != "otm")
                )
            ),
            ["with more than two drafts"],
        ),
        (
            "output_law",
            lambda original: (
                lambda name, *rest: Changed(
                    original(name, *rest), block_efficiency=lambda v: v * (name == "block")
                )
            ),
            ["greedy multi-path on one"],
        ),
        (
            "optimum",
            lambda original: (
                lambda pair, drafts: Changed(
                    original(pair, drafts), value=lambda value: 9 * value / drafts**3
                )
            ),
            ["the optimum does not fall"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "several_paths", called, lie, claims)

"""Who wins, cell by cell. Its data, and that its checks can fail."""

from __future__ import annotations

import pytest

from paper_support import Changed, Lie, assert_seen, told
from spectheory.paper.figures.winners import winners


def test_one_draft_and_agreeing_models() -> None:
    """One path: block is optimal.  No share of the optimum is above 1."""
    findings = winners((0.0, 0.9), (1, 3), (1, 2), num_pairs=3)
    table, all_of_them = findings.table("winners"), findings.table("winners_all")
    for row in table.select(num_drafts=1):
        assert row["winner"] == "block"
        assert row["share_of_optimum"] == pytest.approx(1, abs=1e-5)
    for row in table.select():
        rivals = all_of_them.select(**{key: row[key] for key in ("agreement", "num_drafts", "draft_length")})
        assert row["block_efficiency"] == max(rival["block_efficiency"] for rival in rivals)
    assert max(all_of_them.column("share_of_optimum")) <= 1 + 1e-5


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("output_law", told(block_efficiency=lambda value: value + 9), ["no verifier exceeds"]),
        (
            "output_law",
            lambda original: (
                lambda name, *rest: Changed(
                    original(name, *rest), block_efficiency=lambda v: v + 9 * (name != "block")
                )
            ),
            ["several paths do not"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "winners", called, lie, claims)

"""The token tree and its antichains. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.token_tree import token_tree


def test_values() -> None:
    """The masses add up to 212/81, the optimum (theory.md §5); 26 antichains at L = 2."""
    findings = token_tree(draft_length=2)
    nodes, chains = (findings.table(name) for name in ("token_tree", "token_tree_antichains"))
    assert sum(nodes.column("mass")) == Fraction(212, 81)
    assert len(chains.rows) == 26
    chosen = [row["node"] for row in nodes.select(in_antichain=True)]
    assert not [(a, b) for a in chosen for b in chosen if a != b and b.startswith(a)]
    for row in chains.select():
        assert row["limit"] == 1 - (1 - row["draft"]) ** 2


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "output_law",
            told(
                accepted_masses=lambda levels: [
                    level * (1 + (depth == 2)) for depth, level in enumerate(levels)
                ]
            ),
            ["every antichain's", "the masses add up"],
        ),
        ("count_antichains", lambda original: lambda *sizes: 0, ["there are N_L"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "token_tree", called, lie, claims)

"""Skewed drafts and the limit on them. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.skewed_drafts import skewed_drafts


def test_values() -> None:
    """theory.md §5: 2018/729 by the ranking and 2080/729 by the optimum, K = 3, L = 2; 20/9 by the draft."""
    findings = skewed_drafts()
    earned = {
        row["law"]: row["block_efficiency"] for row in findings.table("skewed_drafts_efficiency").select()
    }
    assert earned == {
        "draft": Fraction(20, 9),
        "ranking": Fraction(2018, 729),
        "optimal": Fraction(2080, 729),
    }
    for name in earned:
        assert sum(row["selected"] for row in findings.table("skewed_drafts").select(law=name)) == 1


def test_the_ranking_selects_the_top_path_whenever_it_is_drafted() -> None:
    row = skewed_drafts().table("skewed_drafts").select(law="ranking", path="BB")[0]
    assert row["selected"] == 1 - (1 - Fraction(1, 9)) ** 3


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("is_skewed_draft", told(is_member=lambda _: False), ["each of the laws"]),
        ("is_skewed_draft", told(is_member=lambda _: True), ["always selecting one"]),
        (
            "path_selection_optimum",
            told(value=lambda value: value / 9),
            ["the optimal law attains", "no law exceeds"],
        ),
        (
            "LevelSets",
            lambda original: SimpleNamespace(of=told(excesses=lambda values: values - 1)(original.of)),
            ["a ranking meets"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "skewed_drafts", called, lie, claims)

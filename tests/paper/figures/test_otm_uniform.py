"""Acceptance of uniform pairs, spectr2023 Figure 5. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Changed, Lie, assert_seen
from spectheory.paper.figures.otm_uniform import otm_uniform


def test_values() -> None:
    """By counting: no draft falls on the r-th part of the tokens with probability (1 - 1/r)^K."""
    table = otm_uniform(120, (60, 12), max_drafts=5).tables[0]
    for row in table.select():
        part = Fraction(row["target_support"], 120)
        assert row["otm"] == row["printed"] == 1 - (1 - part) ** row["num_drafts"]
        assert row["kseq"] == pytest.approx(float(row["otm"]), abs=1e-12)


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "optimal_acceptance_curve",
            lambda original: (
                lambda *rows: [Changed(cut, value=lambda v: v * 8 / 9) for cut in original(*rows)]
            ),
            ["the min cut equals", "K-SEQ attains"],
        ),
        (
            "optimal_acceptance_curve",
            lambda original: (
                lambda *rows: [Changed(cut, value=lambda _: Fraction(1, 2)) for cut in original(*rows)]
            ),
            ["α_K increases", "1 − α_K is halved"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "otm_uniform", called, lie, claims)

"""SpecTr-GBV as printed: efficiency and defect. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.spectr_gbv_defect import spectr_gbv_defect


def test_values() -> None:
    """theory.md §2: 31/120 and 3/40 at L = 1, K = 2; two drafts earn less than one at L = 2."""
    findings = spectr_gbv_defect(num_pairs=2)
    one, two = findings.table("spectr_gbv_counterexample").select()
    assert (one["first_token_is_A"], one["total_variation"]) == (Fraction(31, 120), Fraction(3, 40))
    assert two["accepted"] == Fraction(74693, 57120)
    assert two["accepted"] < two["accepted_from_one_draft"] == Fraction(4, 3)
    for row in findings.table("spectr_gbv_defect").select():
        assert (row["total_variation"] > 0) == (row["verifier"] == "spectr_gbv")


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("output_law", told(block_efficiency=lambda value: value + 1), ["E[τ] on the", "Theorem 5.3"]),
        ("output_law", told(total_variation=lambda value: value * 0), ["Theorem 4.2"]),
        ("output_law", told(total_variation=lambda value: value + 1), ["SpecTr and multi-round"]),
        ("optimum", told(value=lambda value: value / 9), ["these do not"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "spectr_gbv_defect", called, lie, claims)

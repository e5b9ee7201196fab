"""Whole texts of the bundled models and the printed ones.  Their data, and that the checks can fail."""

from __future__ import annotations

from typing import Any

import pytest

from paper_support import Changed, assert_seen, small
from spectheory.paper import Findings


@pytest.fixture(scope="module")
def findings() -> Findings:
    return small("whole_texts")


def test_rows(findings: Findings) -> None:
    """One path once, several paths for every K; tokens per call between 1 and L + 1, and as counted."""
    table = findings.table("whole_texts")
    assert [row[:2] for row in table.rows] == [
        ("token", 1), ("block", 1), ("greedy_block", 1), ("spectr", 2), ("greedy_multipath", 2),
    ]  # fmt: skip
    for row in table.select():
        assert 1 <= row["counted"] <= 3
        assert row["low"] <= row["block_efficiency"] <= row["high"]
        # Three texts of four tokens: the last call may earn tokens that are cut off.
        assert 12 <= row["counted"] * row["calls"] <= 12 + 3 * 2


def test_printed_calls(findings: Findings) -> None:
    """By hand: 44.482 ms times 3.294 tokens; K = 4 over K = 1 on GSM8K with the larger drafter."""
    rows = findings.table("whole_texts_printed").select(draft="OPT 350M", dataset="GSM8K")
    assert rows[0]["ms_per_call"] == pytest.approx(146.52, abs=0.01)
    assert [row["call_over_one_draft"] for row in rows] == pytest.approx([1, 1.034, 1.026, 1.285], abs=1e-3)


def test_measured_shares_are_of_the_whole(findings: Findings) -> None:
    for row in findings.table("whole_texts_seconds").select():
        shares = [row[part] for part in ("target", "draft", "rows", "verification", "loop")]
        assert sum(shares) == pytest.approx(1)
        assert min(shares) > 0


def lower(simulation: Any) -> Any:
    """Estimates of verifiers of several paths that nobody would want, and counts that do not fit them."""
    return Changed(
        simulation,
        estimates=lambda found: [
            Changed(one, interval=lambda _: (0.1, 0.2), counted_interval=lambda _: (0.3, 0.4))
            if one.verifier in ("spectr", "greedy_multipath")
            else one
            for one in found
        ],
    )


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("simulate", lambda original: lambda *given, **options: lower(original(*given, **options)),
         ["the two ways of counting", "several drafts are nowhere"]),
        ("printed_times",
         lambda original: lambda: [row._replace(ms_per_token=10.0 / row.num_drafts) for row in original()],
         ["as printed, three drafts", "as printed, a call"]),
    ],
)  # fmt: skip
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Any, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "whole_texts", called, lie, claims)

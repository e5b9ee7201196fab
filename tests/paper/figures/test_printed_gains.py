"""Gains over token verification, printed and estimated.  Their data, and that the checks can fail."""

from __future__ import annotations

from typing import Any

import pytest

from paper_support import assert_seen, small
from spectheory.paper import Findings
from spectheory.paper.figures import printed_gains as module


@pytest.fixture(scope="module")
def findings() -> Findings:
    return small("printed_gains")


def test_every_setting_has_its_mean_and_what_is_here(findings: Findings) -> None:
    """The gains and their means are the printed ones; estimates up to length 8."""
    table = findings.table("printed_gains")
    for name, printed in (("1", 8.30), ("6", 3.36), ("7", 6.10), ("8", 3.16), ("9", 5.07), ("10", 6.27)):
        (row,) = table.select(table=f"block2024 Table {name}")
        assert abs(row["printed_gain"] - printed) < 0.0101
        assert abs(row["recomputed_gain"] - printed) < 0.1
        assert row["printed_smallest"] <= row["printed_gain"] <= row["printed_largest"]
        assert row["recomputed_smallest"] <= row["recomputed_gain"] <= row["recomputed_largest"]
        assert row["datasets"] == 8
    (first,) = table.select(table="block2024 Table 1")
    assert (first["printed_smallest"], first["printed_largest"]) == (7.00, 10.06)  # the text says so
    for row in table.select():
        assert (row["gain_here"] is None) == (row["draft_length"] > 8)
        assert row["gain_here"] is None or row["gain_here_low"] <= row["gain_here"] <= row["gain_here_high"]
    for row in findings.table("printed_gains_measured").select():
        assert row["low"] <= row["block_efficiency"] <= row["high"]
        assert 1 <= row["block_efficiency"] <= row["draft_length"] + 1


def test_what_is_not_lossless_has_a_defect_at_its_temperatures(findings: Findings) -> None:
    rows = findings.table("printed_gains_defect").select()
    assert {(row["verifier"], row["temperature"]) for row in rows} == {
        (name, value) for name in ("greedy_block", "spectr_gbv") for value in (0.4, 1.0)
    }
    assert min(row["total_variation"] for row in rows) > 1e-6


@pytest.mark.parametrize(
    ("verifier", "factor", "claims"),
    [
        ("spectr", 0.5, ["the printed order"]),
        ("block", 0.9, ["the printed order", "block is above token"]),
    ],
)
def test_partner_checks_of_the_printed_can_fail(
    monkeypatch: pytest.MonkeyPatch, verifier: str, factor: float, claims: list[str]
) -> None:
    """A verifier whose printed numbers were lower."""

    def lie(original: Any) -> Any:
        rows = tuple(
            row._replace(block_efficiency=row.block_efficiency * (factor if row.verifier == verifier else 1))
            for row in original()
        )
        monkeypatch.setattr(module, "gains_over_token", lambda given=module.gains_over_token: given(rows))
        return lambda: rows

    monkeypatch.setattr(module, "_estimates", lambda shapes, *_: dict.fromkeys(shapes, (2.0, 1.0, 3.0)))
    assert_seen(monkeypatch, "printed_gains", "printed_rows", lie, claims)


def test_partner_other_checks_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block far below token here; gains that are the same at every length."""
    low, high = (1.0, 0.9, 1.1), (2.0, 1.9, 2.1)
    monkeypatch.setattr(
        module, "_estimates", lambda shapes, *_: {s: low if s[3] == "block" else high for s in shapes}
    )

    def lie(original: Any) -> Any:
        return lambda: [
            one._replace(percent=5.0, row=one.row._replace(printed_gain=None)) for one in original()
        ]

    assert_seen(monkeypatch, "printed_gains", "gains_over_token", lie, ["the mean printed gain", "here, too"])

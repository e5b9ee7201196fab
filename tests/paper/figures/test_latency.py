"""Latencies: the printed ones, the measured ones, and that the checks can fail."""

from __future__ import annotations

from typing import Any

import pytest

from paper_support import assert_seen, small
from spectheory.paper.figures.latency import BATCHES, measured, printed


def test_all_cells_are_there_and_relative_to_one() -> None:
    """Two models; the printed lengths and one more; the unit is the target's call at batch 1, length 4."""
    assert [row.relative for row in printed() if (row.batch, row.length) == (1, 4)] == [1.0, 0.18]
    assert {(row.model, row.batch, row.length) for row in measured()} == {
        (model, batch, length) for model in ("target", "draft") for batch in BATCHES for length in (4, 8, 16)
    }
    (unit,) = (row for row in measured() if (row.model, row.batch, row.length) == ("target", 1, 4))
    assert unit.relative == 1
    for row in measured():
        assert row.milliseconds == pytest.approx(row.relative * unit.milliseconds)
        assert row.deviation > 0


def test_the_findings_are_the_two_tables() -> None:
    findings = small("latency")
    assert findings.passed
    table = findings.table("latency")
    assert len(table.rows) == 16 + 24
    (row,) = table.select(where="spectr2023 Table 2", batch=8, length=8)
    assert (row["relative"], row["deviation"], row["milliseconds"]) == (1.42, 0.4, None)


@pytest.mark.parametrize(
    ("called", "model", "factor", "claims"),
    [
        ("printed", "target", 1.1, ["as printed, no call of the target"]),
        ("printed", "draft", 1.1, ["as printed, a call of the draft"]),
        ("measured", "draft", 4.0, ["here a call of the draft"]),
        ("measured", "target", 12.0, ["here a call of the target"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, model: str, factor: float, claims: list[str]
) -> None:
    """A model whose calls were longer."""

    def lie(original: Any) -> Any:
        return lambda: tuple(
            row._replace(relative=row.relative * (factor if row.model == model else 1)) for row in original()
        )

    assert_seen(monkeypatch, "latency", called, lie, claims)

"""The bundled models over the temperature. Its data, and that its checks can fail."""

from __future__ import annotations

import pytest

from paper_support import Changed, assert_seen, small
from spectheory.paper.figures.temperature import temperature


def test_gains_as_printed() -> None:
    """block2024 Table 2 at temperature 0.2: 3.72 percent; the rounded 2.85 / 2.75 give 3.64."""
    findings = temperature((0.2,), 2, 2, num_prompts=2, samples=2)
    row = findings.table("temperature_gain").select()[0]
    assert row["printed_gain_in_percent"] == 3.72
    assert abs(row["printed_gain_in_percent"] - 100 * (2.85 / 2.75 - 1)) < 0.4
    cold = findings.table("temperature_defect").select(verifier="spectr_gbv", num_drafts=3)
    assert [row["temperature"] for row in cold] == [0.2]
    assert 0 < cold[0]["total_variation"] < 0.02  # at temperature 1 it is above 0.05


def test_rows() -> None:
    """One row per temperature and verifier; two verifiers have a defect."""
    table = small("temperature").table("temperature")
    assert len(table.rows) == 2 * 7
    for row in table.select():
        assert row["low"] <= row["block_efficiency"] <= row["high"]
        assert row["lossless"] == (row["verifier"] not in {"greedy_block", "spectr_gbv"})


def test_partner_the_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates in which block surely earns nothing."""

    def nothing(estimates: list[Changed]) -> list[Changed]:
        return [
            Changed(found, interval=lambda _: (0.0, 0.0)) if found.verifier == "block" else found
            for found in estimates
        ]

    assert_seen(
        monkeypatch,
        "temperature",
        "simulate",
        lambda original: lambda *given, **options: Changed(original(*given, **options), estimates=nothing),
        ["block is nowhere seen"],
    )

"""The bundled models over K and L. Its data, and that its checks can fail."""

from __future__ import annotations

import pytest

from paper_support import Changed, Lie, assert_seen
from spectheory.paper.figures.full_vocabulary import full_vocabulary


def test_rows_and_printed_numbers() -> None:
    """One row per verifier and shape, none twice; the printed numbers stand at their K and L."""
    findings = full_vocabulary((1, 2, 8), (4, 8), num_prompts=2, samples=2)
    table = findings.tables[0]
    shapes = [(row["verifier"], row["num_drafts"], row["draft_length"]) for row in table.select()]
    assert len(set(shapes)) == len(shapes) == 5 * 3 * 2 + 3 * 2
    printed = {
        shape: row["printed"]
        for shape, row in zip(shapes, table.select(), strict=True)
        if row["printed"] is not None
    }
    assert printed["spectr", 8, 8] == 4.0
    assert printed["token", 1, 4] == 2.4
    assert printed["spectr", 8, 4] == 3.1
    for row in table.select():
        assert row["low"] <= row["block_efficiency"] <= row["high"]
        assert 1 <= row["block_efficiency"] <= row["draft_length"] + 1
        assert row["lossless"] == (row["verifier"] not in {"greedy_block", "spectr_gbv"})
    defects = {
        (row["verifier"], row["num_drafts"], row["draft_length"]): row["total_variation"]
        for row in findings.table("full_vocabulary_defect").select()
    }
    grows = [defects["greedy_block", 1, length] for length in (2, 3, 4)]
    assert grows == sorted(grows)
    assert grows == pytest.approx([0.022, 0.067, 0.106], abs=1e-3)
    assert defects["spectr_gbv", 2, 2] < defects["spectr_gbv", 3, 2]
    assert len(defects) == 3 * 3 + 5 * 3


def without(name: str) -> Lie:
    """Estimates in which one verifier on one draft earns nothing."""

    def lie(original: Lie) -> Lie:
        def simulate(*arguments: object, **options: object) -> Changed:
            return Changed(original(*arguments, **options), estimates=changed)

        def changed(estimates: list[Changed]) -> list[Changed]:
            return [
                Changed(found, block_efficiency=lambda _: 0.0) if found.verifier.startswith(name) else found
                for found in estimates
            ]

        return simulate

    return lie


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("simulate", without("spectr on 1 drafts"), ["with one draft"]),
        ("simulate", without("token on 1 drafts, 3"), ["on the same drafts a longer"]),
        (
            "defects_on_two_tokens",
            lambda original: lambda names, temperatures: [(1.0, name, 2, 2, 0.5) for name in names],
            ["a verifier has a defect"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "full_vocabulary", called, lie, claims)

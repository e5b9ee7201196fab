"""Gaps to the optimum on real conditionals: their data, and that the checks can fail."""

from __future__ import annotations

from typing import Any

import pytest

from paper_support import Lie, assert_seen, small, told, told_of
from spectheory.exact.certificate import certify
from spectheory.models import LanguageModelPair, bundled_prompts, restrict
from spectheory.paper import Findings
from spectheory.paper.figures.real_gaps import VERIFIERS


@pytest.fixture(scope="module")
def findings() -> Findings:
    return small("real_gaps")


def test_a_row_is_the_certificate_of_its_text(findings: Findings) -> None:
    """Restricted anew and certified with the optimum; every text is another one."""
    assert findings.passed
    table = findings.table("real_gaps")
    texts = {(row["prompt"], row["prompt_tokens"]) for row in table.select(verifier="token")}
    assert len(texts) == len(table.rows) / len(VERIFIERS) == 4
    row = table.select(verifier="spectr")[-1]
    models = LanguageModelPair.load("bundled", "bundled", device="cpu")
    text = models.encode(bundled_prompts()[row["prompt"]])[: row["prompt_tokens"]]
    assert row["setting"] == "2 tokens, draft length 3, 2 drafts"
    certificate = certify("spectr", restrict(models, text, 2, 3), 2)
    assert row["block_efficiency"] == pytest.approx(certificate.block_efficiency_float, abs=1e-9)
    assert row["optimum_upper"] == pytest.approx(float(certificate.optimum), abs=1e-6)
    assert row["gap"] == pytest.approx(1 - row["block_efficiency"] / row["optimum_upper"])


def test_the_summary_is_of_the_rows(findings: Findings) -> None:
    rows = findings.table("real_gaps")
    for line in findings.table("real_gaps_summary").select():
        gaps = [row["gap"] for row in rows.select(setting=line["setting"], verifier=line["verifier"])]
        assert line["largest"] == max(gaps)
        assert line["mean"] == pytest.approx(sum(gaps) / len(gaps))
        assert line["share_optimal"] == sum(gap < 1e-6 for gap in gaps) / len(gaps)
        assert min(gaps) <= line["median"] <= line["ninth_decile"] <= max(gaps)


def of(wanted: str, **changes: Any) -> Lie:
    """Another certificate for one verifier."""
    return told_of(lambda verifier, *_, **__: verifier == wanted, **changes)


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("certify", of("spectr", block_efficiency=lambda value: value + 9), ["no verifier exceeds"]),
        ("certify", of("spectr", is_valid=lambda _: False), ["every verifier is lossless"]),
        ("certify", of("block", block_efficiency=lambda _: 1.0), ["block earns at least"]),
        ("optimum", told(lower=lambda value: value - 0.1), ["the optimum is known"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "real_gaps", called, lie, claims)

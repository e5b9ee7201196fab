"""The reproduction: numbers against independent values, identical bytes, and checks that can fail."""

from __future__ import annotations

import csv
from collections.abc import Callable
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.outcome import Outcome
from spectheory.paper import (
    EXHIBITS,
    Findings,
    Setting,
    acceptance_length,
    full_vocabulary,
    otm_bernoulli,
    read_exhibit,
    real_pair,
    two_token_table,
    write_exhibit,
    write_report,
)
from spectheory.resolve import find_verifier


def small_real_pair(**changes: Any) -> Findings:
    settings: dict[str, Any] = {"prompts": (0,), "settings": (Setting(2, 2, 2),), "samples": 400}
    return real_pair(**(settings | changes))


SMALL: dict[str, Callable[[], Findings]] = {
    "two_token_table": lambda: two_token_table((1, 2)),
    "acceptance_length": lambda: acceptance_length(draft_length=3, samples=400),
    "otm_bernoulli": lambda: otm_bernoulli(max_drafts=3),
    "real_pair": small_real_pair,
    "full_vocabulary": lambda: full_vocabulary((1, 2), draft_length=3, num_prompts=4, samples=3),
}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", SMALL)
def test_rerun_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    assert SMALL.keys() == EXHIBITS.keys()
    for folder in ("first", "second"):
        findings = SMALL[name]()
        assert findings.failures == []
        assert findings.checks
        written = write_exhibit(EXHIBITS[name], findings, tmp_path / folder, ("pdf", "png", "svg"))
        write_report([written], tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == sorted([*written.to_document()["files"], "report.md"])
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes(), file


@pytest.mark.parametrize("name", SMALL)
def test_csv_json_and_report_hold_the_same_numbers(name: str, tmp_path: Path) -> None:
    findings = SMALL[name]()
    written = write_exhibit(EXHIBITS[name], findings, tmp_path)
    write_report([written], tmp_path)
    read = read_exhibit(name, tmp_path)
    assert read is not None
    assert read.findings.to_document() == findings.to_document()
    for table in read.findings.tables:
        from_csv = read_csv(tmp_path / f"{table.name}.csv")
        assert len(from_csv) == len(findings.table(table.name).rows) > 0
        for left, right in zip(from_csv, table.select(), strict=True):
            assert left == {key: str(value) for key, value in right.items()}
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert all(file in report for file in written.to_document()["files"])


def test_figures_embed_their_fonts(tmp_path: Path) -> None:
    write_exhibit(otm_bernoulli, SMALL["otm_bernoulli"](), tmp_path)
    content = (tmp_path / "otm_bernoulli.pdf").read_bytes()
    assert b"/FontFile2" in content  # TrueType, embedded
    assert b"/Type3" not in content
    assert b"CreationDate" not in content


def test_two_token_table_values() -> None:
    """E[tau] of the two-token pair (theory.md §4); token is sum_{i=1..L} (2/3)^i."""
    table = two_token_table((1, 2, 3, 4)).tables[0]
    expected_block = [Fraction(2, 3), Fraction(11, 9), Fraction(5, 3), Fraction(166, 81)]
    assert table.column("block_accepted") == expected_block
    assert table.column("token_accepted") == [
        sum(Fraction(2, 3) ** i for i in range(1, length + 1)) for length in (1, 2, 3, 4)
    ]
    assert table.column("optimum") == [value + 1 for value in expected_block]


def test_acceptance_length_values() -> None:
    """Token: P(tau >= l) = (2/3)^l.  Block: E[w_l], w_l = min(1, w_{l-1} p/q), by its own recursion.

    w is 2^-j with j up by one on A (drafted with 2/3) and down by one, not below 0, on B.
    """
    table = acceptance_length(draft_length=10, samples=400).tables[0]
    levels = {0: Fraction(1)}
    for length in range(1, 11):
        grown: dict[int, Fraction] = {}
        for level, mass in levels.items():
            for step, probability in ((1, Fraction(2, 3)), (-1, Fraction(1, 3))):
                to = max(level + step, 0)
                grown[to] = grown.get(to, Fraction(0)) + mass * probability
        levels = grown
        token, block = (table.select(verifier=name, length=length)[0] for name in ("token", "block"))
        assert token["exact"] == Fraction(2, 3) ** length
        assert block["exact"] == sum(mass / 2**level for level, mass in levels.items())


def test_otm_bernoulli_values() -> None:
    """OTM by summing over the number of heads: only all-tails and all-heads drafts can fail."""
    table = otm_bernoulli(max_drafts=6).tables[0]
    for row in (dict(zip(table.columns, entry, strict=True)) for entry in table.rows):
        b, c, k = Fraction(1, 4), row["target_head"], row["num_drafts"]
        law = [comb(k, heads) * b**heads * (1 - b) ** (k - heads) for heads in range(k + 1)]
        # Both tokens drafted: anything is accepted.  Otherwise at most the mass of that token.
        assert row["otm"] == min(1, sum(law[1:-1]) + min(law[-1], c) + min(law[0], 1 - c))
        assert row["multi_round"] <= row["otm"]
        if row["target_head"] == 1:
            assert row["kseq"] == pytest.approx(float(row["otm"]), abs=1e-12)


class DriftedCopy:
    """A second implementation that drifted: one algorithm on numpy, another one on torch."""

    name = "drifted_copy"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        name = "token" if isinstance(paths, np.ndarray) else "greedy_multipath"
        return find_verifier(name).outcome(paths, target_rows, draft_rows)


class TargetAfterRejection:
    """Draws from the target and not from the residual after a rejection: not lossless."""

    name = "target_after_rejection"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        from spectheory.arrays import take_path, take_row

        outcome = find_verifier("token").outcome(paths, target_rows, draft_rows)
        rows = lambda path, length: take_row(take_path(target_rows, path), length)  # noqa: E731
        return Outcome(outcome.stop_probs, rows)


def test_cross_check_fails_when_the_routes_differ() -> None:
    """Partner of the cross-check: one verifier that is two, so that the two routes disagree."""
    assert small_real_pair(verifiers=("token", "greedy_multipath")).passed
    findings = small_real_pair(verifiers=(DriftedCopy(),))
    assert not findings.passed
    assert "drifted_copy" in findings.failures[0]


def test_cross_check_fails_for_a_verifier_that_is_not_lossless() -> None:
    findings = small_real_pair(verifiers=("token", TargetAfterRejection()))
    assert [row["agree"] for row in findings.tables[0].select(verifier="token")] == [True]
    assert len(findings.failures) == 1
    assert "target_after_rejection" in findings.failures[0]

"""The figures on the bundled language models and on printed times."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from figure_support import figure, small
from figures.results import Findings
from spectheory.simulation import simulate
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier

LOSSY = {"greedy_block", "spectr_gbv"}
MODIFIED = LOSSY
"""Those two are printed with a modification of the target in the next calls."""


@cache
def once(name: str) -> Findings:
    return small(name)


@pytest.mark.deep
def test_a_modified_verifier_is_not_set_beside_an_unmodified_one() -> None:
    """Printed with a modification of the next calls; estimates are of single calls.  Others stand there."""
    findings = once("printed_gains")
    table, estimated, _ = findings.tables
    printed, here = ({*found.column("verifier")} for found in (table, estimated))
    assert printed >= MODIFIED
    assert here == printed - MODIFIED | {"token"}
    drawn = figure("printed_gains").picture(findings)
    assert drawn is not None
    panels = drawn.axes
    lines = [text.get_text() for axes in panels for text in axes.get_yticklabels()]
    assert "greedy block, modified (lossless), K = 1, L = 8" in lines


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
        from spectheory.foundation.arrays import take_path, take_row

        outcome = find_verifier("token").outcome(paths, target_rows, draft_rows)
        rows = lambda path, length: take_row(take_path(target_rows, path), length)  # noqa: E731
        return Outcome(outcome.stop_probs, rows)


@first_is_quick("wrong", [DriftedCopy(), TargetAfterRejection()], ids=lambda wrong: wrong.name)
def test_partner_two_routes_that_differ_and_a_defect_are_seen(wrong: Any) -> None:
    """Of the cross-check in ``real_pair``: a verifier that is two, and one that is not lossless."""
    findings = small("real_pair", verifiers=("token", wrong))
    assert [row["agree"] for row in findings.tables[0].select(verifier="token")] == [True]
    assert len(findings.failures) == 1
    assert wrong.name in findings.failures[0]


@first_is_quick(
    ("name", "caller"),
    [
        ("full_vocabulary", "common.bundled"),
        *((name, name) for name in ("real_pair", "temperature_gains", "whole_texts")),
    ],
)
def test_an_interrupted_simulation_is_no_figure(
    name: str, caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """simulate returns what is finished at Ctrl-C; a table of part of the prompts must not be written."""
    monkeypatch.setattr(
        f"figures.{caller}.simulate",
        lambda *arguments, **settings: replace(simulate(*arguments, **settings), interrupted=True),
    )
    with pytest.raises(KeyboardInterrupt):
        small(name)

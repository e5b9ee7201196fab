"""The bundled pair: enumerated law and sampled decoding agree, and the check can fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paper_support import SMALL, small_real_pair
from spectheory.simulation import simulate
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier


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


def test_cross_check_fails_when_the_routes_differ() -> None:
    """Partner of the cross-check, which ``test_exhibit.py`` sees pass: one verifier that is two, so that the
    two routes disagree."""
    findings = small_real_pair(verifiers=(DriftedCopy(),))
    assert not findings.passed
    assert "drifted_copy" in findings.failures[0]


def test_cross_check_fails_for_a_verifier_that_is_not_lossless() -> None:
    findings = small_real_pair(verifiers=("token", TargetAfterRejection()))
    assert [row["agree"] for row in findings.tables[0].select(verifier="token")] == [True]
    assert len(findings.failures) == 1
    assert "target_after_rejection" in findings.failures[0]


@pytest.mark.parametrize("exhibit", ["real_pair", "full_vocabulary", "temperature"])
def test_an_interrupted_simulation_is_no_exhibit(exhibit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """simulate returns what is finished at Ctrl-C; a table of part of the prompts must not be written."""
    whole = simulate
    monkeypatch.setattr(
        f"spectheory.paper.figures.{exhibit}.simulate",
        lambda *arguments, **settings: replace(whole(*arguments, **settings), interrupted=True),
    )
    with pytest.raises(KeyboardInterrupt):
        SMALL[exhibit]()

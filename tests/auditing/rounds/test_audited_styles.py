"""One known-wrong verifier as a sampler of every style, and its right partner."""

import shutil
from pathlib import Path

import pytest

from scripts import load
from spectheory import audit, defects, instances, verifiers
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS

styles = load("benchmarks", "audited_styles")
PAIR = instances.two_token(1)
needs_a_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.mark.parametrize(
    "style", ["torch", "numpy", "loop", "flattened", pytest.param("C", marks=needs_a_compiler)]
)
def test_a_known_wrong_verifier_is_found_in_every_style(style: str, tmp_path: Path) -> None:
    for verifier, verdict in ((defects["draft_bonus"], NOT_LOSSLESS), (verifiers["token"], LOSSLESS)):
        folder = tmp_path / verifier.name
        folder.mkdir()
        subject, options = styles.subjects_of(verifier, PAIR, 1, folder)[style]
        if style == "flattened" and verdict == LOSSLESS:
            continue  # all batches of a right sampler take half a minute
        found = audit(
            subject, {"thirds": PAIR}, within=styles.WITHIN, stop_at_first=True, quick=True, **options
        )
        assert found.verdict == verdict

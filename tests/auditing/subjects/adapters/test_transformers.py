"""transformers as it is installed: which function is loaded, and how its ensemble is called."""

from __future__ import annotations

from fractions import Fraction

from transformers.generation import utils as transformers_utils

from spectheory.auditing.subjects.adapters import transformers


def test_the_shipped_function_itself_is_called() -> None:
    """With the weight that the relaxation states."""
    assert transformers.assisted("a").sampler is transformers_utils._speculative_sampling
    ensemble = transformers.ensemble("b")
    assert ensemble.sampler.func is transformers_utils._speculative_sampling  # type: ignore[attr-defined]
    assert ensemble.sampler.keywords == {"assistant_ensemble_weight": 0.5}  # type: ignore[attr-defined]
    assert ensemble.relaxation is not None
    assert ensemble.relaxation.weight == Fraction(1, 2) == transformers.ENSEMBLE_WEIGHT


def test_drafts_of_the_candidate_generator() -> None:
    """The provenance names both files."""
    sampler = transformers.gemma4("c")
    assert sampler.provenance.file == "transformers/generation/utils.py"
    assert "drafted by transformers/generation/candidate_generator.py, sha256 " in sampler.note

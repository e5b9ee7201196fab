"""transformers' own generation as a round: whole texts, with the library's caches inside."""

from pathlib import Path

import pytest
from transformers import DynamicCache

from spectheory import certify
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.libraries import load_subject
from spectheory.foundation.errors import InvalidInputError


@pytest.mark.deep
@pytest.mark.parametrize("keeps_rejected", [False, True])
def test_texts_of_assisted_generation(keeps_rejected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the law of the target; not where rejected tokens stay in the caches."""
    if keeps_rejected:
        monkeypatch.setattr(DynamicCache, "crop", lambda *_: None)
    sampler = load_subject("transformers-round")
    asked, pair = sampler.prepared(random_dyadic(1, 2, 2))
    found = certify(asked, pair, with_optimum=False)
    assert (found.total_variation < 1e-6) is not keeps_rejected
    contract = "drafts do not have the law of the rows that are reported for them"
    assert (("contract", contract) in sampler.journal.findings) is keeps_rejected


def test_only_the_installed_release_generates(tmp_path: Path) -> None:
    file = tmp_path / "transformers" / "generation" / "utils.py"
    file.parent.mkdir(parents=True)
    parameters = "candidate_input_ids, candidate_logits, candidate_length, new_logits, is_done_candidate"
    file.write_text(f"def _speculative_sampling({parameters}):\n    return None\n")
    with pytest.raises(InvalidInputError, match="is not that of the installed release"):
        load_subject("transformers-round", checkout=tmp_path)

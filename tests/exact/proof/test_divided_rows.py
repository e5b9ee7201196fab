"""A row divided by its sum W: the mass s w/W is a polynomial only where s/W has no pole at W = 0."""

import gzip
import json
from pathlib import Path

import pytest

from proof_traps import WRONG_SOMEWHERE
from spectheory import prove
from spectheory.exact.proof import search
from spectheory.exact.proof.check import check_document
from spectheory.exact.proof.check_numbers import Answers, RejectedProofError
from spectheory.exact.proof.regions import RegionRun
from spectheory.verification.resolve import find_verifier


def test_a_rule_that_forgets_the_pole_proves_a_wrong_verifier(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The walk alone finds the pole, without the pairs that are tried before it and at its regions.

    A search that forgets it proves the verifier.  The checker rejects this proof, unless it forgets the pole
    too: no other condition rejects it.
    """
    wrong, draft_length = WRONG_SOMEWHERE["undefined where weights vanish"]
    monkeypatch.setattr(search, "SIMPLE_PAIRS_OF_USERS", 0)
    monkeypatch.setattr(search, "replay", lambda *_: None)
    assert prove(wrong, 2, draft_length).wrong == "a correction row does not sum to 1"

    monkeypatch.setattr(RegionRun, "is_never_zero", lambda *_: True)
    found = prove(wrong, 2, draft_length)
    assert found.verdict == "proved"
    found.save(tmp_path / "file.proof")
    document = json.loads(gzip.decompress((tmp_path / "file.proof").read_bytes()))
    with pytest.raises(RejectedProofError, match="not decided at a leaf"):
        check_document(document, find_verifier(wrong))

    monkeypatch.setattr(Answers, "is_never_zero", lambda *_: True)
    assert check_document(document, find_verifier(wrong)) == found.num_regions

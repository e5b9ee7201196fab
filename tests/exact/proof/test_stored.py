"""What the suite quotes of the stored proofs: those of this code, and no others."""

from pathlib import Path

import pytest

from spectheory import certify, instances, prove, verifiers
from spectheory.exact.proof import stored
from spectheory.exact.proof.stored import proved_shapes, shapes_text
from spectheory.exact.suite import SuiteCase, certify_suite
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms.one_path.token import Token


class Careless(Token):
    """Another verifier with the name of one that is proved."""

    def stops(self, accept):  # type: ignore[no-untyped-def]
        return super().stops(accept) * 1


CASES = [SuiteCase("two tokens", instances.two_token(1), Iid(1))]


def test_the_suite_quotes_the_shapes_that_are_proved() -> None:
    found = certify_suite("token", CASES)
    assert found.proved
    assert found.shown()["proved_shapes"] == shapes_text(found.proved)
    assert {
        "vocab_size": 3,
        "draft_length": 1,
        "drafts": found.proved[0]["drafts"],
        "domain": "all rows",
    } in (found.to_document()["proved"])


def test_partner_other_code_of_the_same_name_is_not_proved() -> None:
    assert certify("token", instances.two_token(1), with_optimum=False).is_valid
    assert proved_shapes(Careless()) == ()
    found = certify_suite(Careless(), CASES)
    assert found.is_lossless
    assert found.shown()["proved_shapes"] is None


def test_only_proofs_of_losslessness_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stored").mkdir()
    prove("token", 2, 1).save(tmp_path / "stored" / "token_V2_L1_K1_all.proof")
    monkeypatch.setattr(stored, "files", lambda _: tmp_path)
    assert shapes_text(proved_shapes(verifiers["token"])) == "(2, 1, 1)"
    headers = stored._headers
    monkeypatch.setattr(
        stored, "_headers", lambda name: (one | {"statement": "optimal"} for one in headers(name))
    )
    assert proved_shapes(verifiers["token"]) == ()

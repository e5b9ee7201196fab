"""A walk that processes share ends with the verdict of one process, and with a proof that holds."""

import pytest

from spectheory import defects, prove
from spectheory.exact.proof.check import check_document
from spectheory.exact.proof.search import _Search
from spectheory.exact.proof.statements import Statement
from spectheory.exact.proof.verdict import Proof
from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.resolve import find_verifier


@pytest.mark.usefixtures("one_process")
def test_parts_that_come_back_open_are_shared_anew() -> None:
    found = prove("greedy_multipath", 2, 1, 2, jobs=2)
    assert _regions_checked(found) == found.num_regions


@pytest.mark.usefixtures("one_process")
def test_partner_a_wrong_verifier_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Search, "try_simple_pairs", lambda self: None)
    for name in list(defects)[:2]:
        found = prove(defects[name], 2, 1, jobs=2)
        assert found.verdict == "refuted"
        assert found.pair is not None
        assert found.statement.wrong_at(found.pair)


@pytest.mark.deep
def test_two_processes() -> None:
    found = prove("greedy_multipath", 2, 1, 2, jobs=2)
    assert _regions_checked(found) == found.num_regions


def test_a_verifier_that_cannot_be_sent_is_refused() -> None:
    class Mine(Token):
        pass

    with pytest.raises(InvalidInputError, match="cannot be sent to another process"):
        prove(Mine(), 2, 1, jobs=2)
    with pytest.raises(InvalidInputError, match="leave out show, resume or jobs"):
        prove("token", 2, 1, jobs=2, show=True)


def _regions_checked(found: Proof) -> int:
    statement = Statement.of("lossless", find_verifier(found.verifier), found.process, 1)
    search = _Search(statement, found.shape, 0, float("inf"), None)
    assert found.tree is not None
    return check_document({**search.scope(), **found.tree}, search.verifier)

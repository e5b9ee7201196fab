"""The checker of proofs that postpone decisions: what it accepts, and everything that it must reject."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from deep import first_is_quick
from spectheory import defects, prove, verifiers
from spectheory.exact.proof.check import check_document, read
from spectheory.exact.proof.check_numbers import RejectedProofError
from spectheory.exact.proof.check_postponed import Postponing

Document = dict[str, Any]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Document:
    path = tmp_path_factory.mktemp("proofs") / "token.proof"
    prove("token", 2, 2).save(path)
    return read(path)


@pytest.fixture
def document(stored: Document) -> Document:
    return deepcopy(stored)


def test_a_proof_that_was_found_is_accepted(document: Document) -> None:
    assert check_document(document, verifiers["token"]) == document["regions"]


def _prefix(document: Document) -> None:
    """Without the sum that says that the law is right at the last prefix."""
    document["sums"].pop()


def _atom(document: Document) -> None:
    """An atom is the maximum of another function and 0."""
    [definition] = [one for one in document["atoms"] if len(one) == 1][:1]
    definition[0][0].append(["1"])


def _otherwise(document: Document) -> None:
    """A quotient has another value where it divides by 0."""
    definition = next(one for one in document["atoms"] if len(one) == 3)
    definition[2] = [[["1"]], [["1"]]]


def _later(document: Document) -> None:
    """An atom is defined by itself."""
    number = next(n for n, one in enumerate(document["atoms"]) if len(one) == 1)
    document["atoms"][number][0] = [[["1", len(document["variables"]) + number, 1]], [["1"]]]


def _case(document: Document) -> None:
    """At the leaves of a fact an atom is resolved by a case that does not hold."""
    for node in document["nodes"]:
        node[1::2] = [4 if mask == 1 else mask for mask in node[1::2]]


def _leaf(document: Document) -> None:
    """Nothing is decided before a fact."""
    fact = next(fact for fact in document["facts"] if fact[5] >= 0)
    fact[5] = -1


def _part(document: Document) -> None:
    del document["nodes"][document["facts"][0][5]][1:3]


def _cycle(document: Document) -> None:
    """A fact uses itself."""
    for number, fact in enumerate(document["facts"]):
        fact[4] = [number]


def _function(document: Document) -> None:
    fact = next(fact for fact in document["facts"] if fact[1] == 2)
    fact[0][0].append(["1"])


def _mask(document: Document) -> None:
    """A fact that a function is at least 0 says that it is 0."""
    fact = next(fact for fact in document["facts"] if fact[1] == 6)
    fact[1] = 2


def _given(document: Document) -> None:
    """Facts are said of all pairs that were of those on which some drafts can be drawn."""
    for fact in document["facts"]:
        fact[2] = []


def _term(document: Document) -> None:
    """A sum leaves out a fact."""
    max(document["sums"], key=lambda one: len(one[1]))[1].pop()


def _factor(document: Document) -> None:
    """Facts have other factors; a sum that another way replaces would not be missed."""
    for _, terms in document["sums"]:
        for factor, _ in terms:
            factor[0].append(["1"])


def _value(document: Document) -> None:
    document["sums"][-1][0] = [[["1"]], [["1"]]]


def _variable(document: Document) -> None:
    """A variable of the rows is taken for an open atom."""
    document["facts"][0][3] = [0]


CHANGES = [_prefix, _atom, _otherwise, _later, _case, _leaf, _part, _cycle, _function, _mask, _given, _term]
CHANGES += [_factor, _value, _variable]


@first_is_quick("change", CHANGES, ids=lambda change: change.__name__[1:], quick=3)
def test_a_changed_proof_is_rejected(document: Document, change: Callable[[Document], None]) -> None:
    before = deepcopy(document)
    change(document)
    assert document != before
    with pytest.raises(RejectedProofError):
        check_document(document, verifiers["token"])


@pytest.mark.parametrize("name", ["block_weight_as_acceptance", "stale_correction_row"])
def test_the_facts_of_a_right_verifier_do_not_prove_a_wrong_one(document: Document, name: str) -> None:
    with pytest.raises(RejectedProofError):
        check_document(document, defects[name])


def test_partner_without_conditions_a_wrong_verifier_passes(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What rejects a proof without the last prefix is that its condition is asked for."""
    _prefix(document)
    monkeypatch.setattr(Postponing, "must", lambda *_: None)
    assert check_document(document, verifiers["token"])

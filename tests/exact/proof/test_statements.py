"""Statements beside losslessness: proved, refuted by a pair, and rejected where a proof is of another one."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from spectheory import certify, defects, optimum, output_law, prove, verifiers
from spectheory.exact.iteration import completed_law
from spectheory.exact.proof import check
from spectheory.exact.proof.check import check_document, check_proof, read
from spectheory.exact.proof.check_numbers import RejectedProofError
from spectheory.exact.proof.search import SIMPLE_PAIRS_OF_USERS
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.formal_number import FormalNumber
from spectheory.pairs.drafts import PrefixTree
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock

STORED = Path(check.__file__).parent / "stored"

PROVED: list[tuple[str, str, int, int, Any]] = [
    ("optimal", "block", 3, 1, 1),
    ("optimal", "mixed_multipath", 2, 1, 2),
    ("at_least:token", "greedy_block", 2, 1, 1),
    ("at_least:multi_round@1", "multi_round", 2, 1, 2),
    ("at_least:multi_round", "traversal", 2, 1, 2),
    ("prefix_matching", "multi_round", 2, 1, 2),
    ("exchangeable", "greedy_multipath", 2, 1, 2),
    ("single_path", "token", 2, 1, 2),
    ("single_path", "block", 2, 1, PrefixTree((2,))),
    ("completed", "greedy_block", 2, 1, 1),
]
LARGER: list[tuple[str, str, int, int, Any]] = [
    ("optimal", "block", 2, 2, 1),
    ("at_least:token", "block", 2, 2, 1),
    ("at_least:block", "greedy_block", 2, 2, 1),
]


@first_is_quick(("statement", "name", "vocab_size", "draft_length", "drafts"), PROVED, quick=2)
def test_statements_are_proved_and_checked(
    statement: str, name: str, vocab_size: int, draft_length: int, drafts: Any, tmp_path: Path
) -> None:
    found = prove(name, vocab_size, draft_length, drafts, statement=statement)
    assert (found.verdict, found.num_open, found.num_trusted) == ("proved", 0, 0)
    found.save(tmp_path / "proof")
    checked = check_proof(tmp_path / "proof")
    assert (checked["statement"], checked["regions"]) == (statement, found.num_regions)


@pytest.mark.deep
@pytest.mark.parametrize(("statement", "name", "vocab_size", "draft_length", "drafts"), LARGER)
def test_statements_of_two_tokens_are_proved(
    statement: str, name: str, vocab_size: int, draft_length: int, drafts: Any, tmp_path: Path
) -> None:
    test_statements_are_proved_and_checked(statement, name, vocab_size, draft_length, drafts, tmp_path)


def test_partner_verifiers_below_the_optimum_are_refuted() -> None:
    """By pairs on which the program has a larger value: of one path, and of one position."""
    for name, draft_length, drafts in (("token", 2, 1), ("multi_round", 1, 2), ("greedy_multipath", 1, 2)):
        found = prove(name, 2, draft_length, drafts, statement="optimal")
        assert found.pair is not None
        certificate = certify(name, found.pair, drafts, with_optimum=False)
        assert certificate.is_valid
        assert certificate.block_efficiency < optimum(found.pair, drafts).value
    assert prove(_WRONG, 2, 1, statement="optimal").wrong == "the output law is not the target's"


_WRONG = defects["target_correction"]


def test_partner_orders_that_are_false_are_refuted() -> None:
    """``token`` and ``block`` the wrong way round, and ``greedy_multipath``, which a draft can make worse."""
    for name, draft_length, drafts, other, others in (
        ("token", 2, 1, "block", 1),
        ("greedy_multipath", 1, 2, "greedy_multipath", 1),
    ):
        found = prove(name, 2, draft_length, drafts, statement=f"at_least:{other}@{others}")
        assert found.verdict == "refuted"
        assert found.pair is not None
        mine, better = output_law(name, found.pair, drafts), output_law(other, found.pair, others)
        assert mine.block_efficiency < better.block_efficiency


def test_partner_a_law_that_passes_an_antichain_too_often_is_refuted() -> None:
    found = prove(_WRONG, 2, 1, statement="prefix_matching")
    assert found.verdict == "refuted"
    assert found.pair is not None
    assert not certify(_WRONG, found.pair, with_optimum=False).prefix_matching


@pytest.mark.parametrize("statement", ["exchangeable", "single_path"])
def test_partner_drafts_tried_in_turn_are_neither(statement: str) -> None:
    found = prove("multi_round", 2, 1, 2, statement=statement)
    assert (found.verdict, found.wrong != "") == ("refuted", True)


@pytest.mark.parametrize("name", ["block", "greedy_multipath"])
def test_what_verifiers_declare_holds(name: str) -> None:
    """``exchangeable`` and ``single_path`` of a verifier are proved, not declared."""
    verifier = verifiers[name]
    for flag in ("exchangeable", "single_path"):
        verdict = prove(verifier, 2, 1, 2, statement=flag).verdict
        assert verdict == ("proved" if getattr(verifier, flag) else "refuted")


class _Unmodified(GreedyBlock):
    """Behind an output the target stays as it is."""

    def modified_target_rows(self, target_rows: Any, *others: Any) -> Any:
        return target_rows


class _WrongBeyond(GreedyBlock):
    """The modified rows are those of the draft at contexts that the draft never reaches."""

    def modified_target_rows(
        self, target_rows: Any, draft_rows: Any, target_probs: Any, draft_probs: Any, num_drafts: int
    ) -> Any:
        rows = super().modified_target_rows(target_rows, draft_rows, target_probs, draft_probs, num_drafts)
        return np.where((draft_probs == 0)[:, None], draft_rows, rows)


class _WrongLater(GreedyBlock):
    """Another modification on rationals, after the pairs that are tried before the walk."""

    calls = 0

    def modified_target_rows(self, target_rows: Any, *others: Any) -> Any:
        is_formal = FormalNumber in type(target_rows.flat[0]).__mro__
        _WrongLater.calls += not is_formal
        is_right = is_formal or _WrongLater.calls <= SIMPLE_PAIRS_OF_USERS
        return super().modified_target_rows(target_rows, *others) if is_right else target_rows


@pytest.mark.parametrize(
    "verifier", [_Unmodified(), pytest.param(_WrongBeyond(), marks=pytest.mark.deep), verifiers["spectr_gbv"]]
)
def test_partner_wrong_modifications_are_refuted(verifier: Any) -> None:
    drafts = 2 if verifier.name == "spectr_gbv" else 1
    found = prove(verifier, 2, 2, drafts, statement="completed")
    assert (found.verdict, found.pair is not None) == ("refuted", True)
    law = completed_law(verifier, found.pair, drafts)
    assert (law != found.pair.target_path_probs(3)).any()


def test_partner_a_modification_is_replayed_on_rationals() -> None:
    with pytest.raises(InvalidOutcomeError, match="are other ones on rationals"):
        prove(_WrongLater(), 2, 2, statement="completed", positive=True)


def test_a_proof_is_not_one_of_a_wrong_modification() -> None:
    document = read(STORED / "greedy_block_completed_V2_L2_K1_all.proof")
    check_document(document, verifiers["greedy_block"])
    for wrong in (_Unmodified(), _WrongBeyond()):
        with pytest.raises(RejectedProofError, match="condition"):
            check_document(document, wrong)


@pytest.fixture(scope="module")
def lossless(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("proofs") / "proof"
    prove("multi_round", 2, 1, 2).save(path)
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize(
    "statement",
    ["optimal", "exchangeable", "single_path", "at_least:mixed_multipath", "at_least:token@x", "fastest"],
)
def test_a_proof_of_one_statement_is_not_one_of_another(lossless: dict[str, Any], statement: str) -> None:
    """The tree of a proof that ``multi_round`` is lossless proves nothing that is false of it."""
    document = lossless | {"statement": statement}
    with pytest.raises(RejectedProofError):
        check_document(document, verifiers["multi_round"])


WRONG = {
    "optimal": "target_correction",
    "at_least:token": "truncated_target",
    "prefix_matching": "target_correction",
}


@pytest.mark.parametrize("statement", WRONG)
def test_a_proof_of_a_right_verifier_is_not_one_of_a_wrong_one(statement: str, tmp_path: Path) -> None:
    prove("block", 2, 1, statement=statement).save(tmp_path / "proof")
    document = json.loads(gzip.decompress((tmp_path / "proof").read_bytes()))
    wrong = defects[WRONG[statement]]
    with pytest.raises(RejectedProofError):
        check_document(document, wrong)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("fastest", "no statement is called 'fastest'"),
        ("at_least", "at_least is followed by :VERIFIER"),
        ("at_least:token@two", "needs a whole number K"),
        ("at_least:kseq", "computes in float64"),
        ("optimal", "closed form for one draft"),
        ("completed", "no modified_target_rows"),
    ],
)
def test_statements_that_are_not_there_are_refused(statement: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        prove("multi_round", 2, 2, 2, statement=statement)

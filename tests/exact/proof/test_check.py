"""The checker of stored proofs: what it accepts, and everything that it must reject."""

import json
import lzma
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from deep import first_is_quick
from spectheory import defects, verifiers
from spectheory.exact.proof.check import STATED, check_document, check_proof
from spectheory.exact.proof.proof_file import RejectedProofError, write
from spectheory.exact.proof.search import prove
from spectheory.foundation.arrays import normalise, zeros_like
from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier

Document = dict[str, Any]
OF = {"multi_round": (3, 1, 2), "block": (2, 2, 1)}


@pytest.fixture(scope="module")
def proofs() -> dict[str, Document]:
    return {name: json.loads(json.dumps(prove(name, *shape).document())) for name, shape in OF.items()}


@pytest.fixture
def document(proofs: dict[str, Document]) -> Document:
    return deepcopy(proofs["multi_round"])


def test_a_proof_that_was_found_is_accepted(tmp_path: Path) -> None:
    """The file is the same every time; a check repeats checked fields only."""
    found = prove("multi_round", 2, 1, 2)
    size = found.save(tmp_path / "one")
    assert (size, found.document()["lemmas"] != []) == (len((tmp_path / "one").read_bytes()), True)
    prove("multi_round", 2, 1, 2).save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    stated = check_proof(tmp_path / "one")
    assert stated.keys() == {*STATED, "regions"}
    assert (stated["verifier"], stated["regions"]) == ("multi_round", found.num_regions)


def _coefficient(document: Document, random: Random) -> None:
    random.choice(random.choice(document["lemmas"])[1])[0] += 1


def _negative(document: Document, random: Random) -> None:
    for term in random.choice(document["lemmas"])[1]:
        term[0] = -term[0]


def _nothing(document: Document, random: Random) -> None:
    """A lemma without terms."""
    random.choice(document["lemmas"])[1] = []


def _condition(document: Document, random: Random) -> None:
    """A condition of any sign."""
    random.choice(random.choice(document["lemmas"])[0])[1] = 7


def _term(document: Document, random: Random) -> None:
    random.choice(document["polynomials"])[0][0] += 1


def _shape(document: Document, random: Random) -> None:
    document["vocab_size"] += 1


def _huge(document: Document, random: Random) -> None:
    """More variables than fit into memory."""
    document["vocab_size"] = 10**7


def _factors(document: Document, random: Random) -> None:
    """A term of other conditions."""
    term = random.choice(random.choice(document["lemmas"])[1])
    term[1] = [*term[1], 0, 0]


CHANGES = [
    _coefficient, _negative, _nothing, _condition, _term, _factors, _shape, _huge,
]  # fmt: skip
CASES = [(name, change, seed) for seed in range(6) for name in OF for change in CHANGES]


@first_is_quick(("name", "change", "seed"), CASES, quick=len(CHANGES) * len(OF))
def test_a_changed_proof_is_rejected(
    proofs: dict[str, Document], name: str, change: Callable[[Document, Random], None], seed: int
) -> None:
    document = deepcopy(proofs[name])
    change(document, Random(seed))
    assert document != proofs[name]
    with pytest.raises(RejectedProofError):
        check_document(document, verifiers[name])


def test_a_proof_without_its_lemmas_is_rejected(proofs: dict[str, Document]) -> None:
    """Without one of them it may still hold: another one can cover the same part."""
    for name, document in proofs.items():
        with pytest.raises(RejectedProofError):
            check_document(document | {"lemmas": []}, verifiers[name])


def test_no_lemma_makes_a_wrong_verifier_a_proved_one(document: Document) -> None:
    """Nor is it a proof for more drafts."""
    with pytest.raises(RejectedProofError):
        check_document(document, defects["independent_acceptance"])
    document["drafts"]["num_drafts"] = 3
    with pytest.raises(RejectedProofError):
        check_document(document, verifiers["multi_round"])


@pytest.mark.parametrize("name", ["target_correction", "draft_bonus", "block_first_rejection"])
def test_a_proof_of_a_right_verifier_is_not_one_of_a_wrong_one(
    proofs: dict[str, Document], name: str
) -> None:
    with pytest.raises(RejectedProofError):
        check_document(proofs["block"], defects[name])


@pytest.mark.parametrize(
    "statement", ["optimal", "exchangeable", "single_path", "at_least:mixed_multipath", "fastest"]
)
def test_a_proof_of_one_statement_is_not_one_of_another(document: Document, statement: str) -> None:
    """The lemmas of a proof that ``multi_round`` is lossless prove nothing that is false of it."""
    with pytest.raises(RejectedProofError):
        check_document(document | {"statement": statement}, verifiers["multi_round"])


@pytest.mark.parametrize("field", ["vocab_size", "draft_length"])
def test_a_shape_that_is_no_whole_number_is_refused(document: Document, field: str) -> None:
    """It is what the verdict says: 2.9 tokens, or a text that reads as another number."""
    for wrong in (document[field] + 0.9, str(document[field]), True):
        with pytest.raises(RejectedProofError, match="not one of whole numbers"):
            check_document({**document, field: wrong}, verifiers["multi_round"])


def test_a_proof_says_what_it_was_checked_for(document: Document, tmp_path: Path) -> None:
    """K, the widths and the name of the verifier are read by people; they must be those of the check."""
    iid = {"process": "iid", "num_drafts": 2}
    for wrong in (
        {**iid, "widths": [3, 3]},
        {**iid, "of": "every K"},
        {"process": "prefix_tree", "num_drafts": 9, "widths": [2]},
    ):
        with pytest.raises(RejectedProofError, match="its words on the drafts"):
            check_document({**document, "drafts": wrong}, verifiers["multi_round"])
    path = tmp_path / "renamed.proof"
    write(path, {**document, "verifier": "otm"})
    with pytest.raises(RejectedProofError, match="it is of otm, not of multi_round"):
        check_proof(path, "multi_round")


def test_a_file_that_is_not_a_proof(tmp_path: Path) -> None:
    for content in (b"{}", lzma.compress(b"[" * 100_000), lzma.compress(b"{}")):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(InvalidInputError, match="is not a proof"):
            check_proof(tmp_path / "file")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("points", [["x"]]),
        ("points", [["1/2"]]),
        ("lemmas", [[[[0.0, 1]], [[1, [0]]]]]),
        ("lemmas", [[[[-1, 1]], [[1, [0]]]]]),
        ("lemmas", [[[[0, 1]], [["1", [0]]]]]),
        ("polynomials", [[["1", 0, 1]]]),
        ("polynomials", [[[1, 1, -1], [-1, 1, 1, 4, -1, 0, 1], [-1, 4, 1, 0, -1]]]),
        ("lemmas", [[]]),
    ],
)
def test_a_document_that_is_malformed_is_rejected(document: Document, field: str, value: Any) -> None:
    with pytest.raises(RejectedProofError):
        check_document(document | {field: value}, verifiers["multi_round"])


class RootOnly:
    """Stops at once, and emits a token of the target: lossless.

    Its row is a multiple of the target's, divided by its sum; with ``at_a_zero`` a multiple that is 0 at
    p = q, where the row is lost though the stop is made.
    """

    def __init__(self, at_a_zero: bool) -> None:
        self.at_a_zero = at_a_zero

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stop_probs = zeros_like(target_rows[..., 0])
        stop_probs[:, 0, 0] = stop_probs[:, 0, 0] + 1
        factor = (target_rows[:, 0, 0, :1] - draft_rows[:, 0, 0, :1]) ** 2 if self.at_a_zero else 2

        def correction(path_index: Any, length: Any) -> Any:
            return normalise(target_rows[:, 0, 0] * factor)

        return Outcome(stop_probs, correction)


@pytest.mark.parametrize("statement", ["lossless", "law"])
def test_a_row_divided_by_a_sum_of_0_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """A stop that is made where the sum is 0: refuted by the walk alone, and rejected by the check."""
    monkeypatch.setattr("spectheory.exact.proof.search.SIMPLE_PAIRS", 0)
    right, wrong = (prove(RootOnly(flag), 2, 1, statement=statement) for flag in (False, True))
    assert (right.verdict, wrong.verdict) == ("proved", "refuted" if statement == "lossless" else "undecided")
    check_document(right.document(), find_verifier(RootOnly(False)))
    with pytest.raises(RejectedProofError):
        check_document(right.document(), find_verifier(RootOnly(True)))

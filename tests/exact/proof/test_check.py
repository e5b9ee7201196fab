"""The checker of stored proofs: what it accepts, and everything that it must reject."""

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from proof_traps import Bent
from spectheory import defects, instances, prove, verifiers
from spectheory.exact import proof
from spectheory.exact.proof import check_numbers
from spectheory.exact.proof.check import (
    STATED,
    check_document,
    check_proof,
    is_of_this_code,
    proved_shapes,
    read,
)
from spectheory.exact.proof.check_numbers import ANY, NEGATIVE, POSITIVE, ZERO, RejectedProofError
from spectheory.exact.proof.verifier_code import code_digest
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase
from spectheory.foundation.arrays import normalise, zeros_like
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import Iid, PrefixTree
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import as_verifier

Document = dict[str, Any]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proofs") / "multi_round.proof"
    prove("multi_round", 2, 1, 2).save(path)
    return path


@pytest.fixture
def document(stored: Path) -> Document:
    return json.loads(gzip.decompress(stored.read_bytes()))


def test_a_proof_that_was_found_is_accepted(stored: Path, document: Document) -> None:
    statement = check_proof(stored)
    assert (statement["verifier"], statement["drafts"]["num_drafts"]) == ("multi_round", 2)
    assert document["lemmas"]
    assert document["nodes"]


def _face(document: Document) -> None:
    document["roots"].pop()


def _part(document: Document) -> None:
    node = document["nodes"][0]
    del node[1:3]


def _sign(document: Document) -> None:
    document["nodes"][0][1] = 4 if document["nodes"][0][1] & 1 else 1


def _open(document: Document) -> None:
    """A leaf in place of everything below the root."""
    document["roots"][0][1] = -1


def _cycle(document: Document) -> None:
    document["nodes"][-1][2] = 0


def _closed(document: Document) -> None:
    """A part that is not empty, closed by a lemma."""
    for node in document["nodes"]:
        node[2::2] = [-2 if target == -1 else target for target in node[2::2]]


def _coefficient(document: Document) -> None:
    document["lemmas"][0]["terms"][0][0] = "2/7"


def _negative(document: Document) -> None:
    for term in document["lemmas"][0]["terms"]:
        term[0] = "-" + term[0]


def _nothing(document: Document) -> None:
    document["lemmas"][0]["terms"] = []


def _trusted(document: Document) -> None:
    document["lemmas"][0]["terms"] = None


def _condition(document: Document) -> None:
    """A lemma with conditions of any sign."""
    document["lemmas"][0]["conditions"] = [[f, 7] for f, _ in document["lemmas"][0]["conditions"]]


def _polynomial(document: Document) -> None:
    document["polynomials"][0][0][0] = str(int(document["polynomials"][0][0][0]) + 1)


def _shape(document: Document) -> None:
    document["vocab_size"] = 3


def _huge(document: Document) -> None:
    """More names of variables than fit into memory."""
    document["vocab_size"] = 10**7


def _long(document: Document) -> None:
    document["draft_length"] = 10**9


def _drafts(document: Document) -> None:
    document["drafts"]["num_drafts"] = 3


CHANGES = [
    _face,
    _part,
    _sign,
    _open,
    _cycle,
    _closed,
    _coefficient,
    _negative,
    _nothing,
    _trusted,
    _condition,
]
CHANGES += [_condition, _polynomial, _shape, _huge, _long, _drafts]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__[1:])
def test_a_changed_proof_is_rejected(document: Document, change: Callable[[Document], None]) -> None:
    before = deepcopy(document)
    change(document)
    assert document != before
    with pytest.raises(RejectedProofError):
        check_document(document, verifiers["multi_round"])


def _numbers(value: Any) -> Iterator[tuple[list[Any], int]]:
    """The places of all whole numbers in nested lists."""
    for place, entry in enumerate(value):
        if isinstance(entry, list):
            yield from _numbers(entry)
        elif isinstance(entry, int):
            yield value, place


def test_no_change_of_a_node_turns_a_wrong_verifier_into_a_proved_one(document: Document) -> None:
    """The tree of a right verifier, whatever number of it is changed."""
    wrong = defects["independent_acceptance"]
    for holder, place in list(_numbers(document["nodes"]))[:5]:
        holder[place] += 1
        with pytest.raises(RejectedProofError):
            check_document(document, wrong)
        holder[place] -= 1


def test_what_a_proof_says_beside_is_not_repeated(document: Document, tmp_path: Path) -> None:
    """Only checked fields are the statement; a file that nests too deeply is none."""
    file = tmp_path / "more.proof"
    file.write_bytes(gzip.compress(json.dumps(document | {"verdict": "proved for all V"}).encode()))
    assert check_proof(file).keys() == {*STATED, "regions"}
    file.write_bytes(gzip.compress(b"[" * 100_000))
    with pytest.raises(InvalidInputError, match="is not a proof"):
        check_proof(file)


def test_a_lossless_verifier_below_the_optimum_has_no_cut(tmp_path: Path) -> None:
    """The tree of a proof of losslessness, said to prove optimality; the partner attains the optimum."""
    prove("token", 2, 1, 2).save(tmp_path / "lossless")
    document = json.loads(gzip.decompress((tmp_path / "lossless").read_bytes()))
    document["statement"] = "optimal"
    with pytest.raises(RejectedProofError, match="no cut bounds the block efficiency"):
        check_document(document, verifiers["token"])
    prove("mixed_multipath", 2, 1, 2, statement="optimal").save(tmp_path / "optimal")
    check_proof(tmp_path / "optimal")


def test_the_digest_follows_the_classes() -> None:
    class Other(Block):
        """The same class under another name."""

    class Changed(Block):
        def last(self, weight: Any) -> Any:
            return super().last(weight) * 1

    digests = {code_digest(verifier) for verifier in (verifiers["block"], Other(), Changed())}
    assert len(digests) == 3
    assert code_digest(Changed()) == code_digest(Changed())


def test_the_digest_follows_the_draft_process_and_parameters() -> None:
    block, scaled = verifiers["block"], Block()
    scaled.factor = Fraction(1, 3)  # type: ignore[attr-defined]
    digests = [code_digest(block, process) for process in (Iid(2), Iid(3), PrefixTree((2,)))]
    assert len({*digests, code_digest(block), code_digest(scaled)}) == 5


MODULE = """
class Mine:
    {text}
    def outcome(self, *rows):
        return {body}  # {comment}
"""


def test_the_digest_has_no_comments_and_no_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partner is another body."""

    def digest(folder: str, body: str, comment: str, text: str) -> str:
        place = tmp_path / folder
        place.mkdir()
        source = MODULE.format(body=body, comment=comment, text=text)
        (place / "mine.py").write_text(source, encoding="utf-8")
        specification = spec_from_file_location("mine", place / "mine.py")
        assert specification is not None
        assert specification.loader is not None
        module = module_from_spec(specification)
        monkeypatch.setitem(sys.modules, "mine", module)
        specification.loader.exec_module(module)
        return code_digest(as_verifier(module.Mine()))

    one, same = digest("one", "rows * 2", "once", "'Twice.'"), digest("same", "rows * 2", "again", "")
    assert one == same != digest("other", "rows", "once", "")


def test_a_file_that_is_not_a_proof(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"{}")
    with pytest.raises(ValueError, match="is not a proof"):
        check_proof(path)


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


def test_a_row_divided_by_a_sum_of_0_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop that is made where the sum is 0: refuted by the walk alone, and by the checker.

    Partner: a rule that never asks whether the sum is 0 finds nothing wrong with it.
    """
    monkeypatch.setattr("spectheory.exact.proof.search.SIMPLE_PAIRS", 0)
    right, wrong = prove(RootOnly(False), 2, 1), prove(RootOnly(True), 2, 1)
    assert (right.verdict, wrong.verdict) == ("proved", "refuted")
    assert wrong.wrong == "a correction row does not sum to 1"
    assert wrong.pair is not None
    assert (wrong.pair.target[0] == wrong.pair.draft[0]).all()
    document = right.to_document() | {"format": "spectheory-proof/1", **(right.tree or {})}
    verifiers_of = {name: find_verifier(RootOnly(name == "wrong")) for name in ("right", "wrong")}
    check_document(document, verifiers_of["right"])
    with pytest.raises(RejectedProofError):
        check_document(document, verifiers_of["wrong"])
    monkeypatch.setattr("spectheory.exact.proof.check_numbers.Answers.is_never_zero", lambda *_: True)
    assert check_document(document, verifiers_of["wrong"]) == right.num_regions


STORED = Path(proof.__file__).parent / "stored"
PAGE = Path(__file__).parents[3] / "docs" / "proofs.md"


@pytest.mark.parametrize("path", sorted(STORED.glob("*.proof")), ids=lambda path: path.stem)
def test_stored_proofs_hold(path: Path) -> None:
    """Small ones are checked here; of all, the digest is that of the code, and the page lists them."""
    data = path.read_bytes()
    document = read(path)
    assert is_of_this_code(document, verifiers[document["verifier"]])
    assert f"| {len(data)} |" in PAGE.read_text(encoding="utf-8")
    if len(data) < 400:
        assert check_proof(path)["regions"] == document["regions"]


@pytest.mark.parametrize("field", ["vocab_size", "draft_length"])
def test_a_shape_that_is_no_whole_number_is_refused(field: str) -> None:
    """It is what the verdict says: 2.9 tokens, or a text that reads as another number."""
    document = read(STORED / "token_V2_L1_K1_all.proof")
    for wrong in (document[field] + 0.9, str(document[field]), f"{document[field]} "):
        with pytest.raises(RejectedProofError, match="not one of whole numbers"):
            check_document({**document, field: wrong}, verifiers["token"])


def test_a_proof_says_what_it_was_checked_for(tmp_path: Path) -> None:
    """K, the widths and the name of the verifier are read by people; they must be those of the check."""
    document = read(STORED / "multi_round_V2_L1_K2_all.proof")
    iid = {"process": "iid", "num_drafts": 2}
    tree = {"process": "prefix_tree", "num_drafts": 9, "widths": [2]}
    for wrong in ({**iid, "widths": [3, 3]}, {**iid, "of": "every K"}, tree):
        with pytest.raises(RejectedProofError, match="its words on the drafts"):
            check_document({**document, "drafts": wrong}, verifiers["multi_round"])
    path = tmp_path / "renamed.proof"
    path.write_bytes(gzip.compress(json.dumps({**document, "verifier": "otm"}).encode()))
    with pytest.raises(RejectedProofError, match="it is of otm, not of multi_round"):
        check_proof(path, "multi_round")


def test_stored_proofs_speak_of_the_code_that_they_are_of() -> None:
    class Changed(Block):
        """The same name, and other code."""

    assert proved_shapes(verifiers["block"])[:2] == ["V=2 L=1 K=1", "V=2 L=2 K=1"]
    assert proved_shapes(Changed()) == []
    case = SuiteCase("mine", instances.two_token(1), Iid(1))
    assert certify_suite("token", [case]).to_document()["proved_for"][0] == "V=2 L=1 K=1"
    assert certify_suite(Changed(), [case]).proved_for == ()


@pytest.mark.deep
@pytest.mark.parametrize("path", sorted(STORED.glob("*.proof")), ids=lambda path: path.stem)
def test_large_stored_proofs_hold(path: Path) -> None:
    check_proof(path)


def test_stored_proofs_are_small() -> None:
    """`make proofs` writes them; stale ones are written anew by it."""
    sizes = [path.stat().st_size for path in STORED.glob("*.proof")]
    assert len(sizes) > 15
    assert sum(sizes) < 2_000_000


def test_the_checker_asks_what_the_search_asked_where_a_number_is_0(tmp_path: Path) -> None:
    """|p| is p or -p where p = 0 on a region, in both; a comparison with it has the same factors then."""

    def never(target_rows: Any, draft_rows: Any) -> Any:
        last, draft = target_rows[:, 0, 0, -1], draft_rows[:, 0, 0, 0]
        return (last == 0) & (abs(last) + draft < Fraction(1, 2)) & (draft < 0)

    found = prove(Bent(never), 2, 1)
    assert found.verdict == "proved"
    found.save(tmp_path / "proof")
    assert check_proof(tmp_path / "proof", Bent(never))["regions"] == found.num_regions


def test_the_signs_of_products_are_those_of_numbers() -> None:
    """Of all sets of signs: a set stands for its numbers among -1, 0 and 1."""
    masks = {-1: NEGATIVE, 0: ZERO, 1: POSITIVE}
    for one, other in product(range(ANY + 1), repeat=2):
        found = {a * b for a, b in product(masks, masks) if masks[a] & one and masks[b] & other}
        assert check_numbers._PRODUCTS[one][other] == sum(masks[sign] for sign in found)

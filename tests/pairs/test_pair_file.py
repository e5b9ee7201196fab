"""The pair file: reading, writing, and every bad document with what its error says."""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from pair_support import BAD_DOCUMENTS, CONTEXT_FREE, DOCUMENT, assert_same_pair
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidPairError
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.pair_file import (
    OPTIONAL_FIELDS,
    REQUIRED_FIELDS,
    parse_context,
    parse_document,
)
from spectheory.testing.strategies import pairs


@pytest.mark.parametrize("name", instances.NAMED)
def test_files_round_trip(name: str, tmp_path: Path) -> None:
    for number, pair in enumerate((instances.NAMED[name](2), instances.NAMED[name](2).to_float())):
        path = tmp_path / f"{number}.json"
        pair.save(path)
        assert_same_pair(ModelPair.load(path), pair)
        assert_same_pair(ModelPair.load(str(path)), pair)
        assert ("context_free" in json.loads(path.read_text())) == pair.context_free


def test_both_forms_give_one_law() -> None:
    rows = {side: getattr(instances.two_token(2), side) for side in ("target", "draft")}
    document = {**CONTEXT_FREE, "context_free": False}
    for side, levels in rows.items():
        document[side] = {
            " ".join(map(str, context)): [str(entry) for entry in levels[depth][0]]
            for depth in range(len(levels))
            for context in product(range(2), repeat=depth)
        }
    spelled_out = ModelPair.from_document(document)
    assert not spelled_out.context_free
    one, other = output_law("block", spelled_out), output_law("block", ModelPair.from_document(CONTEXT_FREE))
    assert one.block_efficiency == other.block_efficiency == Fraction(20, 9)


@pytest.mark.parametrize("what", BAD_DOCUMENTS)
def test_bad_documents_are_refused(what: str) -> None:
    fields, message = BAD_DOCUMENTS[what]
    with pytest.raises(InvalidPairError, match=message):
        ModelPair.from_document({**DOCUMENT, **fields})
    assert issubclass(InvalidPairError, ValueError)
    ModelPair.from_document(DOCUMENT)  # the partner: without the change it is accepted


@pytest.mark.parametrize("field", ["vocab", "draft_length", "target", "draft"])
def test_missing_fields_are_named(field: str) -> None:
    document = {key: value for key, value in DOCUMENT.items() if key != field}
    with pytest.raises(InvalidPairError, match=f"missing fields: {field}"):
        ModelPair.from_document(document)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    contents: dict[bytes, str] = {
        b"{": r"broken\.json is not JSON",
        b"": r"broken\.json is not JSON",
        b"\xff\xfe\x00{": r"broken\.json is not",
        b'{"format": "other"}': r"broken\.json: not a pair file",
        json.dumps({**DOCUMENT, "draft_length": 0}).encode(): r"broken\.json: draft_length must be",
        json.dumps({**CONTEXT_FREE, "target": [float("nan"), 1], "draft": [1, 0]}).encode(): (
            r"broken\.json: the target row has an entry that is not finite: \[nan, 1\.0\]"
        ),
        json.dumps({**CONTEXT_FREE, "target": [0, 1], "draft": [float("inf"), 0]}).encode(): "not finite",
        json.dumps(
            DOCUMENT
            | {
                "draft_length": 1,
                "target": {"": [0, 1], "0": [0, 1], "1": [1, float("nan")]},
                "draft": {"": [0, 1]},
            }
        ).encode(): "target row at context '1' has an entry that is not finite",
    }
    for content, message in contents.items():
        broken.write_bytes(content)
        with pytest.raises(InvalidPairError, match=message):
            ModelPair.load(broken)
    with pytest.raises(InvalidPairError, match=r"cannot read .*missing\.json: No such file"):
        ModelPair.load(tmp_path / "missing.json")
    with pytest.raises(InvalidPairError, match="cannot read"):
        ModelPair.load(tmp_path)


@pytest.mark.parametrize("context_free", [True, False])
def test_trees_that_cannot_be_held_are_refused(context_free: bool) -> None:
    """2^70 rows are refused before anything is allocated."""
    row = ["1/2", "1/2"]
    table = row if context_free else {"": row}
    document = DOCUMENT | {"target": table, "draft": table, "context_free": context_free}
    with pytest.raises(EnumerationTooLargeError, match="2 tokens and draft length 70"):
        ModelPair.from_document(document | {"draft_length": 70})


def test_repeated_keys_are_refused(tmp_path: Path) -> None:
    text = json.dumps(DOCUMENT).replace('"": ["1/3", "2/3"]', '"": ["1/3", "2/3"], "": ["1/2", "1/2"]', 1)
    (tmp_path / "twice.json").write_text(text)
    with pytest.raises(InvalidPairError, match="the key '' stands twice"):
        ModelPair.load(tmp_path / "twice.json")


@pytest.mark.parametrize(
    ("key", "context", "spelling"),
    [
        ("00", (0,), "0"),
        ("0  1", (0, 1), "0 1"),
        ("0 01", (0, 1), "0 1"),
        (" 0", (0,), "0"),
        ("0 ", (0,), "0"),
        (" ", (), ""),
        ("0\t1", (0, 1), "0 1"),
        ("+1", (1,), "1"),
        ("1_0", (10,), "10"),
        ("\N{FULLWIDTH DIGIT ONE}", (1,), "1"),
        ("-0", (0,), "0"),
    ],
)
def test_every_context_has_one_spelling(key: str, context: tuple[int, ...], spelling: str) -> None:
    """Whatever Python reads as the same ids is refused, and the error shows the spelling there is."""
    with pytest.raises(InvalidPairError, match=f"must be written '{spelling}'"):
        parse_context(key)
    assert parse_context(spelling) == context


def test_optional_fields_are_those_that_are_read() -> None:
    assert set(CONTEXT_FREE) == {*REQUIRED_FIELDS, *OPTIONAL_FIELDS}
    assert ModelPair.from_document(CONTEXT_FREE).to_document() == CONTEXT_FREE


@pytest.mark.parametrize("number", ["1e-400", "0.5e-330", "1e400"])
def test_a_number_beyond_float64_is_not_rounded(tmp_path: Path, number: str) -> None:
    rows = f'"context_free": true, "target": [{number}, 1], "draft": [0.0e0, 1]'
    text = f'{{"format": "spectheory-pair/1", "vocab": ["A", "B"], "draft_length": 1, {rows}}}'
    (tmp_path / "pair.json").write_text(text)
    with pytest.raises(InvalidPairError, match=f"{number} is beyond float64"):
        ModelPair.load(tmp_path / "pair.json")
    (tmp_path / "pair.json").write_text(text.replace(number, "1e-300"))  # the sum is 1 within the tolerance
    assert ModelPair.load(tmp_path / "pair.json").target[0].ravel()[0] == 1e-300


def test_half_of_a_surrogate_pair_is_no_name() -> None:
    """It could be read and not be printed."""
    document = {"format": "spectheory-pair/1", "vocab": ["A", "\ud800"], "draft_length": 1}
    rows = {"context_free": True, "target": ["1/2", "1/2"], "draft": ["1/2", "1/2"]}
    with pytest.raises(InvalidPairError, match="half of a surrogate pair"):
        parse_document(document | rows)


def test_document_with_contexts() -> None:
    pair = ModelPair.from_document(DOCUMENT)
    assert (pair.vocab_size, pair.draft_length, pair.arithmetic) == (2, 1, "exact")
    assert pair.target[1].tolist() == [[Fraction(1, 2), Fraction(1, 2)], [1, 0]]
    assert all(isinstance(entry, Fraction) for level in pair.target for entry in level.ravel())


def test_document_with_numbers_is_float() -> None:
    pair = ModelPair.from_document({**CONTEXT_FREE, "target": [1, 0], "draft": [0.25, 0.75]})
    assert pair.arithmetic == "float64"
    assert pair.target[0].dtype == np.float64
    whole = ModelPair.from_document({**CONTEXT_FREE, "target": [1, 0], "draft": [0, 1]})
    assert whole.arithmetic == "float64"


@given(pair=pairs())
def test_documents_round_trip(pair: ModelPair) -> None:
    assert_same_pair(ModelPair.from_document(json.loads(json.dumps(pair.to_document()))), pair)


@pytest.mark.parametrize("document", [[1], "pair", None, {}, {"format": None}])
def test_other_json_is_refused(document: Any) -> None:
    with pytest.raises(InvalidPairError, match=r'not a pair file: expected "format"'):
        ModelPair.from_document(document)


def test_the_limit_is_that_of_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectheory.pairs.levels.MAX_ENTRIES", 2**4)
    assert instances.random_float(0, 2, 3).draft_length == 3
    with pytest.raises(EnumerationTooLargeError, match=r"draft length 4 .*256 bytes"):
        instances.random_float(0, 2, 4)

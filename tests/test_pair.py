"""ModelPair: files, contexts, derived pairs, and every bad input with what its error says."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from spectheory import instances
from spectheory.errors import EnumerationTooLargeError, InvalidInputError, InvalidPairError
from spectheory.law import output_law
from spectheory.pair import FORMAT, ModelPair, parse_probs
from spectheory.testing.strategies import pairs

DOCUMENT: dict[str, Any] = {
    "format": FORMAT,
    "vocab": ["A", "B"],
    "draft_length": 1,
    "target": {"": ["1/3", "2/3"], "0": ["1/2", "0.5"], "1": ["1", "0"]},
    "draft": {"": ["2/3", "1/3"]},
}
CONTEXT_FREE: dict[str, Any] = {
    "format": FORMAT,
    "vocab": ["A", "B"],
    "draft_length": 2,
    "context_free": True,
    "target": ["1/3", "2/3"],
    "draft": ["2/3", "1/3"],
}


def assert_same_pair(one: ModelPair, other: ModelPair) -> None:
    """The same numbers of the same kind, bit by bit, and the same names."""
    assert (one.vocab, one.draft_length, one.arithmetic) == (
        other.vocab,
        other.draft_length,
        other.arithmetic,
    )
    assert one.context_free == other.context_free
    assert (len(one.target), len(one.draft)) == (len(other.target), len(other.draft))
    for level, expected in zip((*one.target, *one.draft), (*other.target, *other.draft), strict=True):
        assert level.dtype == expected.dtype
        np.testing.assert_array_equal(level, expected)


# ------------------------------------------------------------------------ files


def test_document_with_contexts() -> None:
    """Strings are exact, decimals too; keys are contexts."""
    pair = ModelPair.from_document(DOCUMENT)
    assert (pair.vocab_size, pair.draft_length, pair.arithmetic) == (2, 1, "exact")
    assert pair.target[1].tolist() == [[Fraction(1, 2), Fraction(1, 2)], [1, 0]]
    assert all(isinstance(entry, Fraction) for level in pair.target for entry in level.ravel())


def test_document_with_numbers_is_float() -> None:
    """JSON numbers are float64, whole ones too."""
    pair = ModelPair.from_document({**CONTEXT_FREE, "target": [1, 0], "draft": [0.25, 0.75]})
    assert pair.arithmetic == "float64"
    assert pair.target[0].dtype == np.float64
    whole = ModelPair.from_document({**CONTEXT_FREE, "target": [1, 0], "draft": [0, 1]})
    assert whole.arithmetic == "float64"


@given(pair=pairs())
def test_documents_round_trip(pair: ModelPair) -> None:
    """Writing and reading gives the same pair, through JSON text, exact and float."""
    assert_same_pair(ModelPair.from_document(json.loads(json.dumps(pair.to_document()))), pair)


@pytest.mark.parametrize("name", instances.NAMED)
def test_files_round_trip(name: str, tmp_path: Path) -> None:
    """save and load, in both arithmetics."""
    for number, pair in enumerate((instances.NAMED[name](2), instances.NAMED[name](2).to_float())):
        path = tmp_path / f"{number}.json"
        pair.save(path)
        assert_same_pair(ModelPair.load(path), pair)
        assert_same_pair(ModelPair.load(str(path)), pair)
        assert ("context_free" in json.loads(path.read_text())) == pair.context_free


def test_both_forms_give_one_law() -> None:
    """The two-token example written with a row per context has the law of its context-free form."""
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


BAD_DOCUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    # what is wrong: (fields that replace those of DOCUMENT, what the error says)
    "format": ({"format": "spectheory-pair/2"}, r'expected "format": "spectheory-pair/1", got .*pair/2'),
    "vocab not names": ({"vocab": [1, 2]}, r"vocab must be a list of strings, got \[1, 2\]"),
    "vocab repeated": ({"vocab": ["A", "A"]}, r"vocab has repeated names: \['A', 'A'\]"),
    "vocab too long": ({"vocab": ["A", "B", "C"]}, r"shape \(1, 2\); expected \(1, 3\) for 3 tokens"),
    "length 0": ({"draft_length": 0}, "draft_length must be a whole number of at least 1, got 0"),
    "length a string": ({"draft_length": "1"}, "whole number of at least 1, got '1'"),
    "length a fraction": ({"draft_length": 1.5}, r"whole number of at least 1, got 1\.5"),
    "length true": ({"draft_length": True}, "whole number of at least 1, got True"),
    "row sum": ({"draft": {"": ["2/3", "1/4"]}}, "the draft row at context '' sums to 11/12, not 1"),
    "deep row sum": (
        {"target": {**DOCUMENT["target"], "1": ["1/2", "1/3"]}},
        "the target row at context '1' sums to 5/6, not 1",
    ),
    "float row sum": (
        {"target": {"": [0.5, 0.4], "0": [1, 0], "1": [1, 0]}, "draft": {"": [1, 0]}},
        r"the target row at context '' sums to 0\.9, not 1",
    ),
    "negative": ({"draft": {"": ["4/3", "-1/3"]}}, r"negative entry: \[4/3, -1/3\]"),
    "no root": ({"target": {"0": ["1", "0"]}}, "no row at the root context ''"),
    "context missing": (
        {"target": {"": ["1", "0"], "0": ["1", "0"]}},
        "the target has no row at context '1'; every context of depth 0..1 over 2 tokens needs one",
    ),
    "draft missing": ({"draft": {}}, "the draft has no row at context ''"),
    "context too deep": (
        {"draft": {"": ["1", "0"], "0": ["1", "0"]}},
        r"the draft has a row at context '0', which is not a context of depth 0\.\.0",
    ),
    "unknown token": (
        {"target": {**DOCUMENT["target"], "2": ["1", "0"]}},
        r"row at context '2', which is not a context of depth 0\.\.1 over tokens 0\.\.1; remove it",
    ),
    "bad key": ({"draft": {"": ["1", "0"], "A": ["1", "0"]}}, "context 'A' is not a list of token ids"),
    "mixed": ({"draft": {"": [0.5, 0.5]}}, r"exact and float entries are mixed \('1/3' and 0\.5\)"),
    "not a rational": ({"draft": {"": ["one", "0"]}}, "'one' is not a rational such as '1/3'"),
    "division by zero": ({"draft": {"": ["1/0", "0"]}}, "'1/0' is not a rational"),
    "infinite string": ({"draft": {"": ["inf", "0"]}}, "'inf' is not a rational"),
    "null": ({"draft": {"": [None, "1"]}}, "must be a string or a number, got None"),
    "boolean": ({"draft": {"": [True, "0"]}}, "a probability cannot be True"),
    "nested": ({"draft": {"": [["1"], "0"]}}, r"must be a string or a number, got \['1'\]"),
    "row a string": ({"draft": {"": "1/2"}}, "a row must be a list of probabilities, got '1/2'"),
    "draft row too short": ({"draft": {"": ["1"]}}, "draft row at context '' has 1 entries; expected 2"),
    "row lengths differ": ({"target": {**DOCUMENT["target"], "0": ["1", "0", "0"]}}, "context '0'"),
    "rows empty": ({"vocab": [], "target": {"": []}, "draft": {"": []}}, "at least one token"),
    "tables without contexts": ({"target": ["1", "0"]}, "target must map contexts to rows, got list"),
    "contexts where none are expected": (
        {"context_free": True},
        "a context-free target is one list of probabilities",
    ),
}


@pytest.mark.parametrize("what", BAD_DOCUMENTS)
def test_bad_documents_are_refused(what: str) -> None:
    """Every bad pair is an InvalidPairError (a ValueError) that says what was found and what is expected."""
    fields, message = BAD_DOCUMENTS[what]
    with pytest.raises(InvalidPairError, match=message):
        ModelPair.from_document({**DOCUMENT, **fields})
    assert issubclass(InvalidPairError, ValueError)
    ModelPair.from_document(DOCUMENT)  # the partner: without the change it is accepted


@pytest.mark.parametrize("field", ["vocab", "draft_length", "target", "draft"])
def test_missing_fields_are_named(field: str) -> None:
    """Each required field."""
    document = {key: value for key, value in DOCUMENT.items() if key != field}
    with pytest.raises(InvalidPairError, match=f"missing fields: {field}"):
        ModelPair.from_document(document)


@pytest.mark.parametrize("document", [[1], "pair", None, {}, {"format": None}])
def test_other_json_is_refused(document: Any) -> None:
    """JSON that is not a pair file."""
    with pytest.raises(InvalidPairError, match=r'not a pair file: expected "format"'):
        ModelPair.from_document(document)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """The file's name is in every error."""
    broken = tmp_path / "broken.json"
    contents: dict[bytes, str] = {
        b"{": r"broken\.json is not JSON",
        b"": r"broken\.json is not JSON",
        b"\xff\xfe\x00{": r"broken\.json is not",
        b'{"format": "other"}': r"broken\.json: not a pair file",
        json.dumps({**DOCUMENT, "draft_length": 0}).encode(): r"broken\.json: draft_length must be",
        json.dumps({**CONTEXT_FREE, "target": [float("nan"), 1], "draft": [1, 0]}).encode(): (
            r"broken\.json: the target row at context '' has an entry that is not finite: \[nan, 1\.0\]"
        ),
        json.dumps({**CONTEXT_FREE, "target": [0, 1], "draft": [float("inf"), 0]}).encode(): "not finite",
    }
    for content, message in contents.items():
        broken.write_bytes(content)
        with pytest.raises(InvalidPairError, match=message):
            ModelPair.load(broken)
    with pytest.raises(InvalidPairError, match=r"cannot read .*missing\.json: No such file"):
        ModelPair.load(tmp_path / "missing.json")
    with pytest.raises(InvalidPairError, match="cannot read"):
        ModelPair.load(tmp_path)


# ----------------------------------------------------------------- construction


@pytest.mark.parametrize("context_free", [True, False])
def test_trees_that_cannot_be_held_are_refused(context_free: bool) -> None:
    """2^70 rows are refused before anything is allocated; depth 12 is not."""
    row = ["1/2", "1/2"]
    table = row if context_free else {"": row}
    document = DOCUMENT | {"target": table, "draft": table, "context_free": context_free}
    with pytest.raises(EnumerationTooLargeError, match="2 tokens and draft length 70"):
        ModelPair.from_document(document | {"draft_length": 70})
    assert ModelPair.context_free_pair(row, row, 12).draft_length == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context_free": "yes"}, "context_free must be true or false"),
        ({"target": {"": [10**400, 0]}}, "too large for a float64"),
    ],
)
def test_odd_json_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidPairError, match=message):
        ModelPair.from_document(DOCUMENT | change)


def test_repeated_keys_are_refused(tmp_path: Path) -> None:
    """Plain JSON keeps the last of two equal keys; a pair file may not have two."""
    text = json.dumps(DOCUMENT).replace('"": ["1/3", "2/3"]', '"": ["1/3", "2/3"], "": ["1/2", "1/2"]', 1)
    (tmp_path / "twice.json").write_text(text)
    with pytest.raises(InvalidPairError, match="the key '' stands twice"):
        ModelPair.load(tmp_path / "twice.json")


@pytest.mark.parametrize("entry", ["1e999999999", "1e-999999999", "1" * 5000])
def test_numbers_of_absurd_length_are_refused(entry: str) -> None:
    with pytest.raises(InvalidPairError, match="too many digits"):
        parse_probs([entry, "0"])
    assert parse_probs(["1e-20", "0.99999999999999999999"]).sum() == 1


def test_plain_constructor_checks_its_arrays() -> None:
    """context_free must be true of the rows, and exact arrays must hold Fractions only."""
    pair = ModelPair.from_document(DOCUMENT)
    with pytest.raises(InvalidPairError, match="context_free is set"):
        ModelPair(pair.target, pair.draft, pair.vocab, context_free=True)
    with pytest.raises(InvalidPairError, match="Fractions or float64, got float32"):
        ModelPair(tuple(t.astype("float32") for t in pair.target), pair.draft, pair.vocab)


def test_context_free_rows_must_fit() -> None:
    """Both rows list every token once."""
    with pytest.raises(InvalidPairError, match="the draft row at context '' has 3 entries; expected 2"):
        ModelPair.context_free_pair(["1/2", "1/2"], ["1", "0", "0"], 1)
    with pytest.raises(InvalidPairError, match="mixed"):
        ModelPair.context_free_pair(["1/2", "1/2"], [0.5, 0.5], 1)
    with pytest.raises(InvalidPairError, match="draft_length must be"):
        ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 0)


def test_levels_must_fit() -> None:
    """The plain constructor checks depths, shapes and arithmetic too."""
    exact, in_float = instances.two_token(2), instances.two_token(2).to_float()
    with pytest.raises(InvalidPairError, match="the target needs exactly one depth more"):
        ModelPair(exact.target[:2], exact.draft, exact.vocab)
    with pytest.raises(InvalidPairError, match="exact and float rows are mixed"):
        ModelPair(exact.target, in_float.draft, exact.vocab)
    with pytest.raises(InvalidPairError, match=r"the target rows at depth 1 have shape \(1, 2\)"):
        ModelPair((exact.target[0], exact.target[1][:1], exact.target[2]), exact.draft, exact.vocab)
    with pytest.raises(InvalidPairError, match="the vocabulary is empty"):
        ModelPair((np.zeros((1, 0)), np.zeros((0, 0))), (np.zeros((1, 0)),), ())


def test_float_rows_are_allowed_rounding_only() -> None:
    """Row sums within the documented 1e-9 pass, 1e-6 does not, and exact rows get no tolerance."""
    ModelPair.context_free_pair([0.1, 0.2, 0.7 + 1e-12], [0.3, 0.3, 0.4], 1)
    with pytest.raises(InvalidPairError, match="sums to"):
        ModelPair.context_free_pair([0.1, 0.2, 0.7 + 1e-6], [0.3, 0.3, 0.4], 1)
    with pytest.raises(InvalidPairError, match="sums to"):
        ModelPair.context_free_pair(["0.1", "0.2", "0.7000000000001"], ["1", "0", "0"], 1)


def test_parse_probs() -> None:
    """Strings, Fractions and integers are exact; a float makes the whole row float64."""
    assert parse_probs(["1/3", Fraction(2, 3), 0]).tolist() == [Fraction(1, 3), Fraction(2, 3), 0]
    assert parse_probs([0.25, 1]).dtype == np.float64
    assert parse_probs(np.array([0.5, 0.5])).dtype == np.float64
    assert parse_probs([0, 1]).dtype == object
    with pytest.raises(InvalidPairError, match="mixed"):
        parse_probs(["1/3", 0.5])
    for row in ("1/3", b"1", 3, None):
        with pytest.raises(InvalidPairError, match="a row must be a list"):
            parse_probs(row)


# --------------------------------------------------------------------- contexts


@given(pair=pairs(), depth=st.integers(0, 3))
def test_contexts_are_numbered_in_base_v(pair: ModelPair, depth: int) -> None:
    """(a_1, .., a_i) is row a_1 V^(i-1) + .. + a_i."""
    contexts = list(product(range(pair.vocab_size), repeat=depth))
    assert [pair.context(depth, number) for number in range(len(contexts))] == contexts
    assert [reference.number_of(pair, context) for context in contexts] == list(range(len(contexts)))


@given(pair=pairs(exact=True))
def test_path_probs_are_products_of_conditionals(pair: ModelPair) -> None:
    """p(a_{1:i}) for depths 0..L+1 and q for 0..L; each depth sums to 1."""
    for depth in range(pair.draft_length + 2):
        contexts = product(range(pair.vocab_size), repeat=depth)
        expected = [reference.target_prob(pair, context) for context in contexts]
        assert pair.target_path_probs(depth).tolist() == expected
        assert sum(expected) == 1
    for depth in range(pair.draft_length + 1):
        contexts = product(range(pair.vocab_size), repeat=depth)
        assert pair.draft_path_probs(depth).tolist() == [reference.draft_prob(pair, c) for c in contexts]


# ---------------------------------------------------------------- derived pairs


@given(pair=pairs(exact=True))
def test_to_float_rounds_every_entry(pair: ModelPair) -> None:
    """float64 of each entry; a float pair is returned as it is."""
    rounded = pair.to_float()
    assert rounded.arithmetic == "float64"
    assert rounded.to_float() is rounded
    assert (rounded.vocab, rounded.context_free) == (pair.vocab, pair.context_free)
    for level, exact in zip((*rounded.target, *rounded.draft), (*pair.target, *pair.draft), strict=True):
        assert level.tolist() == [[float(entry) for entry in row] for row in exact]


@given(pair=pairs())
def test_truncate_keeps_the_first_levels(pair: ModelPair) -> None:
    """A shorter draft of the same models."""
    for length in range(1, pair.draft_length + 1):
        shorter = pair.truncate(length)
        assert (shorter.draft_length, len(shorter.target)) == (length, length + 1)
        assert all(a is b for a, b in zip(shorter.target, pair.target, strict=False))
    for length in (0, pair.draft_length + 1):
        with pytest.raises(InvalidPairError, match=rf"expected 1\.\.{pair.draft_length}"):
            pair.truncate(length)


def test_truncate_of_a_context_free_pair_is_the_shorter_instance() -> None:
    """two_token(3) cut to 2 is two_token(2)."""
    assert_same_pair(instances.two_token(3).truncate(2), instances.two_token(2))


@pytest.mark.parametrize("seed", range(6))
def test_restrict_conditions_every_row(seed: int) -> None:
    """restrict: p(x | a) / p(tokens | a) at every context made of the tokens, in the order given."""
    pair = instances.random_rational(seed, 4, 2, zero_probability=0.0)
    kept = [2, 0, 3]
    smaller = pair.restrict(kept)
    assert smaller.vocab == ("2", "0", "3")
    assert (smaller.vocab_size, smaller.draft_length) == (3, 2)
    for depth, context in ((d, c) for d in range(3) for c in product(range(3), repeat=d)):
        original = tuple(kept[token] for token in context)
        for side in (reference.target_row, reference.draft_row)[: 2 if depth < 2 else 1]:
            row = side(pair, original)
            mass = sum(row[token] for token in kept)
            assert side(smaller, context) == [row[token] / mass for token in kept]
    assert_same_pair(pair.restrict([0, 1, 2, 3]), pair)


def test_restrict_refuses_what_it_cannot_do() -> None:
    """Unknown, repeated or no tokens, and rows without mass on them."""
    pair = instances.partial_overlap(2)
    for tokens in ([], [0, 0], [4], [-1]):
        with pytest.raises(InvalidPairError, match=r"expected distinct ids in 0\.\.3"):
            pair.restrict(tokens)
    with pytest.raises(InvalidPairError, match=r"the target gives tokens \[3\] no mass at context ''"):
        pair.restrict([3])
    with pytest.raises(InvalidPairError, match=r"the draft gives tokens \[2\] no mass at context ''"):
        pair.restrict([2])


# ---------------------------------------------------------------- named instances


@pytest.mark.parametrize("name", instances.NAMED)
def test_named_instances_are_exact_at_every_length(name: str) -> None:
    """Functions of the draft length."""
    for length in (1, 2, 3):
        pair = instances.NAMED[name](length)
        assert pair.is_exact
        assert pair.draft_length == length


def test_instances_are_what_the_papers_say() -> None:
    """Rows of block2024 Eq. 2 and spectr2023 App. B.1, and refusals of nonsense."""
    assert instances.two_token().target[0].tolist() == [[Fraction(1, 3), Fraction(2, 3)]]
    assert instances.bernoulli("1/4", "3/4").draft[0].tolist() == [[Fraction(3, 4), Fraction(1, 4)]]
    assert instances.uniform(4, 2).target[0].tolist() == [[Fraction(1, 2)] * 2 + [0, 0]]
    with pytest.raises(InvalidInputError, match="ratio must divide support, got support 4 and ratio 3"):
        instances.uniform(4, 3)
    with pytest.raises(InvalidInputError, match=r"agreement must lie in \[0, 1\], got 2"):
        instances.random_float(0, 2, 1, agreement=2)


@pytest.mark.parametrize("make", [instances.random_rational, instances.random_float])
def test_random_instances_depend_on_the_seed_only(make: Any) -> None:
    """The same seed gives the same pair, another seed another one."""
    assert_same_pair(make(5, 3, 2), make(5, 3, 2))
    assert any((a != b).any() for a, b in zip(make(5, 3, 2).target, make(6, 3, 2).target, strict=True))


def test_agreement_one_makes_the_models_equal() -> None:
    """agreement interpolates between independent rows and identical ones."""
    pair = instances.random_float(3, 3, 2, agreement=1.0)
    for target, draft in zip(pair.target[:-1], pair.draft, strict=True):
        np.testing.assert_array_equal(target, draft)

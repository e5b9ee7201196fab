"""ModelPair: construction, contexts, derived pairs, and every bad input with what its error says."""

import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

import reference
from pair_support import DOCUMENT, assert_same_pair
from spectheory import instances, output_law
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidPairError
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.pairs import levels
from spectheory.pairs.pair import ModelPair
from spectheory.testing.strategies import pairs


def test_context_free_rows_must_fit() -> None:
    for names in ([], ["A"], ["A", "B", "C"]):
        with pytest.raises(InvalidPairError, match=f"vocab has {len(names)} names, and the rows 2 tokens"):
            ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], 2, vocab=names)
    with pytest.raises(InvalidPairError, match="the draft row has 3 entries; expected 2"):
        ModelPair.context_free_pair(["1/2", "1/2"], ["1", "0", "0"], 1)
    with pytest.raises(InvalidPairError, match="draft_length must be"):
        ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 0)


@pytest.mark.parametrize("normalise", [True, False])
def test_rows_in_float32(normalise: bool) -> None:
    """Their sums are off by more than the tolerance; with ``normalise`` every row is divided by its sum."""
    row = np.float32([0.1, 0.2, 0.7]) / np.float32(3) * np.float32(3)
    assert abs(row.astype(float).sum() - 1) > 1e-9

    def build() -> list[ModelPair]:
        rows = {(): row, **{(token,): row for token in range(3)}}
        return [
            ModelPair.context_free_pair(row, row, 1, normalise=normalise),
            ModelPair.from_contexts(rows, {(): row}, 1, normalise=normalise),
        ]

    if normalise:
        assert all(abs(level.sum(axis=1) - 1).max() < 1e-15 for pair in build() for level in pair.target)
        exact = ModelPair.context_free_pair(["1", "2"], [3, 1], 1, normalise=True)
        assert (exact.target[0][0] * 3).tolist() == [1, 2]
        with pytest.raises(InvalidPairError, match="the target row has a negative entry"):
            ModelPair.context_free_pair([2.0, -1.0], row[:2], 1, normalise=True)
    else:
        with pytest.raises(
            InvalidPairError, match=r"the target row sums to .* divide it by its sum .* normalise=True"
        ):
            build()


def test_levels_must_fit() -> None:
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


@given(pair=pairs())
def test_the_numbers_to_compute_with_are_those_of_the_pair(pair: ModelPair) -> None:
    """python-flint rationals or float64: every row and every path, of its own model."""
    numbers, depths = pair.numbers, range(pair.draft_length + 1)
    kind = fmpq if pair.is_exact else float
    for found, given_ in (
        (numbers.target, pair.target),
        (numbers.draft, pair.draft),
        (numbers.target_path_probs, [pair.target_path_probs(depth) for depth in (*depths, len(depths))]),
        (numbers.draft_path_probs, [pair.draft_path_probs(depth) for depth in depths]),
    ):
        for level, expected in zip(found, given_, strict=True):
            assert all(isinstance(value, kind) for value in level.flat)
            assert (fractions_if_exact(level) == expected).all()


@given(pair=pairs())
def test_truncate_keeps_the_first_levels(pair: ModelPair) -> None:
    for length in range(1, pair.draft_length + 1):
        shorter = pair.truncate(length)
        assert (shorter.draft_length, len(shorter.target)) == (length, length + 1)
        assert all((a == b).all() for a, b in zip(shorter.target, pair.target, strict=False))
        assert pair.context_free or shorter.target[0] is pair.target[0]
    with pytest.raises(InvalidPairError, match=rf"expected 1\.\.{pair.draft_length}"):
        pair.truncate(pair.draft_length + 1)
    with pytest.raises(InvalidPairError, match="draft_length must be a whole number of at least 1, got 0"):
        pair.truncate(0)


def test_a_context_free_pair_holds_two_rows() -> None:
    """10^9 contexts and more: no method, copy or comparison makes an array of them; what would is refused."""
    pair = ModelPair.context_free_pair([0.25, 0.75], [0.5, 0.5], 40)
    exact = ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], 30)
    for same in (
        pickle.loads(pickle.dumps(pair)),
        pair.normalised(),
        ModelPair.from_document(pair.to_document()),
    ):
        assert same == pair
        assert same.target[40].shape == (2**40, 2)
    assert exact.to_float() == pair.truncate(30)
    assert exact.numbers.target[30][-1].tolist() == [fmpq(1, 4), fmpq(3, 4)]
    assert pair != ModelPair.context_free_pair([0.25, 0.75], [0.75, 0.25], 40)
    with pytest.raises(EnumerationTooLargeError, match="paths of 40 tokens, the limit is"):
        pair.draft_path_probs(2)
    with pytest.raises(EnumerationTooLargeError, match="paths of 40 tokens"):
        output_law("block", pair)
    with pytest.raises(InvalidPairError, match="rows depend on the context"):
        replace(pair, target=(pair.target[0][:, ::-1], *pair.target[1:]))
    with pytest.raises(EnumerationTooLargeError, match="2 tokens and draft length 62 have contexts"):
        ModelPair.context_free_pair([0.25, 0.75], [0.5, 0.5], 62)


def test_float_rows_may_be_off_by_rounding_and_no_more() -> None:
    """An exact row sums to 1 or is none."""
    pair = ModelPair.context_free_pair([0.5, 0.5 + 0.9e-9], [0.5, 0.5], 1)
    assert pair.row_defect == pytest.approx(0.9e-9, rel=1e-6)
    assert pair.normalised().target[0].sum() == pytest.approx(1, abs=1e-15)
    for row in ([0.5, 0.5 + 1.1e-9], ["1/2", "1/3"]):
        with pytest.raises(InvalidPairError, match="sums to"):
            ModelPair.context_free_pair(row, row, 1)


def test_a_pair_cannot_be_written_to() -> None:
    rows = np.array([[0.25, 0.75]])
    pair = ModelPair((rows, np.tile(rows, (2, 1))), (rows,), ("A", "B"))
    rows[0] = 0.5
    assert (pair.target[0] == [[0.25, 0.75]]).all()
    for level in (*pair.target, *pair.draft):
        with pytest.raises(ValueError, match="read-only"):
            level[0, 0] = 1
    for probs in (pair.target_path_probs(1), pair.draft_path_probs(1), pair.numbers.target_path_probs[1]):
        with pytest.raises(ValueError, match="read-only"):
            probs[0] = 1
    for numbers in (pair.numbers, instances.two_token(2).numbers):
        for level in (*numbers.target, *numbers.draft):
            with pytest.raises(ValueError, match="read-only"):
                level[0, 0] = 1


def test_plain_constructor_checks_its_arrays() -> None:
    pair = ModelPair.from_document(DOCUMENT)
    with pytest.raises(InvalidPairError, match="context_free is set"):
        ModelPair(pair.target, pair.draft, pair.vocab, context_free=True)
    with pytest.raises(InvalidPairError, match="Fractions or float64, got float32"):
        ModelPair(tuple(t.astype("float32") for t in pair.target), pair.draft, pair.vocab)


@given(pair=pairs(), depth=st.integers(0, 3))
def test_contexts_are_numbered_in_base_v(pair: ModelPair, depth: int) -> None:
    """(a_1, .., a_i) is row a_1 V^(i-1) + .. + a_i."""
    contexts = list(product(range(pair.vocab_size), repeat=depth))
    assert [pair.context(depth, number) for number in range(len(contexts))] == contexts
    assert [reference.number_of(pair, context) for context in contexts] == list(range(len(contexts)))


@pytest.mark.parametrize("depth", [-1, 1.0, 1.5, True, "1", None])
def test_path_probs_refuse_what_is_no_depth(depth: Any) -> None:
    pair = instances.two_token(2)
    for probs in (pair.target_path_probs, pair.draft_path_probs):
        with pytest.raises(InvalidPairError, match="depth must be a whole number of at least 0, got"):
            probs(depth)
        assert probs(0).tolist() == [1]
        assert len(probs(np.int64(1))) == 2


def test_path_probs_end_where_the_models_do() -> None:
    pair = instances.two_token(2)
    assert len(pair.target_path_probs(3)) == 8
    assert len(pair.draft_path_probs(2)) == 4
    with pytest.raises(InvalidPairError, match=r"the target has no paths of depth 4; expected 0\.\.3"):
        pair.target_path_probs(4)
    with pytest.raises(InvalidPairError, match=r"the draft has no paths of depth 3; expected 0\.\.2"):
        pair.draft_path_probs(3)


@given(pair=pairs(exact=True))
def test_to_float_rounds_every_entry(pair: ModelPair) -> None:
    rounded = pair.to_float()
    assert rounded.arithmetic == "float64"
    assert rounded.to_float() is rounded
    assert (rounded.vocab, rounded.context_free) == (pair.vocab, pair.context_free)
    for level, exact in zip((*rounded.target, *rounded.draft), (*pair.target, *pair.draft), strict=True):
        assert level.tolist() == [[float(entry) for entry in row] for row in exact]


def test_truncate_of_a_context_free_pair_is_the_shorter_instance() -> None:
    assert_same_pair(instances.two_token(3).truncate(2), instances.two_token(2))


def test_equal_pairs_have_equal_hashes() -> None:
    one, other = instances.two_token(2), instances.two_token(2)
    assert one == other
    assert len({one, other}) == 1
    assert len({one, instances.two_token(3)}) == 2


def test_rows_of_half_the_digits_are_refused_with_a_remedy() -> None:
    """A softmax in float32 sums to 1 within 1e-7; exact rows get no such advice."""
    row = np.exp(np.arange(5, dtype=np.float32))
    row = (row / row.sum()).astype(float)
    row[0] += 3e-8
    with pytest.raises(InvalidPairError, match="divide it by its sum in float64, as normalise=True "):
        ModelPair.context_free_pair(row, row, draft_length=1)
    pair = ModelPair.context_free_pair(row, row, draft_length=1, normalise=True)
    assert pair.target[0].sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(InvalidPairError, match=r"sums to 5/6, not 1$"):
        ModelPair.context_free_pair(["1/2", "1/3"], ["1/2", "1/2"], draft_length=1)


def test_rows_without_mass_cannot_be_normalised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "SUM_TOLERANCE", 1.0)
    pair = ModelPair.context_free_pair([0.0, 0.0], [0.5, 0.5], 1)
    with pytest.raises(InvalidPairError, match="a row sums to 0"):
        pair.normalised()


def test_a_pair_drafts_at_least_one_token() -> None:
    row = np.array([[0.5, 0.5]])
    with pytest.raises(InvalidPairError, match="draft_length must be a whole number of at least 1, got 0"):
        ModelPair((row,), (), ("A", "B"))


def test_how_far_rows_are_from_sums_of_one() -> None:
    """Nothing in rationals, in floats the largest distance of all rows, also of a context-free pair."""
    pair = instances.sticky_chain(2)
    assert pair.row_defect == 0
    assert 0 <= pair.to_float().row_defect < 1e-15
    off = ModelPair.context_free_pair([0.5, 0.5], [0.25, 0.75 + 5e-10], 1)
    assert off.row_defect == pytest.approx(5e-10, rel=1e-6)

"""The strategies give pairs of the size and arithmetic asked for, and reach the corners."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from deep import first_is_quick
from spectheory.pairs.pair import ModelPair
from spectheory.testing import strategies


@given(st.integers(1, 5).flatmap(strategies.rows))
def test_rows_are_laws(row: list[Fraction]) -> None:
    assert sum(row) == 1
    assert min(row) >= 0


@given(strategies.pairs(max_vocab_size=4, max_draft_length=3))
def test_pairs_have_the_size_asked_for(pair: ModelPair) -> None:
    """Every row is a law; V <= 4, L <= 3."""
    assert pair.vocab_size <= 4
    assert pair.draft_length <= 3
    for level in (*pair.target, *pair.draft):
        assert np.abs(level.sum(axis=1) - 1).max() <= (0 if pair.is_exact else 1e-15)


def has_zero(pair: ModelPair) -> bool:
    return pair.vocab_size > 1 and any((level == 0).any() for level in pair.draft)


def has_tie(pair: ModelPair) -> bool:
    """Two tokens with mass and the same p/q at the root, in rows that differ."""
    p, q = pair.target[0][0], pair.draft[0][0]
    ties = [p[i] * q[j] == p[j] * q[i] and q[i] * q[j] > 0 for i in range(len(p)) for j in range(i)]
    return any(ties) and bool((p != q).any())


@pytest.mark.parametrize(
    "corner",
    [has_zero, has_tie, lambda pair: pair.context_free, lambda pair: not pair.context_free],
    ids=["zero", "tie", "context-free", "a row per context"],
)
def test_corners_are_reached(corner: object) -> None:
    """Reached is enough: the example is not made smaller."""
    generate = settings(max_examples=2000, database=None, phases=[Phase.generate])
    find(strategies.pairs(exact=True), corner, settings=generate)


@first_is_quick("exact", [True, False])
def test_the_arithmetic_asked_for_is_the_only_one(exact: bool) -> None:
    """The partner: without an argument both occur."""
    with pytest.raises(NoSuchExample):
        find(
            strategies.pairs(exact=exact),
            lambda pair: pair.is_exact != exact,
            settings=settings(database=None),
        )
    find(strategies.pairs(), lambda pair: pair.is_exact == exact, settings=settings(database=None))

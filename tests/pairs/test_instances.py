"""Named and random pairs: what their names and docstrings say of them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.pairs.pair import ModelPair

F = Fraction


def levels(pair: ModelPair) -> tuple[np.ndarray, ...]:
    return (*pair.target, *pair.draft)


def is_equal(pair: ModelPair, other: ModelPair) -> bool:
    return all((a == b).all() for a, b in zip(levels(pair), levels(other), strict=True))


@pytest.mark.parametrize("name", instances.NAMED)
def test_named_pairs_are_exact_at_every_length(name: str) -> None:
    """Rows of Fractions that sum to 1; a shorter pair is the longer one cut."""
    for length in (1, 2, 3):
        pair = instances.NAMED[name](length)
        assert pair.is_exact
        assert pair.draft_length == length
        assert all((level.sum(axis=1) == 1).all() for level in levels(pair))
    assert is_equal(instances.NAMED[name](3).truncate(2), instances.NAMED[name](2))


def test_what_the_names_say() -> None:
    for name in ("equal_models", "uniform_equal"):
        pair = instances.NAMED[name](1)
        assert (pair.target[0] == pair.draft[0]).all()
    disjoint, overlap = instances.disjoint_supports(1), instances.partial_overlap(1)
    assert (disjoint.target[0] * disjoint.draft[0] == 0).all()
    assert (overlap.target[0] * overlap.draft[0] > 0).sum() == 2
    assert {value for level in levels(instances.point_masses(3)) for value in level.ravel()} == {F(0), F(1)}
    reversed_pair = instances.three_token_reversed(1)
    assert reversed_pair.target[0][0].tolist() == reversed_pair.draft[0][0].tolist()[::-1]


def test_markov_rows_depend_on_the_last_token_only() -> None:
    for pair, is_markov in ((instances.sticky_chain(3), True), (instances.random_rational(1, 2, 3), False)):
        rows: dict[tuple[int, int], set[tuple[F, ...]]] = {}
        for model, side in enumerate((pair.target, pair.draft)):
            for level in side[1:]:
                for number, row in enumerate(level):
                    rows.setdefault((model, number % 2), set()).add(tuple(row))
        assert all(len(found) == 1 for found in rows.values()) == is_markov


@pytest.mark.parametrize(
    "build", [instances.random_float, instances.random_rational, instances.tiny_probabilities]
)
def test_random_pairs_are_their_seed(build: object) -> None:
    """The same seed gives the same pair, another seed another; rows sum to 1."""
    pair, again, other = (build(seed, 3, 2) for seed in (5, 5, 6))  # type: ignore[operator]
    assert is_equal(pair, again)
    assert not is_equal(pair, other)
    for level in levels(pair):
        assert np.abs(level.sum(axis=1) - 1).max() <= (0 if pair.is_exact else 1e-15)


@pytest.mark.parametrize("build", [instances.random_float, instances.random_rational])
def test_what_cannot_be_held_is_refused_before_it_is_drawn(build: Any) -> None:
    """2.5 billion probabilities; partner: the largest pair of one token is drawn."""
    with pytest.raises(
        EnumerationTooLargeError,
        match=r"length 1 has a level of at least 2500000000 probabilities \(20000000000 bytes\)",
    ):
        build(0, 50_000, 1)
    assert build(0, 1, 30).draft_length == 30


def test_early_stop_row_by_row() -> None:
    """Statement 4.10: forced to 0 up to depth 2L - 1 but for two rows; elsewhere (1, 0) against (0, 1)."""
    pair, zero, one, mostly = instances.early_stop(3), [1, 0], [0, 1], [Fraction(3, 4), Fraction(1, 4)]
    for depth, (target, draft) in enumerate(zip(pair.target, pair.draft, strict=False)):
        expected = {3: (mostly, zero), 4: (zero, mostly)}.get(
            depth, (zero, zero) if depth < 6 else (zero, one)
        )
        assert (target[0].tolist(), draft[0].tolist()) == expected, depth
        for other_target, other_draft in zip(target[1:].tolist(), draft[1:].tolist(), strict=True):
            assert (other_target, other_draft) == (zero, one), depth

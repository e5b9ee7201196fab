"""Named and random pairs: what their names and docstrings say of them."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
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


@pytest.mark.parametrize(
    ("make", "length"),
    [
        (instances.two_token, 2), (instances.three_token_reversed, 2), (instances.equal_models, 2),
        (instances.disjoint_supports, 2), (instances.point_masses, 2), (instances.two_residual_tokens, 2),
        (instances.partial_overlap, 2), (instances.sticky_chain, 2), (instances.uniform_equal, 1),
        (instances.rarely_drafted, 1),
        (partial(instances.bernoulli, "1/4", "1/2"), 1), (partial(instances.uniform, 4, 2), 1),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_the_draft_length_that_is_not_given(make: Any, length: int) -> None:
    """As the signatures say; the pair is the one of this length, and not another one."""
    assert make().draft_length == length
    assert is_equal(make(), make(length))
    assert make(length + 1).draft_length == length + 1


def test_uniform_pairs() -> None:
    """spectr2023 App. B.1: the target is uniform on d/r of the d tokens; r must divide d."""
    pair = instances.uniform(6, 3)
    assert pair.target[0][0].tolist() == [F(1, 2)] * 2 + [F(0)] * 4
    assert pair.draft[0][0].tolist() == [F(1, 6)] * 6
    with pytest.raises(InvalidInputError, match="ratio must divide support, got support 6 and ratio 4"):
        instances.uniform(6, 4)


def test_what_random_pairs_are_made_of() -> None:
    plain = instances.random_rational(3, 4, 3, zero_probability=0, equal_row_probability=0)
    assert all((level > 0).all() for level in levels(plain))
    same = instances.random_rational(3, 4, 3, equal_row_probability=1)
    assert all((p == q).all() for p, q in zip(same.target[:-1], same.draft, strict=True))
    assert min(level.min() for level in levels(instances.tiny_probabilities(2, 4, 3))) < F(1, 10**8)
    agreeing = instances.random_float(1, 3, 2, agreement=1.0)
    assert all((p == q).all() for p, q in zip(agreeing.target[:-1], agreeing.draft, strict=True))
    for build in (
        lambda: instances.two_token(0),
        lambda: instances.random_rational(0, 0, 2),
        lambda: instances.random_rational(0, 2, 1, max_weight=0),
    ):
        with pytest.raises(InvalidInputError, match="must be a whole number of at least 1, got 0"):
            build()
    for agreement in (-0.1, 1.5, float("nan")):
        with pytest.raises(InvalidInputError, match="agreement must lie in"):
            instances.random_float(1, 2, 1, agreement=agreement)
    with pytest.raises(InvalidInputError, match="concentration must be"):
        instances.random_float(1, 2, 1, concentration=0)

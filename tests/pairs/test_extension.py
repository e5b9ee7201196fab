"""Rows behind a text: of a deep pair, and of one that is continued."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.extension import ExtendedPair
from spectheory.pairs.instances import random_rational, sticky_chain, two_token
from spectheory.pairs.pair import ModelPair


def test_a_deep_pair_is_read_where_it_stands() -> None:
    pair = random_rational(5, 3, 3)
    models = ExtendedPair(pair, draft_length=2)
    assert models.memory is None
    assert models.follow((1, 2), 0) == (1, 2, 0)
    levels = models.levels_below(pair.target, (2,), 3)
    for depth, level in enumerate(levels):
        last = level.shape[0]
        assert (level == pair.target[depth + 1][2 * last : 3 * last]).all()
    models.check_depth(3)
    with pytest.raises(InvalidInputError, match=r"pair of draft length 4, and this one has 3.*fewer calls"):
        models.check_depth(4, "calls")


def test_a_markov_pair_goes_on_for_ever() -> None:
    pair = sticky_chain(2)
    models = ExtendedPair(pair, memory=1)
    models.check_depth(10**6)
    assert (models.draft_length, models.follow((0, 1), 0)) == (2, (0,))
    assert (models.row(pair.target, (0, 1, 1, 0)) == pair.target[1][0]).all()
    below = models.levels_below(pair.draft, (1,), 2)
    assert (below[1] == np.stack([pair.draft[1][0], pair.draft[1][1]])).all()


def test_memory_that_the_rows_do_not_have_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"target row at context \([01],\) differs .* last 0 tokens"):
        ExtendedPair(sticky_chain(2), memory=0)
    with pytest.raises(InvalidInputError, match="needs the draft rows after 2 tokens"):
        ExtendedPair(sticky_chain(2), memory=2)
    with pytest.raises(InvalidInputError, match="draft_length"):
        ExtendedPair(two_token(2), draft_length=0)


def test_two_tokens_are_remembered() -> None:
    """Of three tokens each: no row looks at more, and one that does is found."""

    def row(context: tuple[int, ...]) -> list[Fraction]:
        weight = 2 + sum((place * token for place, token in enumerate(context[-2:], 1)), 0)
        return [Fraction(1, weight), Fraction(1, 2 * weight), 1 - Fraction(3, 2 * weight)]

    rows = {context: row(context) for depth in range(4) for context in product(range(3), repeat=depth)}
    draft = {context: row(()) for context in rows if len(context) < 3}
    assert ExtendedPair(ModelPair.from_contexts(rows, draft, 3), memory=2).memory == 2
    changed = ModelPair.from_contexts(rows | {(2, 2, 2): row(())}, draft, 3)
    with pytest.raises(InvalidInputError, match=r"target row at context \(2, 2, 2\) .* last 2 tokens"):
        ExtendedPair(changed, memory=2)
    forgets = {context: row(context[-1:]) for context in rows}
    looks = {context: row(context) for context in draft}
    with pytest.raises(InvalidInputError, match=r"draft row at context \(.*\) .* last 1 tokens"):
        ExtendedPair(ModelPair.from_contexts(forgets, looks, 3), memory=1)
    assert ExtendedPair(ModelPair.from_contexts(forgets, draft, 3), memory=1).memory == 1

"""Stated laws: the mixture and its inverse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from spectheory import instances
from spectheory.audit.relaxations import Mixture
from spectheory.errors import InvalidInputError


def test_the_rows_behind_a_mixture_are_found_again() -> None:
    """p out of v and q at drafted positions; the last row is the target's own."""
    pair = instances.sticky_chain(2)
    stated = Mixture(Fraction(1, 3)).stated(pair)
    for depth in range(2):
        assert (stated.target[depth] == pair.target[depth] / 3 + pair.draft[depth] * Fraction(2, 3)).all()
    assert (stated.target[2] == pair.target[2]).all()
    given = np.stack([stated.target[depth][:1] for depth in range(3)], axis=1)
    drafted = np.stack([pair.draft[depth][:1] for depth in range(2)], axis=1)
    wanted = np.stack([pair.target[depth][:1] for depth in range(3)], axis=1)
    assert (Mixture(Fraction(1, 3)).target_rows(given, drafted) == wanted).all()


@pytest.mark.parametrize("weight", [Fraction(0), Fraction(-1), Fraction(3, 2)])
def test_weights_that_are_none(weight: Fraction) -> None:
    with pytest.raises(InvalidInputError, match="must lie above 0"):
        Mixture(weight)


def test_the_weight_is_in_the_words() -> None:
    assert Mixture(Fraction(1, 4)).words == "tokens at drafted positions have the law 1/4 p + 3/4 q"

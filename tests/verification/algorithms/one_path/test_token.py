"""token on one path, by hand.  Its law on all paths is acted out in test_law.py."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pair_support import rows_on
from spectheory import instances
from spectheory.verification.algorithms.one_path.token import Token

F = Fraction


def test_steps_by_hand() -> None:
    """Two-token pair, path A A: h = (1/2, 1/2), stops 1/2, 1/4, 1/4; Y = B, B, and p at the end."""
    outcome = Token().outcome(*rows_on(instances.two_token(2), [(0, 0)]))
    assert outcome.stop_probs.tolist() == [[[F(1, 2), F(1, 4), F(1, 4)]]]
    corrections = [outcome.correction(np.array([0]), np.array([length]))[0].tolist() for length in range(3)]
    assert corrections == [[0, 1], [0, 1], [F(1, 3), F(2, 3)]]


def test_only_the_first_path_is_looked_at() -> None:
    """The second path changes nothing, the first does."""
    pair = instances.two_token(2)
    one, other, swapped = (
        Token().outcome(*rows_on(pair, paths)).stop_probs
        for paths in ([(0, 0), (0, 1)], [(0, 0), (1, 1)], [(1, 1), (0, 0)])
    )
    assert (one == other).all()
    assert (one[:, 1] == 0).all()
    assert (one != swapped).any()

"""token on one path, by hand.  Its law on all paths is acted out in test_law.py."""

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

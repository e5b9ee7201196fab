"""token and block on one path, by hand.  Their laws on all paths are acted out in test_law.py."""

from fractions import Fraction

import numpy as np

from pair_support import rows_on
from spectheory import instances
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.one_path.token import Token

F = Fraction


def test_token_by_hand() -> None:
    """Two-token pair, path A A: h = (1/2, 1/2), stops 1/2, 1/4, 1/4; Y = B, B, and p at the end."""
    outcome = Token().outcome(*rows_on(instances.two_token(2), [(0, 0)]))
    assert outcome.stop_probs.tolist() == [[[F(1, 2), F(1, 4), F(1, 4)]]]
    corrections = [outcome.correction(np.array([0]), np.array([length]))[0].tolist() for length in range(3)]
    assert corrections == [[0, 1], [0, 1], [F(1, 3), F(2, 3)]]


def test_block_by_hand() -> None:
    """Two-token pair, L = 2 (block2024 section 2): w, S and h of Eq. 5 on the four paths.

    A A: w = 1, 1/2, 1/4; S_1 = 0, so h = (0, 1/4).  A B: w_2 = 1: accepted whole, though A alone is not.
    B A: w = 1, 1, 1/2; S_1 = 1/3 = S_1 / (0 + S_1) gives h_1 = 1.
    """
    paths = {
        (0, 0): [F(3, 4), F(0), F(1, 4)],
        (0, 1): [F(0), F(0), F(1)],
        (1, 0): [F(0), F(1, 2), F(1, 2)],
        (1, 1): [F(0), F(0), F(1)],
    }
    for path, stops in paths.items():
        outcome = Block().outcome(*rows_on(instances.two_token(2), [path]))
        assert outcome.stop_probs[0, 0].tolist() == stops, path
    outcome = Block().outcome(*rows_on(instances.two_token(2), [(0, 0)]))
    corrections = [outcome.correction(np.array([0]), np.array([length]))[0].tolist() for length in (0, 2)]
    assert corrections == [[0, 1], [F(1, 3), F(2, 3)]]

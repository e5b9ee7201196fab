"""One step of distribution modification; whole iterations are in test_iteration.py."""

from fractions import Fraction

import numpy as np

from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.verification.modification import modified_rows


def test_rows_that_are_undefined_stay_as_they_were() -> None:
    """max(p(a, x) - q(a, x), 0), normalised (block2024 Eq. 31): 1/2 - 1/8 and 1/2 - 3/8 in the first row; no
    excess in the second."""
    rows = np.array([[Fraction(1, 2)] * 2] * 2)
    draft = np.array([[Fraction(1, 4), Fraction(3, 4)]] * 2)
    probs = np.array([Fraction(1), Fraction(1, 8)])
    halves = np.array([Fraction(1, 2)] * 2)
    found = modified_rows(GreedyBlock().modified_target_rows, rows, draft, probs, halves, 1)
    assert found.tolist() == [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 2)] * 2]

"""Draw answers until the bets are won or the largest number of draws is reached."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from spectheory.auditing.drawing.bets import Bets
from spectheory.auditing.drawing.power import distance_threshold, seen_with


class Drawn(NamedTuple):
    """Result of a test by draws.  Draws can show that a sampler is wrong, but never that it is right.

    Attributes:
        rejected: True if the draws show that the sampler does not have the wanted law.
        draws: the number of answers.
        log10_stake: logarithm of the stake of the bets; 6 stands for a stake of a million.
        distance: total variation of the completed answers from the wanted law.
        undefined: the share of answers without a valid output.
        seen: the test rejects every law at this total variation or more, with probability 0.99.
    """

    rejected: bool
    draws: int
    log10_stake: float
    distance: float
    undefined: float
    seen: float


def draw_and_judge(
    answer: Callable[[], Sequence[int]],
    wanted: np.ndarray,
    vocab_size: int,
    length: int,
    *,
    most: int,
    risk: float,
) -> Drawn:
    """Test a sampler against a law.

    We spend half of the risk on the bets, and half on the distance of all draws.

    Args:
        answer: draws the tokens of one answer.  () stands for an answer without a valid output.
        wanted: the probabilities of completed outputs of L+1 tokens, [V^(L+1)].
        vocab_size: V.
        length: L+1.
        most: the number of draws, unless the bets are won earlier.
        risk: the probability that a right sampler is rejected.

    Example:
        >>> drawn = draw_and_judge(lambda: (1,), np.array([0.5, 0.5]), 2, 1, most=1_000, risk=1e-6)
        >>> drawn.rejected, drawn.draws < 40
        (True, True)
    """
    bets = Bets(wanted, vocab_size, length)
    rejected = False
    while bets.draws < most and not rejected:
        bets.see(answer())
        rejected = bets.log_stake >= math.log(2 / risk)
    rejected |= bets.draws == most and bets.distance > distance_threshold(wanted, most, risk / 2)
    return Drawn(
        rejected,
        bets.draws,
        bets.log_stake / math.log(10),
        bets.distance,
        bets.undefined / max(bets.draws, 1),
        seen_with(wanted, most, risk / 2),
    )

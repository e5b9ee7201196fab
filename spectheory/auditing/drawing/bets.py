"""Test a sampler by its draws, with a test that may stop at any time.

We bet against the law p that the answers should have.  Every answer y multiplies the stake by q(y) / p(y).
Here q is a mixture of Dirichlet posteriors around p, computed before y is drawn.  If the sampler has the law
p, the stake is a martingale that starts at 1.  The probability that it ever reaches 1 / α is at most α
(Ville), for every stopping rule.

An answer is a prefix of a completed output.  Its factor is q(prefix) / p(prefix), the mean over the
completions, which avoids their noise.
"""

import math
from collections.abc import Sequence

import numpy as np

STRENGTHS = (4.0, 32.0, 256.0)
"""Weight of p in each Dirichlet posterior, in draws.

A small weight wins on large differences, a large weight on small differences.
"""


class Bets:
    """The stake against a law, after the answers so far.

    Args:
        wanted: the probabilities of completed outputs of L+1 tokens, [V^(L+1)].
        vocab_size: V.
        length: L+1.

    Attributes:
        draws: the number of answers so far.

    Example:
        >>> bets = Bets(np.array([0.5, 0.5]), vocab_size=2, length=1)
        >>> for _ in range(100):
        ...     bets.see((1,))
        >>> bets.log_stake > math.log(1e6)
        True
    """

    def __init__(self, wanted: np.ndarray, vocab_size: int, length: int) -> None:
        self.wanted, self.vocab_size, self.length = np.asarray(wanted, dtype=float), vocab_size, length
        self.draws = self.undefined = 0
        self._counts = np.zeros_like(self.wanted)
        self._logs = np.zeros(len(STRENGTHS))

    def see(self, tokens: Sequence[int]) -> None:
        """Bet on one answer.  () stands for an answer without a valid output."""
        self.draws += 1
        place = 0
        for token in tokens:
            place = place * self.vocab_size + token
        width = self.vocab_size ** (self.length - len(tokens))
        block = slice(place * width, (place + 1) * width)
        mass = float(self.wanted[block].sum()) if tokens else 0.0
        if mass <= 0:  # impossible under the wanted law
            self._logs[:] = math.inf
            self.undefined += not tokens
            return
        seen, before = self._counts[block].sum(), self.draws - 1 - self.undefined
        for number, strength in enumerate(STRENGTHS):
            self._logs[number] += math.log((strength * mass + seen) / ((strength + before) * mass))
        self._counts[block] += self.wanted[block] / mass

    @property
    def log_stake(self) -> float:
        """The logarithm of the mean of the stakes of all ``STRENGTHS``."""
        most = float(self._logs.max())
        return most if math.isinf(most) else most + math.log(np.exp(self._logs - most).mean())

    @property
    def law(self) -> np.ndarray:
        """The observed share of every completed output.  We complete answers with the wanted law."""
        return self._counts / max(self.draws, 1)

    @property
    def distance(self) -> float:
        """The total variation of ``law`` from the wanted law."""
        missing = self.undefined / max(self.draws, 1)
        return float(np.abs(self.law - self.wanted).sum() + missing) / 2

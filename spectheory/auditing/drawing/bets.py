"""A test of a sampler by its draws, which may stop at any time.

We bet against the law that the answers should have.  The stake grows by q(y) / p(y) with every answer y,
where p is the wanted law and q is a mixture of Dirichlet posteriors around p, known before y is drawn.  If
the sampler has the law p, the stake is a martingale that starts at 1: it ever reaches 1 / α with probability
at most α (Ville), whatever the rule of stopping.

An answer is a prefix of a completed output, and its factor is q(prefix) / p(prefix): the mean over the
completions, without their noise.
"""

import math
from collections.abc import Sequence

import numpy as np

STRENGTHS = (4.0, 32.0, 256.0)
"""For how many draws p counts in a Dirichlet posterior: few win on large differences, many on small ones."""


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
        """One answer; () for an answer without a valid output."""
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
        """The logarithm of the mean stake of the strengths."""
        most = float(self._logs.max())
        return most if math.isinf(most) else most + math.log(np.exp(self._logs - most).mean())

    @property
    def law(self) -> np.ndarray:
        """The share of every completed output; answers are completed by the wanted law."""
        return self._counts / max(self.draws, 1)

    @property
    def distance(self) -> float:
        """The total variation of that law from the wanted one."""
        missing = self.undefined / max(self.draws, 1)
        return float(np.abs(self.law - self.wanted).sum() + missing) / 2

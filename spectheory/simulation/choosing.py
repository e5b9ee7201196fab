"""Choose among measured candidates, and compute intervals for the candidates that are reported.

A candidate decodes B tokens per call, a mean over all calls of its texts.  A call costs c calls of plain
decoding, a median over rounds.  Its speed is B / c.

**Choice.**  The leader has the largest measured speed.  A candidate is *slower* if the lower end of the
interval of ρ B - B' is positive, for both ends of the interval of ρ = c' / c.  Here B and c belong to the
leader, B' and c' to the candidate.  Tokens are paired by prompt, and costs by round.  All other candidates
are tied with the leader.  With n candidates each comparison has the level (1 - confidence) / (n - 1).  The
fastest candidate is then among the tied ones with the stated confidence (Bonferroni).  We choose the tied
candidate with the fewest target rows.

**Report.**  With m candidates each interval of B and of c has the level (1 - confidence) / 2 m, so that all
intervals hold together.  They use other prompts and other rounds than the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spectheory.simulation.cost import median_interval
from spectheory.simulation.estimates import Tally, clustered, estimate_over_texts, paired_gain

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Trial:
    """Measurements of one candidate.

    Attributes:
        target_rows: number of drafted tokens that a call of the target scores.
        tally: sums over all calls, by prompt.  The prompts are the same for all candidates.
        costs: [rounds], cost of a call; the unit is one call of plain decoding.  The rounds are the same
            for all candidates.  If all entries are equal, the cost is exact.
    """

    target_rows: int
    tally: Tally
    costs: np.ndarray

    @property
    def tokens(self) -> float:
        """Tokens per target call."""
        return clustered(self.tally.expected, self.tally.draws)[0]

    @property
    def cost(self) -> float:
        return float(np.median(self.costs))

    @property
    def speed_up(self) -> float:
        """Tokens decoded in the time of one call of plain decoding, which decodes 1 token."""
        return self.tokens / self.cost


class Intervals(NamedTuple):
    """Intervals of one candidate for tokens per call, cost of a call, and speed."""

    tokens: Interval
    cost: Interval
    speed_up: Interval


def choose(trials: Sequence[Trial], confidence: float) -> list[int]:
    """List the indices of the candidates tied with the leader, the chosen one first.

    Args:
        trials: measurements of at least one candidate.
        confidence: probability that the fastest candidate is among the tied ones.
    """
    leader, *others = by_speed(trials)
    level = (1 - confidence) / max(len(others), 1)
    tied = [leader, *(other for other in others if not is_faster(trials[leader], trials[other], level))]
    return sorted(tied, key=lambda number: trials[number].target_rows)


def by_speed(trials: Sequence[Trial]) -> list[int]:
    """List the indices of the candidates in descending order of speed."""
    return sorted(range(len(trials)), key=lambda number: -trials[number].speed_up)


def is_faster(one: Trial, other: Trial, level: float) -> bool:
    """Whether the measurements show that ``one`` is faster than ``other``.

    Args:
        level: If ``other`` is as fast as ``one``, the largest probability of the answer True.
    """
    ratios = other.costs / one.costs
    of_tokens = level / 2 if np.ptp(ratios) else level
    return all(
        paired_gain([one.tally], [other.tally], 1 - 2 * of_tokens, factor=end).interval[0] > 0
        for end in {*median_interval(ratios, level - of_tokens)}
        if end < np.inf
    )


def report(trials: Sequence[Trial], confidence: float) -> list[Intervals]:
    """Compute intervals of some candidates that hold together with probability ``confidence``.

    Args:
        trials: measurements with prompts and rounds that were not used to choose the candidates.
    """
    found, level = [], (1 - confidence) / len(trials)
    for trial in trials:
        of_tokens = level / 2 if np.ptp(trial.costs) else level
        tokens = estimate_over_texts(("", None, 0), [trial.tally], 1 - of_tokens).interval
        cheap, dear = median_interval(trial.costs, level / 2)
        speed_up = tokens[0] / dear, tokens[1] / cheap if cheap else float("inf")
        found.append(Intervals(tokens, (cheap, dear), speed_up))
    return found

"""Choosing among candidates by what was measured of them, and intervals of the few that are reported.

A candidate earns B tokens per call, a ratio over the calls of the texts behind some prompts, and a call
costs c plain calls, a median over rounds.  Its speed is B / c.

**Choice.**  The leader has the largest measured speed.  A candidate is *behind* if the spread supports the
lead: ρ B - B' > 0 with the lower end of its interval, for both ends of the interval of ρ = c' / c.  Here B, c
are the leader's and B', c' those of the candidate.  Tokens are compared in pairs of the same prompts, and
costs in pairs of the same rounds.  All others are tied with the leader.  With n candidates each comparison
has the level (1 - confidence) / (n - 1), so that the fastest candidate is among the tied ones with the
confidence stated (Bonferroni).  The choice has the fewest target rows of these.

**Report.**  Of m candidates each interval of B and of c has the level (1 - confidence) / 2 m.  So all
intervals of all of them hold together.  They are those of other prompts and of other rounds than the choice.
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
    """What was measured of one candidate.

    Attributes:
        target_rows: the drafted tokens that a call of the target scores.
        tally: the calls of its texts, by prompt; the prompts are the same for all candidates.
        costs: of a call, in plain calls, [rounds], in the same rounds for all; equal numbers are exact.
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
        """Tokens per plain call."""
        return self.tokens / self.cost


class Intervals(NamedTuple):
    """The intervals of one candidate: tokens per call, the cost of a call, and the speed."""

    tokens: Interval
    cost: Interval
    speed_up: Interval


class Choice(NamedTuple):
    """The numbers of the candidate chosen, and of all that are tied with the leader, the fastest first."""

    chosen: int
    tied: list[int]


def choose(trials: Sequence[Trial], confidence: float) -> Choice:
    """The candidate with the fewest rows of those that are not shown to be slower than the leader.

    Args:
        trials: of the candidates, at least one.
        confidence: that the fastest candidate is among the tied ones.
    """
    leader, *others = by_speed(trials)
    level = (1 - confidence) / max(len(others), 1)
    tied = [leader, *(other for other in others if not is_faster(trials[leader], trials[other], level))]
    return Choice(min(tied, key=lambda number: trials[number].target_rows), tied)


def by_speed(trials: Sequence[Trial]) -> list[int]:
    """The numbers of the candidates, the fastest first."""
    return sorted(range(len(trials)), key=lambda number: -trials[number].speed_up)


def is_faster(one: Trial, other: Trial, level: float) -> bool:
    """Whether the lead of one candidate over another is supported.

    Args:
        level: the largest probability that it is supported although the other one is as fast.
    """
    ratios = other.costs / one.costs
    of_tokens = level / 2 if np.ptp(ratios) else level
    return all(
        paired_gain([one.tally], [other.tally], 1 - 2 * of_tokens, factor=end).interval[0] > 0
        for end in {*median_interval(ratios, level - of_tokens)}
        if end < np.inf
    )


def report(trials: Sequence[Trial], confidence: float) -> list[Intervals]:
    """The intervals of some candidates, which all hold together with the confidence.

    Args:
        trials: of prompts and rounds that did not choose these candidates.
    """
    found, level = [], (1 - confidence) / len(trials)
    for trial in trials:
        of_tokens = level / 2 if np.ptp(trial.costs) else level
        tokens = estimate_over_texts(("", None, 0), [trial.tally], 1 - of_tokens).interval
        cheap, dear = median_interval(trial.costs, level / 2)
        speed_up = tokens[0] / dear, tokens[1] / cheap if cheap else float("inf")
        found.append(Intervals(tokens, (cheap, dear), speed_up))
    return found

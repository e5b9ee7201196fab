"""Bound by fresh calls how often a learned function is wrong.

We fix the learned function g before the test.  The test calls the true function f at n new points, drawn from
the law of the numbers.  If no answer differs, P(f != g) <= 1 - risk^(1/n) with confidence 1 - risk.  This is
about 13.8 / n at confidence 1 - 10^-6.  The total variation of the laws of f and g is at most P(f != g).

If an answer differs, we correct g and begin another stage.  Stage s has the risk r / (s (s+1)); the sum of
these risks is r.  If g cannot be corrected, we count its wrong answers and use the Clopper-Pearson bound.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Generic, TypeVar

from spectheory.auditing.handing.numbers import mix
from spectheory.auditing.probing.learning import Learner

T = TypeVar("T", bound=Hashable)
MOST_STAGES = 12
"""In the last stage wrong answers are counted; a tree that is wrong so often has no finite form."""


@dataclass(frozen=True)
class Probed(Generic[T]):
    """The learned laws, and the bound on their error.

    Attributes:
        laws: the probability of every answer, per part.
        within: upper bound on the total variation of the learned law from the true law.
        learned, points, mismatches: the numbers of calls for learning, of calls in the last test, and of
            wrong answers in that test.
    """

    laws: list[dict[T, Fraction]]
    within: float
    learned: int
    points: int
    mismatches: int


def points_needed(within: float, risk: float) -> int:
    """Number of test points: if g is wrong with probability ``within``, all agree with probability <= risk.

    Example:
        >>> points_needed(0.002, 1e-6)
        6901
    """
    return math.ceil(math.log(risk) / math.log1p(-within))


def wrong_at_most(points: int, mismatches: int, risk: float) -> float:
    """Upper end of the Clopper-Pearson interval for a probability, at confidence 1 - risk.

    Example:
        >>> round(wrong_at_most(10_000, 0, 1e-6), 5), round(wrong_at_most(10_000, 10, 1e-6), 5)
        (0.00138, 0.00344)
    """
    from scipy.special import betaincinv

    if mismatches == points:
        return 1.0
    if not mismatches:
        return -math.expm1(math.log(risk) / points)
    return float(betaincinv(mismatches + 1, points - mismatches, 1 - risk))


def risk_of_stage(risk: float, stage: int) -> float:
    """Share of the risk for one stage.  The shares of all stages 1, 2, .. sum to the risk."""
    return risk / (stage * (stage + 1))


def probe(
    parts: Sequence[tuple[float, Callable[[int], T]]], within: float, risk: float, budget: int, seed: int = 0
) -> Probed[T]:
    """Learn the laws of functions of handed numbers, and bound the error by fresh calls.

    Args:
        parts: functions, (seed) -> a hashable answer inside ``handing``, such as a sampler on one tuple of
            drafts; each after the probability that it is called.
        within: the bound to reach.  It is missed if the last test still finds wrong answers.
        risk: the probability that the bound is wrong.
        budget: the largest number of calls for learning.
        seed: seed of the points.

    Raises:
        NotHandedError: the answer of a part is not a function of the numbers.
        BudgetSpentError: the budget is too small to learn the laws.
    """
    learners = [Learner(function, budget, mix(seed, number)) for number, (_, function) in enumerate(parts)]

    def learned() -> int:
        return sum(learner.calls for learner in learners)

    for learner in learners:
        learner.budget = budget - learned()
        learner.learn()
    tested = 0
    ends = list(accumulate(probability for probability, _ in parts))
    for stage in range(1, MOST_STAGES + 1):
        points = points_needed(within, risk_of_stage(risk, stage))
        mismatches = 0
        for _ in range(points):
            tested += 1
            learner = learners[bisect(ends, mix(seed, 2, tested) / 2**64 * ends[-1], hi=len(ends) - 1)]
            point = learner.new_point(learner.root)
            learner.budget = learner.calls + 1
            run = learner.at(point)
            leaf = learner.root.leaf_of(point)
            if run.label != leaf.label:
                mismatches += 1
                if stage < MOST_STAGES:
                    learner.budget = learner.calls + budget - (learned() - tested)
                    if learner.refine(leaf, (point, run)):
                        break
        else:
            break
    bound = wrong_at_most(points, mismatches, risk_of_stage(risk, stage))
    laws = [learner.root.law() for learner in learners]
    return Probed(laws, bound, learned() - tested, points, mismatches)

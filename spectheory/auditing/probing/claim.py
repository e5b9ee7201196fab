"""What fresh calls say about a learned function: a bound on how often it is wrong.

The function g that was learned is fixed before the test.  The test calls f at n new points, drawn by the law
of the numbers.  If no answer differs, P(f != g) <= 1 - risk^(1/n) with confidence 1 - risk, about 13.8 / n at
1 - 10^-6.  The total variation of the laws of f and g is at most P(f != g).

An answer that differs mends g and begins another stage.  Stage s has the risk r / (s (s+1)), which sum to r.
Where g cannot be mended, its wrong answers are counted, and the bound is that of Clopper and Pearson.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from spectheory.auditing.handing.numbers import mix
from spectheory.auditing.probing.learning import Learner

T = TypeVar("T", bound=Hashable)
MOST_STAGES = 12
"""In the last stage wrong answers are counted; a tree that is wrong so often has no finite form."""


class Part(NamedTuple, Generic[T]):
    """A function that is called with a probability, as a sampler on one tuple of drafts.

    Attributes:
        probability: of this part.
        function: (seed) -> a hashable answer, within ``handing``.
        hints: where a cut of its numbers may be.
    """

    probability: float
    function: Callable[[int], T]
    hints: tuple[float, ...] = ()


@dataclass(frozen=True)
class Probed(Generic[T]):
    """The laws that were learned, and the bound.

    Attributes:
        laws: the probability of every answer, per part.
        within: at most so far is the total variation of the learned law from the law of the function.
        learned, points, mismatches: the calls that learned, those of the last test, and its wrong answers.
        trees: of the parts.
    """

    laws: list[dict[T, Fraction]]
    within: float
    learned: int
    points: int
    mismatches: int
    trees: list[Learner[T]]


def points_needed(within: float, risk: float) -> int:
    """The points whose answers are all right only with probability ``risk`` if more than ``within`` is wrong.

    Example:
        >>> points_needed(0.002, 1e-6)
        6901
    """
    return math.ceil(math.log(risk) / math.log1p(-within))


def wrong_at_most(points: int, mismatches: int, risk: float) -> float:
    """The upper end of Clopper and Pearson for a probability, at confidence 1 - risk.

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
    """Shares of a risk whose sum over all stages 1, 2, .. is the risk."""
    return risk / (stage * (stage + 1))


def probe(parts: Sequence[Part[T]], within: float, risk: float, budget: int, seed: int = 0) -> Probed[T]:
    """Learn the laws of functions of handed numbers, and bound by fresh calls how wrong they are.

    Args:
        parts: their probabilities sum to 1.
        within: the bound to reach.  It is missed if the last test still finds wrong answers.
        risk: the probability that the bound is wrong.
        budget: the most calls that learn.
        seed: of the points.

    Raises:
        NotHandedError: a part is not a function of the numbers.
        BudgetSpentError: the calls do not suffice to learn.
    """
    learners = [
        Learner(part.function, budget, part.hints, mix(seed, number)) for number, part in enumerate(parts)
    ]

    def learned() -> int:
        return sum(learner.calls for learner in learners)

    for learner in learners:
        learner.budget = budget - learned()
        learner.learn()
    tested, drawn = 0, 0
    for stage in range(1, MOST_STAGES + 1):
        points = points_needed(within, risk_of_stage(risk, stage))
        mismatches = 0
        for _ in range(points):
            drawn += 1
            learner = learners[_drawn(parts, mix(seed, 2, drawn))]
            point = learner.new_point(learner.root)
            learner.budget = learner.calls + 1
            run = learner.at(point)
            leaf = learner.root.leaf_of(point)
            tested += 1
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
    return Probed(laws, bound, learned() - tested, points, mismatches, learners)


def _drawn(parts: Sequence[Part[T]], value: int) -> int:
    """The number of a part, drawn with the probabilities of the parts."""
    left = value / 2**64 * sum(part.probability for part in parts)
    for number, part in enumerate(parts):
        left -= part.probability
        if left < 0:
            return number
    return len(parts) - 1

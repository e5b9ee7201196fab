"""Judge a sampler by calls: learn its law, or bet against its answers."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import torch

from spectheory.auditing.drawing.draw import Drawn, draw_and_judge
from spectheory.auditing.following.replacements import not_compiled
from spectheory.auditing.handing.handing import handing
from spectheory.auditing.handing.numbers import Point, Run, mix, run_at
from spectheory.auditing.probing.claim import (
    MOST_STAGES,
    Probed,
    points_needed,
    probe,
    risk_of_stage,
)
from spectheory.auditing.probing.learning import Learner
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.shipped import Learns, Shipped
from spectheory.auditing.tape.decisions import NotEnumerableError

LEARNING, LEAST_CALLS, FEW_CALLS = 5, 5_000, 2_000
"""We learn the law on a pair with at most 5 times as many calls as test it.  Most laws need up to 3 000.

A quick audit has 2 000 calls.  So has a loop with too many runs to follow, which takes 2 to 15 calls per run.
"""
SEED = 20_240


def learn_question(
    sampler: Shipped, question: Question, within: float, risk: float, *, is_large: bool = False
) -> Probed[Any]:
    """Learn the law of a sampler on a question.

    Afterwards the sampler returns this law, as if we had followed it.

    Args:
        sampler: the shipped sampler.
        question: a pair and how paths are drafted.
        within: the largest allowed error of the learned law, as a total variation.
        risk: the probability that the error is larger.
        is_large: whether the sampler is a loop with too many runs to follow on the question.

    Raises:
        NotHandedError: the sampler draws numbers that cannot be handed to it.
        BudgetSpentError: the law has too many regions.
    """
    asked = list(sampler.asked(question))
    budget = FEW_CALLS if is_large or sampler.quick else most_calls(within, risk)
    with handing():
        parts = [(float(each.probability), sampler.by_seed(each.call, ())) for each in asked]
        found = probe(parts, within, risk, budget, SEED)
    sampler.keep(question, found.laws, Fraction(found.within))
    return found


def most_calls(within: float, risk: float) -> int:
    """The largest number of calls for learning the law on a pair."""
    return max(LEAST_CALLS, LEARNING * points_needed(within, risk))


def learn_requests(within: float, risk: float) -> Learns:
    """Build a function that learns the law of a batch, inside ``handing``, one request after the other.

    The tokens of each request are a function of all numbers of the call.  If no number matters to two
    requests, they are independent, and the law of the batch is a product.  One test by fresh calls then
    bounds the error of all requests together.  Otherwise we learn the joint law.
    """
    risk = risk / 2  # of the product, and of the joint law

    def learn(answer: Callable[[int], Any], rows: Sequence[Any]) -> tuple[dict[Any, Fraction], Fraction]:
        budget = most_calls(within, risk)
        learners = [
            Learner(lambda seed, place=place: answer(seed)[place], budget, mix(SEED, place))  # type: ignore[misc]
            for place in range(len(rows))
        ]
        for learner in learners:
            learner.learn()
        for stage in range(1, MOST_STAGES):
            reads = [learner.root.read() for learner in learners]
            if sum(map(len, reads)) > len(set().union(*reads)):
                break
            points = points_needed(within, risk_of_stage(risk, stage))
            wrong = _first_mistake(answer, learners, (mix(SEED, stage, number) for number in range(points)))
            if wrong is None:
                return _product([learner.root.law() for learner in learners]), Fraction(within)
            learner, point, run = wrong
            if not learner.refine(learner.root.leaf_of(point), (point, run)):
                break
        found = probe([(1.0, answer)], within, risk, budget, SEED)
        return found.laws[0], Fraction(found.within)

    return learn


def _first_mistake(
    answer: Callable[[int], Any], learners: Sequence[Learner[Any]], seeds: Iterable[int]
) -> tuple[Learner[Any], Point, Run[Any]] | None:
    """The first point at which the answer of a request is not the learned one, and the run there."""
    for seed in seeds:
        point = Point(seed)
        run = run_at(answer, point)
        for learner, label in zip(learners, run.label, strict=True):
            if label != learner.root.leaf_of(point).label:
                return learner, point, Run(label, run.uses)
    return None


def _product(laws: Sequence[Mapping[Any, Fraction]]) -> dict[Any, Fraction]:
    """The joint law of independent outcomes."""
    return {
        tuple(outcome for outcome, _ in each): prod((mass for _, mass in each), start=Fraction(1))
        for each in product(*(law.items() for law in laws))
    }


def draw_question(sampler: Shipped, question: Question, draws: int, risk: float) -> tuple[Drawn, float]:
    """Bet against the target's law on a question, with real random numbers.

    Args:
        sampler: the shipped sampler.
        question: a pair and how paths are drafted.
        draws: the largest number of answers.
        risk: the probability of a false alarm.

    Returns:
        The result of the test, and the mean number of tokens of an answer.
    """
    pair = sampler.judged_on(question.pair)
    asked = list(sampler.asked(question))
    answers = [sampler.by_seed(each.call, ()) for each in asked]
    probs = np.array([float(each.probability) for each in asked])
    numbers = np.random.default_rng(SEED).choice(len(asked), draws, p=probs / probs.sum())
    lengths: list[int] = []

    def answer() -> Sequence[int]:
        place = len(lengths)
        tokens = sampler.tokens_of(answers[numbers[place]](mix(SEED, place) >> 32))
        lengths.append(len(tokens))
        return tokens

    wanted = pair.target_path_probs(pair.draft_length + 1).astype(float)
    with real_numbers():
        drawn = draw_and_judge(answer, wanted, pair.vocab_size, pair.draft_length + 1, most=draws, risk=risk)
    return drawn, float(np.mean(lengths))


def call_once(sampler: Shipped, question: Question) -> None:
    """Call a sampler with real random numbers, before we follow it.

    Modules that its code imports at the first call may draw numbers, which are not the sampler's.
    """
    with real_numbers(), not_compiled(), suppress(NotEnumerableError):
        sampler.by_seed(next(sampler.asked(question)).call, ())(0)
    sampler.journal.undefined.clear()
    sampler.journal.raised.clear()


@contextmanager
def real_numbers() -> Iterator[None]:
    """Seed the global generators inside this context, and restore their states afterwards."""
    legacy: Any = np.random
    states = random.getstate(), legacy.get_state(), torch.get_rng_state()
    random.seed(SEED)
    legacy.seed(SEED)
    torch.manual_seed(SEED)
    try:
        yield
    finally:
        random.setstate(states[0])
        legacy.set_state(states[1])
        torch.set_rng_state(states[2])

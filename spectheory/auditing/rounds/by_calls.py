"""Judge a sampler by calls: learn its law, or bet against its answers."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch

from spectheory.auditing.drawing.draw import Drawn, draw_and_judge
from spectheory.auditing.handing.handing import handing
from spectheory.auditing.handing.numbers import mix
from spectheory.auditing.probing.claim import Part, Probed, points_needed, probe
from spectheory.auditing.rounds.questions import Question, drafts_and_rows
from spectheory.auditing.subjects.drafting_rounds import DraftingRound
from spectheory.auditing.subjects.shipped import Learns, Shipped
from spectheory.auditing.tape.decisions import NotEnumerableError

LEARNING, LEAST_CALLS = 5, 5_000
"""We learn the law on a pair with at most 5 times as many calls as test it.  Most laws need up to 3 000."""
SEED = 20_240


class Drafted(NamedTuple):
    """One tuple of drafts of a question: its probability, and the sampler's answers on it."""

    probability: Fraction
    answer: Callable[[int], Any]
    hints: tuple[float, ...] = ()


def learn_question(sampler: Shipped, question: Question, within: float, risk: float) -> Probed[Any]:
    """Learn the law of a sampler on a question.

    Afterwards the sampler returns this law, as if we had followed it.

    Args:
        sampler: the shipped sampler.
        question: a pair and how paths are drafted.
        within: the largest allowed error of the learned law, as a total variation.
        risk: the probability that the error is larger.

    Raises:
        NotHandedError: the sampler draws numbers that cannot be handed to it.
        BudgetSpentError: the law has too many regions.
    """
    asked, prepared = asked_of(sampler, question)
    with handing():
        drafted = list(_drafted(asked, prepared))
        found = probe(
            [Part(float(each.probability), each.answer, each.hints) for each in drafted],
            within,
            risk,
            most_calls(within, risk),
            SEED,
        )
    if isinstance(sampler, DraftingRound):
        sampler.learn_rounds(question.pair, found.laws[0], Fraction(found.within))
    else:
        for (paths, target, draft, _), law in zip(drafts_and_rows(prepared), found.laws, strict=True):
            asked.learn(paths, target, draft, law)
    return found


def most_calls(within: float, risk: float) -> int:
    """The largest number of calls for learning the law on a pair."""
    return max(LEAST_CALLS, LEARNING * points_needed(within, risk))


def learn_batches(within: float, risk: float) -> Learns:
    """Build a function that learns the law of a batch, inside ``handing``."""

    def learn(answer: Callable[[int], Any]) -> tuple[dict[Any, Fraction], Fraction]:
        found = probe([Part(1.0, answer)], within, risk, most_calls(within, risk), SEED)
        return found.laws[0], Fraction(found.within)

    return learn


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
    asked, prepared = asked_of(sampler, question)
    pair = prepared.pair
    drafted = list(_drafted(asked, prepared))
    rng = np.random.default_rng(SEED)
    probs = np.array([float(each.probability) for each in drafted])
    numbers = rng.choice(len(drafted), draws, p=probs / probs.sum())
    lengths: list[int] = []

    def answer() -> Sequence[int]:
        place = len(lengths)
        found = drafted[numbers[place]].answer(mix(SEED, place) >> 32)
        tokens = found[0].tokens if found and isinstance(sampler, DraftingRound) else found
        lengths.append(len(tokens))
        return tokens

    wanted = pair.target_path_probs(pair.draft_length + 1).astype(float)
    with _real_numbers():
        drawn = draw_and_judge(answer, wanted, pair.vocab_size, pair.draft_length + 1, most=draws, risk=risk)
    return drawn, float(np.mean(lengths))


def call_once(sampler: Shipped, question: Question) -> None:
    """Call a sampler with real random numbers, before we follow it.

    Modules that its code imports at the first call may draw numbers, which are not the sampler's.
    """
    with _real_numbers(), suppress(NotEnumerableError):
        next(_drafted(*asked_of(sampler, question))).answer(0)
    sampler.journal.undefined.clear()
    sampler.journal.raised.clear()


def asked_of(sampler: Shipped, question: Question) -> tuple[Shipped, Question]:
    """Return the sampler, and the question with the pair on which we judge the sampler.

    A round keeps its pair, because it draws its own drafts.
    """
    if isinstance(sampler, DraftingRound):
        return sampler, question
    asked, pair = sampler.prepared(question.pair)
    return asked, question._replace(pair=pair)


def _drafted(sampler: Shipped, question: Question) -> Iterator[Drafted]:
    if isinstance(sampler, DraftingRound):
        yield Drafted(Fraction(1), sampler.plays(question.pair))
        return
    for paths, target, draft, prob in drafts_and_rows(question):
        yield Drafted(prob, sampler.answers(paths, target, draft), _hints(paths, target, draft))


def _hints(paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> tuple[float, ...]:
    """Values at which a verifier's answer may change: ratios p/q of drafted tokens, and sums along rows."""
    hints: set[float] = set()
    for path, target, draft in zip(paths, target_rows.astype(float), draft_rows.astype(float), strict=True):
        hints |= set(np.cumsum(target, axis=1).ravel().tolist())
        for place, token in enumerate(path.tolist()):
            hints.add(target[place, token] / draft[place, token] if draft[place, token] else 1.0)
            residual = np.maximum(target[place] - draft[place], 0)
            if residual.sum():
                hints |= set((np.cumsum(residual) / residual.sum()).tolist())
    return tuple(sorted(hint for hint in hints if 0 < hint < 1))


@contextmanager
def _real_numbers() -> Iterator[None]:
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

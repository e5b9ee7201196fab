"""Two consecutive calls of a sampler: the second must not depend on the random numbers of the first.

We follow them on small pairs, with a path that leaves many decisions open, or with several paths of which
this path is the first.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from spectheory.auditing.rounds.battery import tells_texts_apart
from spectheory.auditing.rounds.joint_laws import marginal, total_variation
from spectheory.auditing.subjects.asked import Question, drafts_and_rows
from spectheory.auditing.subjects.shipped import HIDDEN, Shipped, Tokens
from spectheory.auditing.subjects.signatures import Call
from spectheory.auditing.tape.decisions import (
    Branch,
    HiddenRandomnessError,
    NotEnumerableError,
    Tape,
    all_runs,
)
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import context_number
from spectheory.pairs.pair import ModelPair

MAX_OUTPUTS = 16
"""A pair is small if it has at most 16 completed outputs."""
MAX_RUNS_OF_TWO_CALLS = 100
"""The most runs of two calls that are followed for one tuple of drafts."""
FOUND_AGAIN = 6
"""A dependence is found again so often: hidden coins of probability 1/3 do this with probability 10^-4."""


def questions_of_calls(questions: Iterable[Question], needs_texts: bool = False) -> Iterator[Question]:
    """Choose where we follow two calls: for each draft length the first pair with the most open decisions.

    We prefer small pairs, because two calls have many branches.  If ``needs_texts``, we prefer above all
    pairs whose target rows differ after every text.
    """
    by_length: dict[int, list[Question]] = defaultdict(list)
    for question in questions:
        by_length[question.pair.draft_length].append(question)
    for same_length in by_length.values():
        telling = [asked for asked in same_length if needs_texts and tells_texts_apart(asked.pair)]
        small = [
            asked
            for asked in telling or same_length
            if len(asked.pair.target[-1]) * asked.pair.vocab_size <= MAX_OUTPUTS
        ]
        yield max(small or telling or same_length, key=lambda asked: least_accepted(asked.pair)[1])


def least_accepted(pair: ModelPair) -> tuple[tuple[int, ...], int]:
    """The path of the tokens that are least likely to be accepted, with ratio p/q above 0 if possible.

    Returns:
        The path, and its number of open decisions: acceptances, and corrections with two tokens or more.
    """
    path: tuple[int, ...] = ()
    decisions = 0
    for target, draft in zip(pair.target, pair.draft, strict=False):
        number = context_number(path, pair.vocab_size)
        p, q = target[number], draft[number]
        ratios = {token: p[token] / q[token] for token in np.flatnonzero(q).tolist()}
        path += (min(ratios, key=lambda token: (not 0 < ratios[token] < 1, ratios[token])),)
        decisions += int(0 < ratios[path[-1]] < 1) + int((p > q).sum() > 1)
    return path, decisions


def call_twice(sampler: Shipped, question: Question) -> int:
    """Follow two calls on one tuple of drafts, and return the number of runs.

    If the process can draw it, the first path is the path least likely to be accepted.  The paths differ if
    possible.
    """
    wanted = least_accepted(question.pair)[0]

    def order(drafted: tuple[Any, ...]) -> tuple[bool, int]:
        paths = list(map(tuple, drafted[0].tolist()))
        return paths[0] == wanted, len(set(paths))

    return follow_two_calls(sampler, *max(drafts_and_rows(question), key=order)[:3])


def follow_two_calls(
    sampler: Shipped,
    paths: np.ndarray,
    target_rows: np.ndarray,
    draft_rows: np.ndarray,
    max_runs: int = MAX_RUNS_OF_TWO_CALLS,
) -> int:
    """Follow two consecutive calls, and note in the journal if the second depends on the first.

    The branches of the first call take turns.  In each turn we follow one branch of the second call, until we
    have followed all branches or reach ``max_runs``.  If we have followed all, the second call must have the
    law of the first, whatever tokens the first call returned.
    """
    rows = sampler.told(paths, target_rows, draft_rows)
    law, followed = _law_of_two_calls(sampler, paths, rows, max_runs)
    sampler.journal.pairs_of_calls += followed
    once = marginal(law or {}, 0)
    distances = {tokens: total_variation(later, once) for tokens, later in _second_given_first(law or {})}
    if any(distances.values()):
        again = (_law_of_two_calls(sampler, paths, rows, max_runs)[0] for _ in range(FOUND_AGAIN))
        if any(found != law for found in again):
            raise HiddenRandomnessError(f"{HIDDEN}: followed twice, two calls in a row have two laws")
        worst = max(distances, key=lambda tokens: distances[tokens])
        text = f"after the tokens {list(worst)} the next call has another law, total variation"
        sampler.journal.findings.add(("randomness", f"{text} {float(distances[worst]):.3g}"))
    return followed


def _second_given_first(
    law: dict[tuple[Tokens, ...], Fraction],
) -> Iterator[tuple[Tokens, dict[Tokens, Fraction]]]:
    for tokens, share in marginal(law, 0).items():
        yield tokens, {second: mass / share for (first, second), mass in law.items() if first == tokens}


def _law_of_two_calls(
    sampler: Shipped, paths: np.ndarray, rows: tuple[np.ndarray, np.ndarray], max_runs: int
) -> tuple[dict[tuple[Tokens, ...], Fraction] | None, int]:
    """Return the joint law of the tokens of both calls, or ``None`` if not known, and the number of runs."""
    is_known = True

    def calls(times: int, tape: Tape) -> tuple[list[Branch], tuple[Tokens, ...]]:
        nonlocal is_known
        outputs: tuple[Tokens, ...] = ()
        try:
            outputs = sampler.calls(Call(paths, *rows, tape, sampler.journal), times)
        except (UndefinedDrawError, InvalidOutcomeError, NotEnumerableError):  # the law of one call says so
            is_known = False
        is_known &= not tape.is_approximate
        return list(tape.made), outputs

    first_calls = [made for _, (made, _) in islice(all_runs(lambda tape: calls(1, tape)), max_runs)]
    turns = deque(all_runs(lambda tape: calls(2, tape), given=made) for made in first_calls)
    law: dict[tuple[Tokens, ...], Fraction] = defaultdict(Fraction)
    followed = 0
    while turns and followed < max_runs:
        run = next(turns[0], None)
        if run is None:
            turns.popleft()
            continue
        turns.rotate(-1)
        followed += 1
        law[run.result[1]] += run.probability
    return law if is_known and not turns else None, followed

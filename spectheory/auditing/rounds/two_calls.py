"""Calls in a row: the law of a call must not depend on the random numbers of the calls before it.

``follow_in_a_row`` follows each call after every outcome of the calls before it.  Here the calls have equal
arguments.  We choose small pairs, and a path that leaves many decisions open, or several paths of which this
path is the first.  ``two_rounds`` follows rounds, whose texts grow.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.auditing.rounds.battery import tells_texts_apart
from spectheory.auditing.rounds.joint_laws import total_variation
from spectheory.auditing.subjects.asked import Question, drafts_and_rows
from spectheory.auditing.subjects.runs import HIDDEN
from spectheory.auditing.subjects.shipped import Shipped, Tokens
from spectheory.auditing.subjects.signatures import Drafts
from spectheory.auditing.tape.decisions import (
    Branch,
    HiddenRandomnessError,
    NotEnumerableError,
    Tape,
    all_runs,
)
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.pairs.contexts import context_number
from spectheory.pairs.pair import ModelPair

MAX_OUTPUTS = 16
"""A pair is small if it has at most 16 completed outputs."""
MAX_RUNS_OF_TWO_CALLS = 100
"""The most runs of two calls that are followed for one tuple of drafts."""
MAX_RUNS_OF_THE_FIRST = 1_000
"""The most runs of the first of two calls, which has been followed before on this pair."""
FOUND_AGAIN = 6
"""A dependence is found again so often: hidden coins of probability 1/3 do this with probability 10^-4."""
COMBINED = "random numbers are combined"
"""Why we do not know the law of a run: a box of cases got one answer."""
Texts = tuple[Tokens, ...]
"""The tokens of every request."""


class Run(NamedTuple):
    """One run of calls in a row.

    Attributes:
        mass: its probability.
        outputs: the outputs of the calls, in order; empty without a valid output.
        made: its decisions.
        is_known: False if a box of cases got one answer, so that the law is not known.
    """

    mass: Fraction
    outputs: Sequence[Any]
    made: list[Branch]
    is_known: bool


def law_of(runs: Iterable[Run], label: Callable[[Run], Hashable]) -> dict[Any, Fraction]:
    """The law of the labels of runs, given that one of these runs happens."""
    law: dict[Any, Fraction] = defaultdict(Fraction)
    for run in runs:
        law[label(run)] += run.mass
    total = sum(law.values())
    return {each: mass / total for each, mass in law.items()}


def follow_in_a_row(
    sampler: Shipped,
    play: Callable[[Tape, int], Sequence[Any]],
    texts_of: Callable[[Sequence[Any]], Texts],
    judge: Callable[[int, Texts, list[Run]], None],
    most: Sequence[int],
    behind: Sequence[Texts] | None = None,
    requests: int = 1,
) -> str:
    """Follow all runs of a call, then of the next one after every outcome, and so on.

    Args:
        sampler: the sampler, whose journal counts the runs of later calls.
        play: (tape, number of calls) -> their outputs.
        texts_of: outputs -> the tokens of every request so far.
        judge: (number of the call, texts before it, all its runs after them) -> None.
        most: the largest number of runs of each call.  A third call follows a longest and a shortest text.
        behind: the texts after which we follow the second call; by default all.
        requests: the number of requests.

    Returns:
        What we left out: why no later call was followed, or the number of texts after which we did not follow
        a later call.
    """
    nothing: Sequence[Any] = ()

    def once(tape: Tape, number: int) -> tuple[Sequence[Any], list[Branch], bool]:
        outputs = sampler.valid(lambda tape: play(tape, number), tape, nothing)
        return outputs, list(tape.made), not tape.is_approximate

    why: dict[str, None] = {}
    histories: dict[Texts, list[list[Branch]]] = {((),) * requests: [[]]}
    for number, left in enumerate(most, start=1):
        order = _by_lengths(histories)
        if number == 2 and behind is not None:
            order = [texts for texts in behind if texts in histories]
            if len(order) < len(behind):
                why[f"{len(behind) - len(order)} texts never come"] = None
        elif number > 2:
            order = [order[-1], order[0]][: len(order)]
        groups: list[tuple[Texts, list[Run]]] = []
        for texts in order:
            runs: list[Run] = []
            try:
                for made in histories[texts]:
                    found = all_runs(lambda tape: once(tape, number), left - len(runs), made)  # noqa: B023
                    runs += [Run(mass, *result) for mass, result in found]
            except EnumerationTooLargeError:
                break
            if all(run.is_known for run in runs):
                judge(number, texts, runs)
            else:
                why[COMBINED] = None
            groups.append((texts, runs))
            left -= len(runs)
            sampler.journal.pairs_of_calls += len(runs) if number > 1 or len(most) == 1 else 0
        if len(groups) < len(order):
            missed = f"not after {len(order) - len(groups)} of {len(order)} texts, " if number > 1 else ""
            why[f"{missed}more than {most[number - 1]} runs"] = None
            break
        histories = defaultdict(list)
        for run in (run for _, runs in groups for run in runs if run.outputs):
            histories[texts_of(run.outputs)].append(run.made)
        if not histories:
            return "; ".join(why) or "no run has an output"  # which the law of one call reports
    return "; ".join(why)


def _by_lengths(texts: Iterable[Texts]) -> list[Texts]:
    """Sort texts so that the first few contain every length."""
    seen, keys = Counter[tuple[int, ...]](), []
    for text in sorted(texts):
        lengths = tuple(map(len, text))
        keys.append((seen[lengths], lengths, text))
        seen[lengths] += 1
    return [text for *_, text in sorted(keys)]


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


def follow_two_calls(sampler: Shipped, question: Question, most: int = MAX_RUNS_OF_TWO_CALLS) -> str:
    """Follow two calls on one tuple of drafts, and note if the second depends on the first one's tokens.

    If the process can draw it, the first path is the path least likely to be accepted.  The paths differ if
    possible.  The result is the same as of ``follow_in_a_row``.
    """
    wanted = least_accepted(question.pair)[0]

    def order(drafted: tuple[Any, ...]) -> tuple[bool, int]:
        paths = list(map(tuple, drafted[0].tolist()))
        return paths[0] == wanted, len(set(paths))

    paths, *rows, _ = max(drafts_and_rows(question), key=order)
    drafts = Drafts(paths, *sampler.told(paths, *rows))

    def play(tape: Tape, times: int) -> list[Texts]:
        return [(tokens,) for tokens in sampler.calls(drafts, tape, times)]

    return compare_with_the_next(sampler, play, most)


def compare_with_the_next(
    sampler: Shipped,
    play: Callable[[Tape, int], list[Texts]],
    most: int = MAX_RUNS_OF_THE_FIRST,
    behind: Sequence[Texts] | None = None,
) -> str:
    """Compare the law of a second call, after all tokens of the first, with the law of the first.

    Args:
        sampler: the sampler, whose journal receives a finding if they differ.
        play: (tape, number of calls) -> for each call, or the last, the tokens of every request.
        most: the largest number of runs of two calls.
        behind: as in ``follow_in_a_row``, as the result.

    Raises:
        HiddenRandomnessError: followed again, the calls have other tokens or laws; or the sampler uses
            randomness that we do not follow.
    """
    unknown: list[str] = []

    def known(tape: Tape, times: int) -> list[Texts]:
        try:
            return play(tape, times)
        except HiddenRandomnessError:
            raise
        except NotEnumerableError as error:
            unknown.append(str(error))
            tape.is_approximate = True
            return []

    def distances() -> tuple[dict[Texts, Fraction], str]:
        found: dict[Texts, Fraction] = {}
        first: dict[Texts, Fraction] = {}

        def judge(number: int, texts: Texts, runs: list[Run]) -> None:
            law = law_of(runs, lambda run: tuple(run.outputs[-1:]))
            if number == 1:
                first.update(law)
                return
            if first:  # else the law of the first call is not known
                found[texts] = total_variation(law, first)
            if any(run.outputs[:-1] not in ((), [], [texts]) for run in runs):
                raise HiddenRandomnessError(
                    f"{HIDDEN}: for the same numbers the first call gave other tokens"
                )

        calls = max(MAX_RUNS_OF_THE_FIRST, most), most
        return found, follow_in_a_row(sampler, known, lambda outputs: outputs[-1], judge, calls, behind)

    found, why = distances()
    counted = sampler.journal.pairs_of_calls
    if any(found.values()):
        is_found_again = all(distances()[0] == found for _ in range(FOUND_AGAIN))
        sampler.journal.pairs_of_calls = counted
        if not is_found_again:
            raise HiddenRandomnessError(f"{HIDDEN}: followed twice, two calls in a row have two laws")
        worst = max(found, key=lambda texts: found[texts])
        text = f"after the tokens {', '.join(map(str, map(list, worst)))} the next call has another law"
        sampler.journal.findings.add(("randomness", f"{text}, total variation {float(found[worst]):.3g}"))
    return why.replace(COMBINED, unknown[0]) if unknown else why

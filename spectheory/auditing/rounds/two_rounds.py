"""Two consecutive rounds: the second must draw from the target behind the tokens of the first.

The token after a fully accepted path, offsets of caches and random numbers that are kept for the next round
show only in the second round.  Two requests side by side that accept different numbers of tokens show whether
each goes on from its own place.
"""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.joint_laws import dependence, marginal, total_variation
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.drafting_rounds import DraftingRound, LookUpModel, Played
from spectheory.auditing.subjects.shipped import Tokens
from spectheory.auditing.tape.decisions import Tape, all_runs
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.pairs.pair import ModelPair

MAX_RUNS_OF_ROUNDS = 2_000
"""The most runs of rounds that are followed on one pair; with more, nothing is said of them."""
OF_TWO_REQUESTS = {"two rounds": (random_dyadic(1, 2, 1), 2), "one round": (random_dyadic(1, 2, 2), 1)}
"""Where two requests side by side are followed: a pair whose rows depend on the text, and how many rounds."""


def follow_rounds(
    sampler: DraftingRound,
    pair: ModelPair,
    max_runs: int = MAX_RUNS_OF_ROUNDS,
    requests: int = 1,
    times: int = 2,
) -> tuple[int, str]:
    """Follow rounds from the start of texts; findings go to the sampler's journal.

    Given the tokens of the rounds before, the drafts of the last must have the law of the rows that are
    reported for them, and its tokens, completed with the target, the law of the target.  The tokens of two
    requests must be independent.

    Args:
        sampler: the round.
        pair: the models; behind a longer text their rows are those behind its last tokens.
        max_runs: the most runs that are followed.
        requests: the number of requests side by side, 2 for the signature "round_batch" only.
        times: the number of rounds.

    Returns:
        The number of runs, and, where it is 0, why nothing is said: they are more, random numbers are
        combined, or one ends without an output.
    """

    def once(tape: Tape) -> tuple[list[list[Played]], bool]:
        try:
            return sampler.rounds(tape, pair, times, requests), tape.is_approximate
        except UndefinedDrawError:  # which the law of one round reports
            return [], tape.is_approximate

    try:
        runs = list(all_runs(once, max_runs))
    except EnumerationTooLargeError:
        return 0, f"more than {max_runs} runs"
    if any(is_approximate for _, (_, is_approximate) in runs):
        return 0, "random numbers are combined"
    if not all(played for _, (played, _) in runs):
        return 0, "a run ends without an output"
    found: dict[tuple[tuple[Played, ...], ...], Fraction] = defaultdict(Fraction)
    for probability, (played, _) in runs:
        found[tuple(map(tuple, played))] += probability
    beside = f" beside {count_text(requests - 1, 'other request')}" if requests > 1 else ""
    for request in range(requests):
        text, distance = _farthest_last(sampler, pair, marginal(found, request))
        if distance > rounding_bound(pair):
            words = f"after the tokens {list(text)} the next round{beside} does not have the target's law"
            sampler.journal.findings.add(("rounds", f"{words}, total variation {float(distance):.3g}"))
    if requests > 1:
        _must_be_independent(sampler, pair, found)
    sampler.journal.pairs_of_calls += len(runs)
    return len(runs), ""


def _farthest_last(
    sampler: DraftingRound, pair: ModelPair, law: Mapping[tuple[Played, ...], Fraction]
) -> tuple[Tokens, Fraction]:
    """The tokens of the rounds after which the last is the farthest from the target, and how far."""
    last_of: dict[Tokens, dict[Played, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for (*before, last), probability in law.items():
        last_of[tuple(token for played in before for token in played.tokens)][last] += probability
    target = LookUpModel(pair.target, pair.vocab_size)
    nothing: dict[Tokens, Fraction] = {(): Fraction(1)}
    distances: dict[Tokens, Fraction] = {}
    for text, lasts in last_of.items():
        sampler.drafts_of(lasts.items(), pair, text)
        total = sum(lasts.values())
        found: dict[Tokens, Fraction] = defaultdict(Fraction)
        for last, mass in lasts.items():
            found[last.tokens] += mass / total
        laws = (_completed(law, target, text, pair.draft_length + 1) for law in (found, nothing))
        distances[text] = total_variation(*laws)
    worst = max(distances, key=lambda text: distances[text])
    return worst, distances[worst]


def _must_be_independent(
    sampler: DraftingRound, pair: ModelPair, law: Mapping[tuple[tuple[Played, ...], ...], Fraction]
) -> None:
    texts: dict[tuple[Tokens, ...], Fraction] = defaultdict(Fraction)
    for played, mass in law.items():
        texts[tuple(tuple(token for each in rounds for token in each.tokens) for rounds in played)] += mass
    distance = dependence(texts)
    if distance > rounding_bound(pair):
        words = "the tokens of two requests side by side are not independent"
        sampler.journal.findings.add(("rounds", f"{words}, total variation {float(distance):.3g}"))


def _completed(
    law: Mapping[Tokens, Fraction], target: LookUpModel, text: Tokens, length: int
) -> dict[Tokens, Fraction]:
    """The law of outputs that are continued with the target up to a length."""
    done: dict[Tokens, Fraction] = defaultdict(Fraction)
    left = list(law.items())
    while left:
        tokens, mass = left.pop()
        if len(tokens) == length:
            done[tokens] += mass
        else:
            row = target.row((*text, *tokens)).tolist()
            left += [((*tokens, token), mass * prob) for token, prob in enumerate(row) if prob]
    return done

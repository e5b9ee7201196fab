"""Two consecutive rounds of one request: the second must draw from the target behind the tokens of the first.

The token after a fully accepted path, offsets of caches and random numbers that are kept for the next round
show only in the second round.
"""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from spectheory.auditing.rounds.joint_laws import total_variation
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.drafting_rounds import DraftingRound, LookUpModel, Played
from spectheory.auditing.subjects.shipped import Tokens
from spectheory.auditing.tape.decisions import Tape, all_runs
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.pairs.pair import ModelPair

MAX_RUNS_OF_TWO_ROUNDS = 2_000
"""The most runs of two rounds that are followed on one pair; with more, nothing is said of the second."""


def follow_two_rounds(sampler: DraftingRound, pair: ModelPair, max_runs: int = MAX_RUNS_OF_TWO_ROUNDS) -> int:
    """Follow two rounds from the start of a text; findings go to the sampler's journal.

    Given the tokens of the first round, the drafts of the second must have the law of the rows that are
    reported for them, and its tokens, completed with the target, the law of the target.

    Args:
        sampler: the round.
        pair: the models; behind a longer text their rows are those behind its last tokens.
        max_runs: the most runs that are followed.

    Returns:
        The number of runs, 0 where they are more, or where random numbers are combined.
    """

    def once(tape: Tape) -> tuple[list[Played], bool]:
        try:
            return sampler.rounds(tape, pair, 2), tape.is_approximate
        except UndefinedDrawError:  # which the law of one round reports
            return [], tape.is_approximate

    try:
        runs = list(all_runs(once, max_runs))
    except EnumerationTooLargeError:
        return 0
    if any(is_approximate for _, (_, is_approximate) in runs):
        return 0
    second_of: dict[Tokens, dict[Played, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for probability, (played, _) in runs:
        if played:
            second_of[played[0].tokens][played[1]] += probability
    target = LookUpModel(pair.target, pair.vocab_size)
    nothing: dict[Tokens, Fraction] = {(): Fraction(1)}
    distances: dict[Tokens, Fraction] = {}
    for text, seconds in second_of.items():
        sampler.drafts_of(seconds.items(), pair, text)
        total = sum(seconds.values())
        found: dict[Tokens, Fraction] = defaultdict(Fraction)
        for second, mass in seconds.items():
            found[second.tokens] += mass / total
        laws = (_completed(law, target, text, pair.draft_length + 1) for law in (found, nothing))
        distances[text] = total_variation(*laws)
    worst = max(distances, key=lambda text: distances[text], default=())
    if distances.get(worst, 0) > rounding_bound(pair):
        words = f"after the tokens {list(worst)} the next round does not have the target's law"
        distance = f"total variation {float(distances[worst]):.3g}"
        sampler.journal.findings.add(("rounds", f"{words}, {distance}"))
    sampler.journal.pairs_of_calls += len(runs)
    return len(runs)


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

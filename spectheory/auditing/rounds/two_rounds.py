"""Consecutive rounds: the second and third must draw from the target after the tokens of earlier rounds.

Some defects show only in the second round: a wrong token after a fully accepted path, wrong offsets of
caches, and random numbers kept for the next round.  With several requests of different texts and rows we
check that each continues from its own position with its own cache.

We put requests with certain rows beside one request whose rows leave choices.  So we can follow all branches
of this request, and the number of branches is a sum over requests, not a product.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.joint_laws import dependence, marginal, total_variation
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.drafting_rounds import (
    REPORTED_TOLERANCE,
    WRONG_DRAFTS,
    DraftingRound,
    LookUpModel,
    Played,
)
from spectheory.auditing.subjects.shipped import Tokens
from spectheory.auditing.tape.decisions import Branch, Tape, all_runs
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.pairs.contexts import all_contexts
from spectheory.pairs.pair import ModelPair

MAX_RUNS_OF_ROUNDS = 2_000
"""The most runs of two rounds that are followed on one pair."""
MAX_RUNS_OF_A_THIRD = 100
"""The most runs of three rounds: a doubling cache shows in the third, after any two that accept tokens."""
Texts = tuple[Tokens, ...]
"""The tokens of every request."""


def _beside_certain_ones() -> ModelPair:
    """Build a pair with V = 3 and L = 2 whose first round has four outputs, of three lengths.

    After [0, 1, 2] the next draft is certainly rejected, and after [0, 2] the next two drafts are certainly
    accepted.  After [1] and [2], two tokens can be drafted, and no decision is certain.
    """
    free = random_dyadic(11, 3, 2)
    rows = [row for level in free.target for row in level.tolist()]
    target: dict[Tokens, Any] = dict(zip(all_contexts(3, 2), rows, strict=True))
    target |= {(): ["1/4", "3/8", "3/8"], (0,): ["0", "1/2", "1/2"]}
    target |= {(0, 0): ["0", "0", "1"], (0, 1): ["0", "0", "1"], (0, 2): ["0", "1", "0"]}
    draft: dict[Tokens, Any] = {(): ["1", "0", "0"]}
    draft |= {(0,): ["0", "1", "0"], (1,): ["3/4", "1/4", "0"], (2,): ["0", "3/8", "5/8"]}
    return ModelPair.from_contexts(target, draft, 2)


def _ending_alike() -> ModelPair:
    """Build a pair with V = 2 and L = 2 whose first round accepts both drafts.  Only the first is random.

    So the texts of two requests can differ in the first token and be equal from the second token on.  This
    finds caches that identify a block by its tokens, but not by the tokens before it.
    """
    even = ["1/2", "1/2"]
    target: dict[Tokens, Any] = {(): even, (0,): ["1", "0"], (1,): ["1", "0"]}
    target |= dict.fromkeys(((0, 0), (0, 1), (1, 0), (1, 1)), even)
    return ModelPair.from_contexts(target, {(): even, (0,): ["1", "0"], (1,): ["1", "0"]}, 2)


SIDE_BY_SIDE = _beside_certain_ones()
REJECTED, ACCEPTED, OPEN, ALSO_OPEN = (0, 1, 2), (0, 2), (1,), (2,)
JOINT = "all branches of two requests side by side, in one round and, of one drafted token, in two rounds"
OF_REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "one round of two requests": {"pair": random_dyadic(1, 2, 2), "requests": 2, "times": 1},
    "two rounds of two requests": {
        "pair": SIDE_BY_SIDE,
        "requests": 2,
        "times": 2,
        "behind": (
            (OPEN, REJECTED),
            (REJECTED, ALSO_OPEN),
            (ALSO_OPEN, ACCEPTED),
            (ACCEPTED, OPEN),
        ),
    },
    "two rounds of two requests that are both open": {
        "pair": random_dyadic(1, 2, 1),
        "requests": 2,
        "times": 2,
        "behind": (((0, 0), (1,)), ((1, 0), (1, 1))),
    },
    "two rounds of three requests": {
        "pair": SIDE_BY_SIDE,
        "requests": 3,
        "times": 2,
        "behind": (
            (OPEN, REJECTED, ACCEPTED),
            (ACCEPTED, ALSO_OPEN, REJECTED),
            (REJECTED, ACCEPTED, OPEN),
        ),
    },
    "two rounds of two requests whose texts end alike": {
        "pair": _ending_alike(),
        "requests": 2,
        "times": 2,
        "behind": (((0, 0, 1), (1, 0, 1)), ((1, 0, 0), (0, 0, 0))),
    },
    "a new first request beside another": {
        "pair": SIDE_BY_SIDE,
        "requests": 2,
        "behind": ((REJECTED, OPEN), (OPEN, REJECTED)),
        "anew": 0,
    },
    "a new second request beside another": {
        "pair": SIDE_BY_SIDE,
        "requests": 2,
        "behind": ((ALSO_OPEN, ACCEPTED), (ACCEPTED, OPEN)),
        "anew": 1,
    },
}
"""Cases with several requests side by side, as arguments of ``follow_rounds``."""


NO_OUTPUT = "no output"
"""Key of the findings on runs that fail."""


class _CombinedError(Exception):
    """A run has a box of cases, so its law is not known."""


class _Run(NamedTuple):
    mass: Fraction
    played: list[list[Played]]
    made: list[Branch]


def follow_rounds(
    sampler: DraftingRound,
    pair: ModelPair,
    max_runs: int = MAX_RUNS_OF_ROUNDS,
    requests: int = 1,
    times: int = 3,
    behind: Sequence[Texts] | None = None,
    anew: int | None = None,
) -> tuple[int, str]:
    """Follow rounds from the start of texts.  Findings go to the sampler's journal.

    We check the law of the last round given the tokens of earlier rounds.  Its drafts must have the law of
    the rows that the round reports.  Its tokens, completed with the target, must have the target's law.  The
    tokens of two requests must be independent.

    Args:
        sampler: the round.
        pair: the models.  Their rows differ after every text (``LookUpModel``).
        max_runs: the largest number of runs.
        requests: the number of requests side by side.  Only the signature "round_batch" takes 2 or more.
        times: the number of rounds.  We follow the third after one longest and one shortest text.
        behind: the texts after which we follow the second round; by default all.
        anew: the index of a request that ends before the last round.  A new request starts in its place.

    Returns:
        The number of runs, and what we left out: the reason if the number is 0, or the number of texts after
        which we did not follow the second round.
    """
    worst = _Worst(sampler, pair, requests)

    def play(tape: Tape) -> tuple[list[list[Played]], list[Branch]]:
        ends = anew if number == times else None

        def once(tape: Tape) -> list[list[Played]]:
            return sampler.rounds(tape, pair, number, requests, tells_texts=True, anew=ends)

        nothing: list[list[Played]] = []
        played = sampler.valid(once, tape, nothing)
        if tape.is_approximate:
            raise _CombinedError
        return played, list(tape.made)

    followed, why = 0, ""
    histories: dict[Texts, list[list[Branch]]] = {((),) * requests: [[]]}
    try:
        for number in range(1, times + 1):
            order = _by_lengths(histories)
            if number == 2 and behind is not None:
                order = [texts for texts in behind if texts in histories]
                why = "" if len(order) == len(behind) else f"{len(behind) - len(order)} texts never come"
            if not order:  # none of the texts comes
                break
            most = max_runs if number < 3 else min(max_runs, MAX_RUNS_OF_A_THIRD)
            groups = _followed(play, histories, order if number < 3 else [order[-1], order[0]], most)
            if number == 1 and not groups:
                return 0, f"more than {max_runs} runs"
            if number == 1 and not any(run.played for _, runs in groups for run in runs):
                return 0, "no run has an output"  # which the law of one round reports
            for texts, runs in groups:
                if requests > 1 or number == times or number > 1:
                    worst.judge(texts, runs, anew if number == times else None)
                followed += len(runs) if number > 1 or times == 1 else 0
            if number == 2 and len(groups) < len(order):
                why = f"not after {len(order) - len(groups)} of {len(order)} texts, more than {max_runs} runs"
                break
            histories = defaultdict(list)
            for run in (run for _, runs in groups for run in runs if run.played):
                histories[tuple(map(_tokens, run.played))].append(run.made)
    except _CombinedError:
        return 0, "random numbers are combined"
    finally:  # what was found stays, also where a later round is not followed
        worst.tell()
    sampler.journal.pairs_of_calls += followed
    return followed, why


def _followed(
    play: Callable[[Tape], tuple[list[list[Played]], list[Branch]]],
    histories: Mapping[Texts, Sequence[Sequence[Branch]]],
    order: Sequence[Texts],
    most: int,
) -> list[tuple[Texts, list[_Run]]]:
    """Follow all runs after the texts, one text after the other, up to ``most`` runs."""
    groups: list[tuple[Texts, list[_Run]]] = []
    for texts in order:
        runs: list[_Run] = []
        try:
            for made in histories[texts]:
                runs += [_Run(mass, *result) for mass, result in all_runs(play, most - len(runs), made)]
        except EnumerationTooLargeError:
            break
        groups.append((texts, runs))
        most -= len(runs)
    return groups


def _tokens(rounds: Sequence[Played]) -> Tokens:
    return tuple(token for played in rounds for token in played.tokens)


def _by_lengths(texts: Iterable[Texts]) -> list[Texts]:
    """Sort texts so that the first few contain every length."""
    seen, keys = Counter[tuple[int, ...]](), []
    for text in sorted(texts):
        lengths = tuple(map(len, text))
        keys.append((seen[lengths], lengths, text))
        seen[lengths] += 1
    return [text for *_, text in sorted(keys)]


@dataclass
class _Worst:
    """Keeps, per kind of fault, the law of a last round that is farthest from the target's.

    Attributes:
        sampler, pair, requests: as in ``follow_rounds``.
        found: kind of fault -> the largest total variation, and after which texts it occurs.
    """

    sampler: DraftingRound
    pair: ModelPair
    requests: int
    found: dict[str, tuple[Fraction, str]] = field(default_factory=dict)

    def judge(self, texts: Texts, runs: Sequence[_Run], anew: int | None) -> None:
        """Compare the law of the last rounds after texts with the target's.

        The request with index ``anew`` is in its first round.
        """
        total = sum(run.mass for run in runs)
        without = sum((run.mass for run in runs if not run.played), Fraction(0)) / total
        if without:
            self._see(NO_OUTPUT, without, f"after the tokens {', '.join(map(str, map(list, texts)))}")
            return
        law: dict[tuple[Played, ...], Fraction] = defaultdict(Fraction)
        for run in runs:
            law[tuple(rounds[-1] for rounds in run.played)] += run.mass / total
        target = LookUpModel(self.pair.target, self.pair.vocab_size, alike=0)
        for request, text in enumerate(texts):
            lasts = marginal(law, request)
            self._check_drafts(lasts)
            found: dict[Tokens, Fraction] = defaultdict(Fraction)
            for last, mass in lasts.items():
                found[last.tokens] += mass
            known, words = text, f"after the tokens {list(text)} the next round"
            if request == anew:
                known, words = (), f"after the tokens {list(text)} of another the first round of a request"
            nothing: dict[Tokens, Fraction] = {(): Fraction(1)}
            laws = (_completed(each, target, known, self.pair.draft_length + 1) for each in (found, nothing))
            self._see(f"request {request}", total_variation(*laws), words)
        if self.requests == 2:
            tokens: dict[Texts, Fraction] = defaultdict(Fraction)
            for together, mass in law.items():
                tokens[tuple(last.tokens for last in together)] += mass
            self._see("joint", dependence(tokens), "")

    def _check_drafts(self, lasts: Mapping[Played, Fraction]) -> None:
        """Compare the law of every drafted token with its reported row, given the tokens and rows before."""
        masses: dict[Any, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
        for last, mass in lasts.items():
            for depth, token in enumerate(last.drafted):
                masses[last.drafted[:depth], last.reported[: depth + 1]][token] += mass
        for (_, rows), found in masses.items():
            total = sum(found.values())
            law = {token: mass / total for token, mass in found.items()}
            if total_variation(law, dict(enumerate(rows[-1]))) > REPORTED_TOLERANCE:
                self.sampler.journal.findings.add(WRONG_DRAFTS)

    def _see(self, what: str, distance: Fraction, words: str) -> None:
        self.found[what] = max(self.found.get(what, (Fraction(0), "")), (distance, words))

    def tell(self) -> None:
        beside = f" beside {count_text(self.requests - 1, 'other request')}" if self.requests > 1 else ""
        for what, (distance, words) in self.found.items():
            text = f"{words}{beside} does not have the target's law"
            if what == "joint":
                text = "the tokens of two requests side by side are not independent"
            findings = self.sampler.journal.findings
            if what == NO_OUTPUT and any("has no valid output" in known for _, known in findings):
                continue  # once is enough
            if what == NO_OUTPUT:
                why = min(self.sampler.journal.undefined, default="it returns no tokens")
                text = (
                    f"{words} a round{beside} has no valid output, probability {float(distance):.3g}: {why}"
                )
                self.sampler.journal.findings.add(("rounds", text))
            elif distance > rounding_bound(self.pair):
                self.sampler.journal.findings.add(
                    ("rounds", f"{text}, total variation {float(distance):.3g}")
                )


def _completed(
    law: Mapping[Tokens, Fraction], target: LookUpModel, text: Tokens, length: int
) -> dict[Tokens, Fraction]:
    """Complete outputs with the target up to a length, and return the law of the result."""
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

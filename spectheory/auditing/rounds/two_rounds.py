"""Consecutive rounds: the second and third must draw from the target after the tokens of earlier rounds.

Some defects show only in the second round: a wrong token after a fully accepted path, wrong offsets of
caches, and random numbers kept for the next round.  With several requests of different texts and rows we
check that each continues from its own position with its own cache.

We put requests with certain rows beside one request whose rows leave choices.  So we can follow all branches
of this request, and the number of branches is a sum over requests, not a product.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.joint_laws import dependence, marginal, total_variation
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.rounds.two_calls import Run, Texts, follow_in_a_row, law_of
from spectheory.auditing.subjects.drafting_rounds import (
    REPORTED_TOLERANCE,
    WRONG_DRAFTS,
    DraftingRound,
    LookUpModel,
    Played,
)
from spectheory.auditing.subjects.shipped import Tokens
from spectheory.auditing.tape.decisions import Tape
from spectheory.foundation.documents import count_text
from spectheory.pairs.contexts import all_contexts
from spectheory.pairs.pair import ModelPair

MAX_RUNS_OF_ROUNDS, MAX_RUNS_OF_A_THIRD = 2_000, 100
"""The most runs of a round.  A doubling cache shows in the third, after any two that accept tokens."""


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
        "pair": SIDE_BY_SIDE, "requests": 2, "times": 2,
        "behind": ((OPEN, REJECTED), (REJECTED, ALSO_OPEN), (ALSO_OPEN, ACCEPTED), (ACCEPTED, OPEN)),
    },
    "two rounds of two requests that are both open": {
        "pair": random_dyadic(1, 2, 1), "requests": 2, "times": 2,
        "behind": (((0, 0), (1,)), ((1, 0), (1, 1))),
    },
    "two rounds of three requests": {
        "pair": SIDE_BY_SIDE, "requests": 3, "times": 2,
        "behind": ((OPEN, REJECTED, ACCEPTED), (ACCEPTED, ALSO_OPEN, REJECTED), (REJECTED, ACCEPTED, OPEN)),
    },
    "two rounds of two requests whose texts end alike": {
        "pair": _ending_alike(), "requests": 2, "times": 2,
        "behind": (((0, 0, 1), (1, 0, 1)), ((1, 0, 0), (0, 0, 0))),
    },
    "a new first request beside another": {
        "pair": SIDE_BY_SIDE, "requests": 2, "anew": 0,
        "behind": ((REJECTED, OPEN), (OPEN, REJECTED)),
    },
    "a new second request beside another": {
        "pair": SIDE_BY_SIDE, "requests": 2, "anew": 1,
        "behind": ((ALSO_OPEN, ACCEPTED), (ACCEPTED, OPEN)),
    },
}  # fmt: skip
"""Cases with several requests side by side, as arguments of ``follow_rounds``."""


def follow_rounds(
    sampler: DraftingRound,
    pair: ModelPair,
    max_runs: int = MAX_RUNS_OF_ROUNDS,
    requests: int = 1,
    times: int = 3,
    behind: Sequence[Texts] | None = None,
    anew: int | None = None,
) -> str:
    """Follow rounds from the start of texts.  Findings go to the sampler's journal.

    We check the law of the last round given the tokens of earlier rounds.  Its drafts must have the law of
    the rows that the round reports.  Its tokens, completed with the target, must have the target's law.  The
    tokens of two requests must be independent.

    Args:
        sampler: the round.
        pair: the models.  Their rows differ after every text (``LookUpModel``).
        max_runs: the largest number of runs of a round.
        requests: the number of requests side by side.  Only the signature "round_batch" takes 2 or more.
        times: the number of rounds.
        behind: the texts after which we follow the second round; by default all.
        anew: the index of a request that ends before the last round.  A new request starts in its place.

    Returns:
        As ``follow_in_a_row``.
    """
    rounds = _Rounds(sampler, pair, requests, times, anew)
    most = (max_runs, max_runs, min(max_runs, MAX_RUNS_OF_A_THIRD))[:times]
    try:
        return follow_in_a_row(sampler, rounds.play, rounds.texts, rounds.judge, most, behind, requests)
    finally:  # what was found stays, also where a later round is not followed
        rounds.tell()


@dataclass
class _Rounds:
    """Plays rounds, and keeps, per kind of fault, the law of a round that is farthest from the target's.

    Attributes:
        sampler, pair, requests, anew: as in ``follow_rounds``.
        times: the number of rounds.
        found: kind of fault -> the largest total variation, and the finding.
        without: the largest probability of a round without a valid output, and the finding.
    """

    sampler: DraftingRound
    pair: ModelPair
    requests: int
    times: int
    anew: int | None
    found: dict[str, tuple[Fraction, str]] = field(default_factory=dict)
    without: tuple[Fraction, str] = (Fraction(0), "")

    @property
    def beside(self) -> str:
        return f" beside {count_text(self.requests - 1, 'other request')}" if self.requests > 1 else ""

    def play(self, tape: Tape, times: int) -> list[list[Played]]:
        """The rounds of every request."""
        anew = self.anew if times == self.times else None
        return self.sampler.rounds(tape, self.pair, times, self.requests, tells_texts=True, anew=anew)

    @staticmethod
    def texts(played: Sequence[Sequence[Played]]) -> Texts:
        return tuple(tuple(token for each in rounds for token in each.tokens) for rounds in played)

    def judge(self, number: int, texts: Texts, runs: Sequence[Run]) -> None:
        """Compare the law of the last rounds after texts with the target's.

        The request with index ``anew`` is in its first round.
        """
        if number == 1 < self.times and self.requests == 1:
            return  # the law of one round is judged elsewhere
        law = law_of(runs, lambda run: tuple(rounds[-1] for rounds in run.outputs))
        if () in law:
            said = f"after the tokens {', '.join(map(str, map(list, texts)))} a round{self.beside}"
            self.without = max(self.without, (law[()], said))
            return
        target, length = (
            LookUpModel(self.pair.target, self.pair.vocab_size, alike=0),
            self.pair.draft_length + 1,
        )
        for request, text in enumerate(texts):
            lasts = marginal(law, request)
            self._check_drafts(lasts)
            found: dict[Tokens, Fraction] = defaultdict(Fraction)
            for last, mass in lasts.items():
                found[last.tokens] += mass
            known, words = text, f"after the tokens {list(text)} the next round"
            if request == self.anew and number == self.times:
                known, words = (), f"after the tokens {list(text)} of another the first round of a request"
            nothing: dict[Tokens, Fraction] = {(): Fraction(1)}
            laws = (_completed(each, target, known, length) for each in (found, nothing))
            said = f"{words}{self.beside} does not have the target's law"
            self._see(f"request {request}", total_variation(*laws), said)
        if self.requests == 2:
            tokens = law_of(runs, lambda run: tuple(rounds[-1].tokens for rounds in run.outputs))
            self._see(
                "joint", dependence(tokens), "the tokens of two requests side by side are not independent"
            )

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

    def _see(self, what: str, distance: Fraction, said: str) -> None:
        if distance > rounding_bound(self.pair):
            self.found[what] = max(self.found.get(what, (Fraction(0), "")), (distance, said))

    def tell(self) -> None:
        findings = self.sampler.journal.findings
        for distance, said in self.found.values():
            findings.add(("rounds", f"{said}, total variation {float(distance):.3g}"))
        mass, said = self.without
        if mass and not any("has no valid output" in known for _, known in findings):  # once is enough
            why = min(self.sampler.journal.undefined, default="it returns no tokens")
            findings.add(("rounds", f"{said} has no valid output, probability {float(mass):.3g}: {why}"))


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

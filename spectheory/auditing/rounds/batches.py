"""Batches of requests: each request must have the same law as alone, and all must be independent.

Serving engines verify many requests at once, in one tensor.  Some defects show only if the requests differ: a
row off by one, a random number shared by all requests, or a branch taken for the whole batch.  If an engine
confuses requests, this shows if their tokens, their rows or both are equal.
"""

import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

from torch import Tensor

from spectheory.auditing.rounds.batch_battery import GREEDY, SEEDED, batches_of
from spectheory.auditing.rounds.joint_laws import dependence, marginal, total_variation
from spectheory.auditing.rounds.two_calls import compare_with_the_next
from spectheory.auditing.subjects.shipped import Shipped, Tokens
from spectheory.auditing.subjects.signatures import Request, Row
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError

TOLERANCE, OF_LEARNED = Fraction(1, 10**6), Fraction(1, 10**4)
"""Largest total variation that rounding can cause: torch sums tensors of other shapes in another order.

The second number is for learned laws: we learn the weights of a float32 race to about 10^-5.
"""
MOST_OUTCOMES = 30
"""The most outputs of a batch of a relaxation.

For a lossless sampler, most batches have fewer, because neighbours have one.  A relaxation may leave no
request certain, for example with acceptance rates that do not depend on the rows.
"""
MAX_RUNS_OF_TWO_BATCHES = 10_000
"""The most runs of two calls of a batch.  Requests that draw every number first have 1 296."""


class _Law(NamedTuple):
    """The law of a batch's outputs, the probability of undecided runs, and why runs had no output."""

    masses: Mapping[tuple[Tokens, ...], Fraction]
    undecided: Fraction
    why: str

    def without_output(self, place: int) -> Fraction:
        """The probability that the request at this position has no valid output."""
        return sum((mass for found, mass in self.masses.items() if not found[place]), Fraction(0))

    @property
    def fails(self) -> bool:
        """Whether no request has a valid output in any run."""
        return not any(map(any, self.masses))


BESIDE = "beside other requests ({kinds}) the tokens of a request have another law than alone"
DEPENDENT = "the tokens of requests ({kinds}) are not independent"
NOT_GREEDY = "a greedy request ({kinds}) does not get the likeliest tokens"
NOT_THE_FIRST = (
    "of equally likely tokens a greedy request ({kinds}) does not get the first, as plain decoding does"
)
WITH_A_SEED = "a request with a seed ({kinds}) has another law than without"
NOT_THE_TARGET = "a request without drafts ({kinds}) does not get a token of the target"
NO_OUTPUT = "a request ({kinds}) has no valid output"


@dataclass
class _Judge:
    """Compares laws.  For each sentence, the worst difference becomes one finding.

    Attributes:
        worst: sentence -> the largest total variation, and where it occurs.
        kinds: sentence -> the kinds of batches in which the sentence holds.
        unknown: the largest probability of undecided runs, which may hide a difference.
    """

    sampler: Shipped
    worst: dict[str, tuple[Fraction, str]] = field(default_factory=dict)
    kinds: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    unknown: Fraction = Fraction(0)
    _alone: dict[str, _Law] = field(default_factory=dict)
    _judged: set[str] = field(default_factory=set)
    _ignored: dict[str, bool] = field(default_factory=dict)

    def law(self, rows: Sequence[Any]) -> _Law:
        self.sampler.reasons.clear()
        masses, undecided = self.sampler.batch_law(rows)
        return _Law(masses, undecided, min(self.sampler.reasons, default="it returns no tokens"))

    def ignores_greedy(self, rows: Sequence[Any]) -> bool:
        """Whether the sampler never reads which requests are greedy, and treats them like the others."""
        if "is_greedy" in self.sampler.journal.reads:
            return False
        greedy = next(row for row in rows if row.is_greedy)
        key = _key(greedy)
        if key not in self._ignored:
            laws = [self.law([greedy._replace(is_greedy=is_greedy)]).masses for is_greedy in (True, False)]
            self._ignored[key] = laws[0] == laws[1]
        return self._ignored[key]

    def note(self, text: str, distance: Fraction, undecided: Fraction, kind: str, where: str) -> None:
        is_learned = self.sampler.learns is not None
        tolerance = OF_LEARNED if is_learned else TOLERANCE
        if distance - undecided > tolerance:
            self.kinds[text][kind] = None
            if distance > self.worst.get(text, (Fraction(0), ""))[0]:
                self.worst[text] = distance, where
        elif distance + (0 if is_learned else undecided) > tolerance:
            self.unknown = max(self.unknown, undecided)

    def law_alone(self, row: Any) -> _Law:
        """The law of a request alone, without placeholders after its drafts."""
        request = row._replace(padding=0) if isinstance(row, Row) and len(row.draft_tokens) else row
        key = _key(request)
        if key not in self._alone:
            self._alone[key] = self.law([request])
        return self._alone[key]

    def has_many_outcomes(self, rows: Sequence[Any]) -> bool:
        """Whether the requests have so many outputs together, under a relaxation, that we leave them out."""
        is_stated = self.sampler.relaxation is not None
        return is_stated and prod(len(self.law_alone(row).masses) for row in rows) > MOST_OUTCOMES

    def alone(self, row: Any, kind: str) -> _Law:
        """Return the law of a request alone.  The first time, also judge this law."""
        law = self.law_alone(row)
        if _key(row) not in self._judged:
            self._judged.add(_key(row))
            found = marginal(law.masses, 0)
            if self.has_no_output([row], law, kind):
                return law
            if isinstance(row, Row) and row.seed is not None:
                without = marginal(self.law_alone(row._replace(seed=None)).masses, 0)
                self.note(WITH_A_SEED, total_variation(found, without), law.undecided, kind, _words([row], 0))
            for text, wanted in self.stated(row):
                where, tokens = _words([row], 0), (_tokens(found), _tokens(wanted))
                where += f": {tokens[0]} in place of {tokens[1]}" if tokens[0] != tokens[1] else ""
                self.note(text, total_variation(found, wanted), law.undecided, kind, where)
        return law

    def stated(self, row: Any) -> Iterator[tuple[str, dict[Tokens, Fraction]]]:
        """The law of a greedy request, or one without drafts, and the finding if the law found differs."""
        is_greedy = isinstance(row, Row) and row.is_greedy
        if self.sampler.relaxation is not None or not (is_greedy or not _num_drafted(row)):
            return
        drafts, refused = row[0].reshape(-1).tolist(), self.sampler.journal.refused
        target = row[1].reshape(-1, row[1].shape[-1])
        try:
            rows = [self.sampler.stated_row(drafts[:depth], each) for depth, each in enumerate(target)]
        except InvalidInputError as error:
            why = f"the stated law of requests that are greedy or have no drafts: {error}"
            refused += [] if why in refused else [why]
        else:
            if is_greedy:
                is_tied = any(each.count(max(each)) > 1 for each in rows)
                yield NOT_THE_FIRST if is_tied else NOT_GREEDY, {_likeliest(rows, drafts): Fraction(1)}
            else:
                yield NOT_THE_TARGET, {(token,): prob for token, prob in enumerate(rows[0])}

    def has_no_output(self, rows: Sequence[Any], law: _Law, kind: str) -> bool:
        """Whether some run ends without a valid output of a request.  If so, note a finding."""
        missing = [law.without_output(place) for place in range(len(rows))]
        if len(rows) > 1 and min(missing) == max(missing) > 0:  # the whole call fails
            self.note(NO_OUTPUT, missing[0], Fraction(0), kind, f"{_words(rows)}: {law.why}")
            return True
        for place, mass in enumerate(missing):
            if mass:
                self.note(NO_OUTPUT, mass, Fraction(0), kind, f"{_words(rows, place)}: {law.why}")
        return any(missing)

    def judge(self, kind: str, rows: Sequence[Any], together: _Law) -> None:
        """Compare the law of each request in a batch with its law alone, and check independence."""
        alone = [self.alone(row, kind) for row in rows]
        if self.has_no_output(rows, together, kind):
            return
        for place, law in enumerate(alone):
            distance = total_variation(marginal(together.masses, place), marginal(law.masses, 0))
            self.note(BESIDE, distance, together.undecided + law.undecided, kind, _words(rows, place))
        # The error of the joint law, and of the marginal law of each request.
        undecided = (len(rows) + 1) * together.undecided
        self.note(DEPENDENT, dependence(together.masses), undecided, kind, _words(rows))

    def findings(self) -> Iterator[tuple[str, str]]:
        for text, (distance, where) in self.worst.items():
            said = text.replace("{kinds}", ", ".join(self.kinds[text]))
            measure = "probability" if text == NO_OUTPUT else "total variation"
            yield "batch", f"{said}, {measure} {float(distance):.3g} {where}"


def audit_batches(sampler: Shipped, *, stop_at_first: bool = False) -> tuple[str, ...]:
    """Compare the exact laws of requests in batches and alone.  Findings go to the sampler's journal.

    After the likeliest outcome of the first batch we run it again, which must have the same law.  A greedy
    request must return the most likely tokens, and a request without drafts a token of the target, unless the
    sampler states another law.  We leave out greedy requests if the sampler treats them like others.  We
    leave out batches that mix shapes, or have no drafts, if the sampler fails in all runs of all batches that
    mix shapes.  The journal lists what we left out.

    Args:
        sampler: a sampler whose signature has batches.
        stop_at_first: whether to stop at the first batch that shows a defect.

    Returns:
        The kinds of batches.

    Raises:
        NotEnumerableError: no difference is found, and none could be, because random numbers are combined.
    """
    judge, journal = _Judge(sampler), sampler.journal
    seen: dict[str, None] = {}
    failed: list[tuple[str, Sequence[Any], _Law]] = []
    mixes_shapes, left_out = False, 0
    batches = batches_of(sampler)
    try:
        for number, (kind, rows) in enumerate(batches):
            if stop_at_first and (judge.worst or journal.findings):
                break
            if kind == GREEDY and judge.ignores_greedy(rows):
                continue
            if kind == SEEDED and "seed" not in journal.reads:
                continue
            if judge.has_many_outcomes(rows):
                left_out += 1
                continue
            together, is_mixed = judge.law(rows), len({row[0].shape for row in rows}) > 1
            if together.fails and (is_mixed or not any(map(_num_drafted, rows))):
                failed.append((kind, rows, together))
                continue
            seen[kind] = None
            mixes_shapes |= is_mixed
            judge.judge(kind, rows, together)
            if not number and not together.fails and sampler.learns is None:
                why = compare_with_the_next(
                    sampler,
                    lambda tape, times: [sampler.on_batch(rows, times)(tape)],  # noqa: B023
                    MAX_RUNS_OF_TWO_BATCHES,
                    behind=[max(together.masses, key=lambda texts: together.masses[texts])],
                )
                if why:
                    journal.refused.append(f"two calls in a row of a batch: {why}")
        if failed and not mixes_shapes and not judge.worst:
            why = failed[0][-1].why
            journal.refused.append(f"batches of requests with other numbers of drafts, or of none: {why}")
        for kind, requests, law in failed if mixes_shapes else ():
            judge.has_no_output(requests, law, kind)
    finally:  # what was found stays, also where a later batch is not followed
        journal.findings.update(judge.findings())
    if seen and GREEDY not in seen and any(kind == GREEDY for kind, _ in batches) and not judge.worst:
        journal.refused.append("greedy requests: the sampler does not tell them from others")
    if left_out and not judge.worst:
        journal.refused.append(f"batches of requests that have too many outputs together: {left_out} of them")
    if judge.unknown and not judge.worst:
        raise NotEnumerableError(
            "random numbers are combined, and the laws of requests in batches are known to "
            f"{float(judge.unknown):.3g} only"
        )
    return tuple(seen)


def _key(row: Any) -> str:
    """Key of a request, from its numbers.  Equal requests have one law."""
    return str([(tuple(part.shape), part.tolist()) if isinstance(part, Tensor) else part for part in row])


def _likeliest(rows: Sequence[list[Fraction]], drafts: Sequence[int]) -> Tokens:
    """The output of greedy decoding: the drafted tokens while they are most likely, and one more token."""
    likeliest = [row.index(max(row)) for row in rows]
    wrong = [place for place, token in enumerate(drafts) if token != likeliest[place]]
    return tuple(likeliest[: min(wrong, default=len(drafts)) + 1])


def _num_drafted(row: Any) -> int:
    """The number of drafted tokens, L."""
    return int(row[0].shape[-1])


def _tokens(law: Mapping[Tokens, Fraction]) -> str:
    """The likeliest tokens of a law."""
    tokens, _ = max(law.items(), key=operator.itemgetter(1))
    return str(list(tokens))


def _words(rows: Sequence[Any], place: int | None = None) -> str:
    """Name the requests in words, such as "for request 2 of 3 with drafts 1, 2, 0"."""

    def drafts(row: Any) -> str:
        if isinstance(row, Request):
            return f"{count_text(len(row.paths), 'path')} of {_num_drafted(row)}"
        placeholders = f"+{count_text(row.padding, 'placeholder')}" if row.padding else ""
        seeded = "" if row.seed is None else " seeded"
        return f"{_num_drafted(row)}{placeholders}{' greedy' if row.is_greedy else ''}{seeded}"

    whose = "for" if place is None else f"for request {place + 1} of {len(rows)} with"
    return f"{whose} drafts {', '.join(map(drafts, rows))}"

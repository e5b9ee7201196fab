"""Rounds: a drafter and its verifier in one call, which reveals random numbers that they share.

If we audit a verifier alone, its drafts are independent of its random numbers.  But the drafter may use the
same numbers, or report draft probabilities other than its own.  Only an audit of both together shows this.

We follow the joint law of the drafted path and the output of a round.  Then we judge the round as a verifier:
its draft model is the measured law of the drafts, and its law given a path is the conditional law.
"""

import copy
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from spectheory.auditing.following.intercept import Journal
from spectheory.auditing.subjects.asked import Numbers, Part, Question
from spectheory.auditing.subjects.shipped import Shipped, Tokens
from spectheory.auditing.subjects.signatures import ROUND, Call
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.arrays import normalise
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.exact_numbers import exact_number
from spectheory.pairs.contexts import context_number, context_text
from spectheory.pairs.pair import ModelPair

REPORTED_TOLERANCE = Fraction(1, 10**5)
"""A total variation of a reported row that rounding can cause."""
WRONG_DRAFTS = "contract", "drafts do not have the law of the rows that are reported for them"
"""The finding where the difference is larger."""
Reported = tuple[tuple[Fraction, ...], ...]
"""The rows reported for the drafted tokens of a run, [L][V]."""
Model = Callable[[Sequence[int]], torch.Tensor]
"""A text -> the probabilities of its next token, [V], float32."""
TEXTS = 1 << 16
"""The number of texts with distinct rows: sixteenths of so many parts are exact in float32."""
SPREAD = 40_503
"""Odd, so that multiples of different texts differ; 2^16 over the golden ratio, so that they differ much."""


class Played(NamedTuple):
    """The result of one round.

    Attributes:
        drafted: the L drafted tokens.
        reported: the draft probabilities that the round reports for them, [L][V].
        tokens: the accepted tokens and the correction token.
    """

    drafted: Tokens
    reported: Reported
    tokens: Tokens


NO_ROUND: tuple[Played, ...] = ()
"""The label of a call without a valid round."""


class DraftingRound(Shipped):
    """A function that drafts and verifies, with its random numbers replaced.

    Args:
        function: (text, target, draft, draft_length, generator) -> (drafted tokens, their draft
            probabilities [L, V], tokens).  The models take a text and return the probabilities of the next
            token, [V].  A text without tokens starts a new request.
        name: by default the function's.
        signature: "round", or "round_batch" for a function that takes a list of texts and returns a list of
            such tuples.
        options: further arguments of ``Shipped``.

    Example:
        >>> import torch
        >>> from spectheory import certify, instances
        >>> def draw_again(text, target, draft, draft_length, generator):
        ...     '''Drafts one token, and takes it if it is the one that the target draws.'''
        ...     row = draft(text)
        ...     token, wanted = (int(torch.multinomial(probs, 1)) for probs in (row, target(text)))
        ...     after = int(torch.multinomial(target([*text, token]), 1))
        ...     return [token], row[None], [wanted, after] if token == wanted else [wanted]
        >>> asked, pair = DraftingRound(draw_again).prepared(instances.bernoulli("1/4", "1/2"))
        >>> print(certify(asked, pair).block_efficiency)
        3/2
    """

    kind = "round"
    _pair: ModelPair
    reports_drafts = True
    """Whether a round says from which rows it drafts."""

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, signature: str = ROUND, **options: Any
    ) -> None:
        super().__init__(function, signature, name, **options)
        self._given: Mapping[Tokens, Mapping[Tokens, Fraction]] = {}
        self._error = Fraction(0)
        self._known: dict[int, tuple[Shipped, ModelPair]] = {}

    def prepared(self, pair: ModelPair) -> tuple[Shipped, ModelPair]:
        """Follow the round.  Return it on this pair as a verifier, and the pair with the measured drafts."""
        if id(pair) not in self._known:
            self._judge(pair, *self.follow(self._one_round(pair), NO_ROUND))
        return self._known[id(pair)]

    def forget(self) -> None:
        self._judged(*self.follow(self._one_round(self._pair), NO_ROUND))

    def law_given(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> Mapping[Tokens, Fraction]:
        """The probability of every output given a drafted path, () for runs without a valid output."""
        self.undecided = max(self.undecided, self._error)
        return self._given.get(tuple(paths[0].tolist()), {(): Fraction(1)})

    def _one_round(self, pair: ModelPair) -> Callable[[Numbers], tuple[Played, ...]]:
        return lambda numbers: tuple(self.rounds(numbers, pair, 1)[0])

    def asked(self, question: Question) -> Iterator[Part]:
        """One call: the round drafts by itself.  Its label has drafts, reported rows and tokens."""
        yield Part(Fraction(1), self._one_round(question.pair), "a round")

    def keep(
        self, question: Question, laws: Sequence[Mapping[tuple[Played, ...], Fraction]], within: Fraction
    ) -> None:
        self._judge(question.pair, laws[0], Fraction(0), within)

    def _judge(
        self,
        pair: ModelPair,
        law: Mapping[Any, Fraction],
        undecided: Fraction,
        within: Fraction = Fraction(0),
    ) -> None:
        """Keep the round on this pair as a verifier, and the pair with the measured drafts."""
        asked = copy.copy(self)
        asked._pair, asked._known = pair, {}
        drafted = asked._judged(law, undecided, within)
        self._known[id(pair)] = asked, ModelPair(self.wanted(pair).target, drafted, pair.vocab)

    def judged_on(self, pair: ModelPair) -> ModelPair:
        return self.wanted(pair)

    def tokens_of(self, label: tuple[Played, ...]) -> Tokens:
        return label[0].tokens if label else ()

    def _judged(
        self,
        law: Mapping[tuple[Played, ...], Fraction],
        undecided: Fraction,
        within: Fraction = Fraction(0),
    ) -> tuple[np.ndarray, ...]:
        """Compare the drafts with their reported probabilities, and return the law of the drafts by depth."""
        pair, self._error = self._pair, undecided
        undefined = law.get((), Fraction(0))
        played = [(label[0], mass) for label, mass in law.items() if label]
        if not played:
            self._given = {}
            return pair.draft
        before = set(self.journal.findings)
        told = [((round_.drafted, round_.reported), mass) for round_, mass in played]
        journal = self.journal if self.reports_drafts else Journal()
        try:
            drafts, _ = laws_of_drafts(told, pair.draft, journal, within)
        except InvalidOutcomeError as error:
            self.journal.findings.add(("contract", str(error)))
            drafts = pair.draft
        if undefined:  # given an output, right drafts can have another law
            self.journal.findings.intersection_update(before)
        given: dict[Tokens, dict[Tokens, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
        for round_, mass in played:
            given[round_.drafted][round_.tokens] += mass
        for outputs in given.values():
            total = sum(outputs.values())
            for tokens in outputs:
                outputs[tokens] *= (1 - undefined) / total
            if undefined:  # such a run has no drafts: its probability is shared by all paths
                outputs[()] = undefined
        self._given = given
        return drafts

    def rounds(
        self,
        tape: Numbers,
        pair: ModelPair,
        times: int,
        requests: int = 1,
        *,
        tells_texts: bool = False,
        anew: int | None = None,
    ) -> list[list[Played]]:
        """Run consecutive rounds of requests side by side, and return the rounds of each request.

        Args:
            tape: the tape of the run.
            pair: the models.
            times, requests: the numbers of rounds and of requests.
            tells_texts: whether rows differ after every text (``LookUpModel``), or only after long texts.
            anew: the index of a request that ends before the last round.  A new request starts in its place.
        """
        alike = 0 if tells_texts else None
        target, draft = (LookUpModel(levels, pair.vocab_size, alike) for levels in (pair.target, pair.draft))
        play: Callable[..., Any] = self.sampler
        if self.signature_name == ROUND:
            play = lambda texts, *others: [self.sampler(texts[0], *others)]  # noqa: E731
        texts: list[list[int]] = [[] for _ in range(requests)]
        returned: list[list[Any]] = [[] for _ in texts]

        def once(call: Call) -> None:
            if anew is not None and tape.call == times - 1:
                texts[anew] = []
            lent = [list(text) for text in texts]
            found = list(islice(play(lent, target, draft, pair.draft_length, call.generator), requests + 1))
            if lent != texts:
                self.journal.findings.add(("contract", "its argument text is changed in place"))
            for text, rounds, (drafted, reported, tokens) in zip(texts, returned, found, strict=True):
                # Here, so that the decisions of a round are made before those of the next one.
                rounds.append((self.tokens(drafted), reported, self.tokens(tokens)))
                text += rounds[-1][-1]

        self.in_a_row(tape, times, once)
        return [[self._checked(pair, *round_) for round_ in rounds] for rounds in returned]

    def _checked(self, pair: ModelPair, path: Tokens, reported: Any, output: Tokens) -> Played:
        shape = pair.draft_length, pair.vocab_size
        if len(path) != pair.draft_length:
            raise NotEnumerableError(
                f"{self.words} drafted {count_text(len(path), 'token')} and was asked for "
                f"{pair.draft_length}; choose the pairs with --draft-length, or draft as many as asked"
            )
        rows = reported
        try:
            rows = torch.as_tensor(reported)
            is_valid = rows.shape == shape and not rows.is_complex() and bool(rows.isfinite().all())
        except (TypeError, ValueError, RuntimeError):
            is_valid = False
        if not is_valid:
            raise InvalidOutcomeError(
                f"{self.words} reports draft probabilities that are not finite real numbers of shape "
                f"{shape}: {type(reported).__name__} {tuple(getattr(rows, 'shape', ()))}"
            )
        self.credited_path(np.array([path]), output, pair.vocab_size)
        return Played(path, tuple(tuple(map(exact_number, row)) for row in rows.double().tolist()), output)


def laws_of_drafts(
    runs: Iterable[tuple[tuple[tuple[int, ...], Reported], Fraction]],
    levels: Sequence[np.ndarray],
    journal: Journal,
    within: Fraction = Fraction(0),
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The exact rows of drafted tokens, and the reported rows, [V^i, V] for i < L.

    Args:
        runs: the drafted tokens [L] and the reported rows [L][V] of every run, with its probability.
        levels: the rows at contexts that are never drafted.
        journal: receives a finding if a reported row is not the law of the tokens.
        within: the error of the law of the runs, as a total variation.
    """
    size = levels[0].shape[-1]
    masses: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    told: dict[tuple[int, ...], tuple[Fraction, ...]] = {}
    for (tokens, rows), probability in runs:
        for depth, row in enumerate(rows):
            prefix = tokens[:depth]
            masses[tokens[: depth + 1]] += probability
            if told.setdefault(prefix, row) != row:
                raise InvalidOutcomeError(f"the generator reports two rows at '{context_text(prefix)}'")
    law, reported = (tuple(level.copy() for level in levels) for _ in range(2))
    for prefix, row in told.items():
        depth, number = len(prefix), context_number(prefix, size)
        drawn = np.array([masses[(*prefix, token)] for token in range(size)], dtype=object)
        law[depth][number] = normalise(drawn)
        said = np.array(row, dtype=object)
        reported[depth][number] = normalise(said)
        error = REPORTED_TOLERANCE + within / drawn.sum()
        if abs(law[depth][number] - said).sum() / 2 > error:  # negative rows, and other sums
            journal.findings.add(WRONG_DRAFTS)
    return law, reported


class LookUpModel:
    """A model that looks up its rows; no two long texts have the same row.

    For a long text, we look up the row after its first tokens.  Then we move a share of the most likely
    token's probability to another token of the row.  The index of the whole text determines the share, which
    is at most one half.  So certain rows stay certain, and all other rows differ for up to 2^16 texts.

    Args:
        levels: the rows by depth, [V^depth, V] each.
        vocab_size: V.
        alike: texts of at most this many tokens keep their row; by default all texts that have one.

    Example:
        >>> from spectheory import instances
        >>> pair = instances.two_token(1)
        >>> LookUpModel(pair.target, 2)([1])
        tensor([0.3333, 0.6667])
        >>> LookUpModel(pair.target, 2)([1, 1])
        tensor([0.4421, 0.5579])
    """

    def __init__(self, levels: Sequence[np.ndarray], vocab_size: int, alike: int | None = None) -> None:
        self.levels, self.vocab_size = levels, vocab_size
        self.alike = len(levels) - 1 if alike is None else alike

    def row(self, text: Sequence[int]) -> np.ndarray:
        """The exact probabilities of the next token."""
        known = tuple(map(operator.index, text))
        for token in known:
            if not 0 <= token < self.vocab_size:  # as an embedding does: no text has the row of another
                raise IndexError(f"a model is asked about the token {token}, not in 0..{self.vocab_size - 1}")
        depth = min(len(known), len(self.levels) - 1)
        row: np.ndarray = self.levels[depth][context_number(known[:depth], self.vocab_size)]
        if len(known) <= self.alike:
            return row
        number = context_number((1, *known), self.vocab_size)
        likeliest = max(range(self.vocab_size), key=lambda token: row[token])
        others = [token for token in np.flatnonzero(row).tolist() if token != likeliest]
        if others:
            moved = row[likeliest] * Fraction(1 + number * SPREAD % TEXTS, 2 * TEXTS)
            row = row.copy()
            row[likeliest] -= moved
            row[others[number % len(others)]] += moved
        return row

    def __call__(self, text: Sequence[int]) -> torch.Tensor:
        return torch.tensor(self.row(text).astype(float), dtype=torch.float32)

"""Exact laws of several iterations: the number of decoded tokens, and the law of these tokens.

An iteration is one call of the target.  The next iteration starts after its correction token.  A verifier
that is lossless for one call is lossless for any number of calls (theory.md Statement 1.4).

Some verifiers are lossless only with a distribution modification (theory.md Statement 4.5); they have a
method ``modified_target_rows``.  After an iteration, the target rows are modified at every context fewer than
L tokens after its start, wherever it stopped.  The next iteration uses these rows.  If it modifies its target
too, it modifies these rows further.

N(i) is the number of tokens decoded in i iterations.  Block verification does not maximise E[N(i)] for i >= 2
(theory.md Statement 4.6), but it decodes n tokens in the fewest calls on average (Statement 4.9).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spectheory.exact.law import DEFAULT_MAX_TUPLES, OutputLaw, output_law
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.exact_numbers import Number, float_tolerance
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_count
from spectheory.pairs.contexts import Context, context_number
from spectheory.pairs.drafts import DraftProcess, PerPath
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.extension import ExtendedPair
from spectheory.pairs.pair import ModelPair
from spectheory.verification.modification import modified_rows
from spectheory.verification.resolve import find_verifier, in_arithmetic_of
from spectheory.verification.verifier import Verifier

ROUNDING = 1e-12
"""Largest probability of stops without a correction token that we attribute to rounding of float rows."""


def modified_pair(
    verifier: str | Any,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
) -> ModelPair:
    """Compute the pair after one iteration, with the target rows at depths 1..L-1 modified by the verifier.

    The next iteration uses the part of this pair below the output of the first.  A verifier without
    ``modified_target_rows`` does not change the pair.  If a modified row is undefined, the row is not changed
    (``modification``).

    Raises:
        InvalidInputError: the verifier does not accept the draft process, or it modifies the target and uses
            several paths with different draft models.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
        >>> print(modified_pair(GreedyBlock(), instances.two_token(2)).target[1][1])  # after B
        [Fraction(0, 1) Fraction(1, 1)]
    """
    process, found = draft_process(drafts), find_verifier(verifier)
    process.check(pair)
    _check_process(found, process, with_modification=True)
    modify = found.modified_target_rows
    if modify is None:
        return pair
    # The rows from which the drafts were drawn.  All paths share the draft of the first (_check_process).
    drafted = ModelPair(pair.target, process.drafter(pair, 0).draft, pair.vocab)
    target = list(pair.target)
    for depth in range(1, pair.draft_length):
        target[depth] = modified_rows(
            modify,
            drafted.target[depth],
            drafted.draft[depth],
            drafted.target_path_probs(depth),
            drafted.draft_path_probs(depth),
            process.num_drafts,
        )
    return ModelPair(tuple(target), pair.draft, pair.vocab)


def completed_law(
    verifier: str | Any,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
) -> np.ndarray:
    """Compute the law of one iteration's output, completed to L+1 tokens with the modified target.

    For ``greedy_block`` it is p_{L+1}.  The first L tokens follow p_L by block2024 Lemma 8, and the last one
    is drawn from the unmodified row of the target.

    Args:
        verifier, pair, drafts: as in ``modified_pair``.

    Returns:
        [V^(L+1)], in the numbering of ``ModelPair``.

    Raises:
        InvalidInputError: as in ``modified_pair``.
    """
    law = _defined(output_law(verifier, pair, drafts))
    modified = modified_pair(law.verifier, law.pair, drafts=law.process)
    return replace(law, pair=modified).completed_law


def _defined(law: OutputLaw) -> OutputLaw:
    if law.undefined > float_tolerance(law.pair, ROUNDING):
        raise InvalidOutcomeError(
            f"with probability {law.undefined} the verifier stops where its correction token is 0/0; "
            "`certify` shows the defect of one iteration, further iterations are not defined"
        )
    return law


def decoded_tokens_law(
    verifier: str | Any,
    pair: ModelPair,
    num_iterations: int,
    *,
    drafts: int | DraftProcess = 1,
    draft_length: int | None = None,
    memory: int | None = None,
    with_modification: bool = True,
    max_tuples: int = DEFAULT_MAX_TUPLES,
) -> tuple[np.ndarray, ...]:
    """Compute the law of N(i), the number of tokens decoded in i iterations, for i = 1..``num_iterations``.

    Args:
        verifier: a name or any object with ``outcome``.
        pair: the models, deep enough for every context that can be reached.  With ``memory``, or if the pair
            is context-free, we continue it beyond its depth.
        num_iterations: number of iterations.
        drafts: K, for paths drafted i.i.d., or another draft process except ``PerPath``; the same in every
            iteration.  A tree has one width per token of ``draft_length``.
        draft_length: L of every iteration; by default the draft length of the pair.
        memory: number of last tokens on which the rows depend (0: none; 1: a Markov chain), by default 0 for
            context-free pairs.  We check that the rows depend on no more, and continue the pair accordingly.
        with_modification: whether to modify the target between iterations if the verifier does so.
        max_tuples: largest number of tuples of drafted paths to enumerate per context.

    Returns:
        One array per i; entry n is P(N(i) = n), n = 0..i(L+1).

    Raises:
        InvalidInputError: the pair is not deep enough (the message gives the depth needed); its rows depend
            on more than ``memory`` tokens; the draft process does not fit the verifier, the pair or the draft
            length; or the verifier is bound to a pair that differs from the pair of an iteration.

    Example:
        >>> from spectheory import instances
        >>> first, second = decoded_tokens_law("block", instances.two_token(1), 2)
        >>> print(first, second[2])
        [Fraction(0, 1) Fraction(1, 3) Fraction(2, 3)] 1/9
        >>> from spectheory.pairs.drafts import WithoutReplacement
        >>> print(*decoded_tokens_law("multi_round_without_replacement", instances.two_token(1), 1,
        ...                           drafts=WithoutReplacement((2,))))
        [Fraction(0, 1) Fraction(0, 1) Fraction(1, 1)]
    """
    check_count("num_iterations", num_iterations)
    decoding = _Decoding(verifier, pair, drafts, draft_length, memory, with_modification, max_tuples)
    longest = decoding.draft_length + 1
    decoding.check_depth((num_iterations - 1) * longest)
    reached = {_START: np.full(1, decoding.zero + 1)}
    laws = []
    for iteration in range(1, num_iterations + 1):
        after: dict[_State, np.ndarray] = {}
        for state, counts in reached.items():
            for (following, tokens), prob in decoding.transitions(state).items():
                if following not in after:
                    after[following] = np.full(iteration * longest + 1, decoding.zero)
                after[following][tokens : tokens + len(counts)] += counts * prob
        reached = after
        laws.append(sum(reached.values(), np.full(iteration * longest + 1, decoding.zero)))
    return tuple(laws)


def expected_decoded_tokens(
    verifier: str | Any, pair: ModelPair, num_iterations: int, **options: Any
) -> tuple[Any, ...]:
    """Compute E[N(i)], in tokens, for i = 1..``num_iterations``.  The first entry is the block efficiency."""
    laws = decoded_tokens_law(verifier, pair, num_iterations, **options)
    return tuple((law * np.arange(len(law))).sum() for law in laws)


@dataclass(frozen=True, eq=False)
class TokensLaw:
    """The law of the first m decoded tokens, and the target's law.

    Attributes:
        law: [V^m], law of the decoded tokens.
        target: [V^m], the target's law p_m.
    """

    law: np.ndarray
    target: np.ndarray

    def __bool__(self) -> bool:
        raise no_verdict(self, ".total_variation")

    @property
    def total_variation(self) -> Number:
        """Half the sum of |law - target|; zero for a procedure that is lossless over iterations."""
        return np.abs(self.law - self.target).sum() / 2


def first_tokens_law(
    verifier: str | Any,
    pair: ModelPair,
    num_tokens: int,
    num_iterations: int | None = None,
    **options: Any,
) -> TokensLaw:
    """Compute the law of the first m tokens decoded in several iterations.

    If the iterations decode fewer than m tokens, the other tokens are drawn from the target of the next
    iteration.  With ``num_iterations`` >= m this never occurs, as every iteration decodes at least one token.

    Args:
        verifier, pair: as in ``decoded_tokens_law``.
        num_tokens: m.
        num_iterations: number of iterations; by default m.
        options: ``drafts``, ``draft_length``, ``memory``, ``with_modification`` and ``max_tuples`` as in
            ``decoded_tokens_law``.

    Raises:
        InvalidInputError: as in ``decoded_tokens_law``.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
        >>> pair = instances.two_token(2)
        >>> print(first_tokens_law(GreedyBlock(), pair, 3).total_variation)
        0
        >>> print(first_tokens_law(GreedyBlock(), pair, 3, with_modification=False).total_variation)
        1/9
    """
    check_count("num_tokens", num_tokens)
    iterations = num_tokens if num_iterations is None else check_count("num_iterations", num_iterations)
    decoding = _Decoding(verifier, pair, **options)
    size, zero = pair.vocab_size, decoding.zero
    decoding.check_depth(min((iterations - 1) * (decoding.draft_length + 1), num_tokens - 1), num_tokens)
    law = np.full(size**num_tokens, zero)
    # Map from (text, state) to the probability that exactly this text is decoded and the state is reached.
    reached: dict[tuple[Context, _State], Any] = {((), _START): zero + 1}
    for _ in range(iterations):
        after: dict[tuple[Context, _State], Any] = defaultdict(lambda: zero)
        for (text, state), prob in reached.items():
            for output, following, mass in decoding.outputs(state):
                longer = text + output
                if len(longer) >= num_tokens:
                    law[context_number(longer[:num_tokens], size)] += prob * mass
                else:
                    after[longer, following] += prob * mass
        reached = after
    for (text, state), prob in reached.items():
        rest = num_tokens - len(text)
        first = context_number(text, size) * size**rest
        law[first : first + size**rest] += prob * decoding.target_law(state, rest)
    return TokensLaw(law, decoding.target_law(_START, num_tokens))


Level = tuple[tuple[Any, ...], ...]
"""Target rows at all contexts of one depth."""


@dataclass(frozen=True)
class _State:
    """The last tokens on which the models' rows depend, and the modified target rows of the next depths."""

    context: Context
    pending: tuple[Level, ...] = ()


_START = _State(())


class _Decoding:
    """Computes iterations of one verifier on one pair, and caches the outputs of every state."""

    def __init__(
        self,
        verifier: str | Any,
        pair: ModelPair,
        drafts: int | DraftProcess = 1,
        draft_length: int | None = None,
        memory: int | None = None,
        with_modification: bool = True,
        max_tuples: int = DEFAULT_MAX_TUPLES,
    ) -> None:
        self.verifier, process = find_verifier(verifier), draft_process(drafts)
        _check_process(self.verifier, process, with_modification)
        self.with_modification = with_modification and self.verifier.modified_target_rows is not None
        self.max_tuples = max_tuples
        if isinstance(process, PerPath):
            raise InvalidInputError(
                "laws of several calls take the draft model of the pair, not one per path; give K or a tree"
            )
        pair = pair.normalised()
        self.pair, self.process = in_arithmetic_of(self.verifier, pair, process)
        self.models = ExtendedPair(pair, draft_length, memory)
        self.draft_length = self.models.draft_length
        process.draws(self.draft_length)  # refuses a tree of another length
        self._outputs: dict[_State, list[tuple[Context, _State, Any]]] = {}
        self._transitions: dict[_State, dict[tuple[_State, int], Any]] = {}

    @cached_property
    def zero(self) -> Any:
        return self.pair.target[0][0, 0] * 0

    def check_depth(self, decoded: int, num_tokens: int = 0) -> None:
        """Refuse a pair that is not deep enough for an iteration that starts after ``decoded`` tokens."""
        self.models.check_depth(max(decoded + self.draft_length, num_tokens - 1))

    def outputs(self, state: _State) -> list[tuple[Context, _State, Any]]:
        """List the outputs of an iteration: (accepted prefix + correction token, next state, probability)."""
        if state not in self._outputs:
            here = self._pair_at(state)
            law = _defined(output_law(self.verifier, here, self.process, max_tuples=self.max_tuples))
            modified = modified_pair(self.verifier, here, self.process) if self.with_modification else here
            self._outputs[state] = [
                (output, self._after(state, modified, output, int(number)), masses[number])
                for length, masses in enumerate(law.masses, start=1)
                for number in np.flatnonzero(masses != 0)
                for output in [here.context(length, int(number))]
            ]
        return self._outputs[state]

    def transitions(self, state: _State) -> dict[tuple[_State, int], Any]:
        """Compute the joint law of (next state, number of decoded tokens) of an iteration."""
        if state not in self._transitions:
            grouped: dict[tuple[_State, int], Any] = defaultdict(lambda: self.zero)
            for output, following, mass in self.outputs(state):
                grouped[following, len(output)] += mass
            self._transitions[state] = dict(grouped)
        return self._transitions[state]

    def target_law(self, state: _State, num_tokens: int) -> np.ndarray:
        law = np.full(1, self.zero + 1)
        for level in self._target_levels(state, num_tokens):
            law = (law[:, None] * level).ravel()
        return law

    def _after(self, state: _State, modified: ModelPair, output: Context, number: int) -> _State:
        """Compute the state after ``output``; ``number`` is its index among the contexts of its depth."""
        context = state.context
        for token in output:
            context = self.models.follow(context, token)
        if not self.with_modification:
            return _State(context)
        size = modified.vocab_size
        pending = []
        for below, level in enumerate(modified.target[len(output) : self.draft_length]):
            rows = level[number * size**below : (number + 1) * size**below]
            pending.append(tuple(tuple(row) for row in rows))
        own = self.models.levels_below(self.pair.target, context, len(pending))
        # Drop rows equal to the unmodified ones, so that equal states compare equal.
        while pending and pending[-1] == tuple(tuple(row) for row in own[len(pending) - 1]):
            pending.pop()
        return _State(context, tuple(pending))

    def _pair_at(self, state: _State) -> ModelPair:
        draft = tuple(self.models.levels_below(self.pair.draft, state.context, self.draft_length))
        target = tuple(self._target_levels(state, self.draft_length + 1))
        return ModelPair(target, draft, self.pair.vocab)

    def _target_levels(self, state: _State, depths: int) -> list[np.ndarray]:
        own = self.models.levels_below(self.pair.target, state.context, depths)
        for depth, level in enumerate(state.pending[:depths]):
            own[depth] = np.array(level, dtype=own[depth].dtype)
        return own


def _check_process(verifier: Verifier, process: DraftProcess, with_modification: bool) -> None:
    verifier.bind(process)
    modifies = with_modification and verifier.modified_target_rows is not None
    if modifies and isinstance(process, PerPath) and process.num_drafts > 1 and not verifier.single_path:
        raise InvalidInputError(
            f"verifier {verifier.name!r} modifies the target by one draft row, and each of the "
            f"{process.num_drafts} paths has its own draft model; use another draft process, or "
            "with_modification=False"
        )

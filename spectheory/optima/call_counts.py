"""Optima over several target calls: the most tokens in i calls, and the fewest calls for n tokens.

One path is drafted per call.  The verifiers are lossless in every call, given all calls before it (theory.md
Statement 4.8).  Block verification needs the fewest calls for every n.  For one call it also decodes the most
tokens (theory.md Statements 4.6 and 4.9).
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spectheory.foundation.documents import both, number_text
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.foundation.results import Result, Templates, no_verdict
from spectheory.foundation.validation import check_count
from spectheory.pairs.contexts import Context, numbered_context
from spectheory.pairs.extension import ExtendedPair
from spectheory.pairs.pair import ModelPair, check_pair


@dataclass(frozen=True, eq=False, repr=False)
class SeveralCalls(Result):
    """An optimum over several calls, and the value of block verification.

    Attributes:
        question: the optimised quantity, in words.
        value: the optimum, tokens or calls; a Fraction for exact pairs.
        block: the same expectation if every call uses block verification.
        first_call: P(the first call accepts a prefix that starts with a) of an optimal verifier, one array
            [V^depth] per depth.
    """

    question: str
    value: Number
    block: Number
    first_call: tuple[np.ndarray, ...]

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")

    facts: ClassVar[Templates] = {"optimum": "{value}", "block verification": "{block}"}

    def to_document(self) -> dict[str, Any]:
        return {"question": self.question, **both("value", self.value), **both("block", self.block)}

    def headline(self) -> str:
        return f"{self.question}: {number_text(self.value)}, by block verification {number_text(self.block)}"

    def shown(self) -> dict[str, Any]:
        return {"value": self.value, "block": self.block}


def most_decoded_tokens(
    pair: ModelPair, num_calls: int, *, draft_length: int | None = None, memory: int | None = None
) -> SeveralCalls:
    """Compute the largest mean number E[N(i)] of tokens decoded in i calls by a verifier of one path.

    Source: theory.md Statement 4.8.  W_j(s) is the optimum of j calls after the text s, and
    w(b) = |b| + W_{j-1}(s b) is the worth of the output b.  x(a) is the probability that the accepted prefix
    starts with a.  We compute from the last call to the first

        W_j(s) = max Σ_a x(a) [Σ_t p(t | a) w(a, t) - w(a)],   w(∅) = 0,   the sum over |a| ≤ L,
        s.t.  x(∅) = 1,   0 ≤ x(a, t) ≤ p(t | a) x(a),   x(a) ≤ q(a).

    A bracket can be negative: accepting a prefix with certainty may worsen the start of the next call.

    Args:
        pair: the models, with a row for every context that can be reached.  If ``memory`` is given or the
            pair is context-free, rows beyond its depth are derived from the given ones.
        num_calls: i.
        draft_length: L of every call; by default the draft length of the pair.
        memory: the number of last tokens that the rows depend on (1: a Markov chain).

    Returns:
        The optimum (tokens), exact for exact pairs.

    Raises:
        InvalidInputError: the pair is not deep enough, or its rows depend on more than ``memory`` tokens.

    Example:
        >>> from spectheory import instances
        >>> print(most_decoded_tokens(instances.early_stop(3), 2, draft_length=3))
        <tokens in 2 calls: 25/4 = 6.25, by block verification 49/8 = 6.125>
    """
    num_calls = check_count("num_calls", num_calls)
    models = ExtendedPair(check_pair(pair).normalised(), draft_length, memory)
    models.check_depth(num_calls * (models.draft_length + 1) - 1, "calls")
    return _solved(f"tokens in {num_calls} calls", models, num_calls, counts_tokens=True)


def fewest_calls(
    pair: ModelPair, num_tokens: int, *, draft_length: int | None = None, memory: int | None = None
) -> SeveralCalls:
    """Compute the smallest mean number of calls in which a verifier of one path decodes n tokens.

    Source: theory.md Statements 4.8 and 4.9.  It is the recursion of ``most_decoded_tokens`` with another
    worth w(b): minus the number of calls, including this one, until n tokens are decoded.  Block verification
    attains the optimum on every pair: ``value`` and ``block`` are computed independently and are equal.

    Args:
        pair: the models; of draft length at least n - 1, or context-free, or with ``memory`` given.
        num_tokens: n.
        draft_length, memory: as in ``most_decoded_tokens``.

    Returns:
        The optimum (calls), exact for exact pairs.

    Raises:
        InvalidInputError: as in ``most_decoded_tokens``.

    Example:
        >>> from spectheory import instances
        >>> print(fewest_calls(instances.two_token(2), 6))
        <calls for 6 tokens: 728/243 = 2.995885, by block verification 728/243 = 2.995885>
    """
    num_tokens = check_count("num_tokens", num_tokens)
    models = ExtendedPair(check_pair(pair).normalised(), draft_length, memory)
    models.check_depth(num_tokens - 1, "tokens")
    return _solved(f"calls for {num_tokens} tokens", models, num_tokens, counts_tokens=False)


def _solved(question: str, models: ExtendedPair, left: int, counts_tokens: bool) -> SeveralCalls:
    best, block = (_Calls(models, counts_tokens, always_block) for always_block in (False, True))
    sign = 1 if counts_tokens else -1
    for calls in (best, block):
        for fewer in range(left):  # fill the cache from the last call to the first: recursion stays shallow
            calls.worth((), fewer)
    value, of_block = (plain_number(sign * calls.worth((), left)) for calls in (best, block))
    return SeveralCalls(question, value, of_block, best.first_call(left))


class _Piece(NamedTuple):
    """A linear piece of a concave function of a node's mass, given by its right end and its slope."""

    end: Any
    slope: Any


class _Calls:
    """The recursion over the texts before a call.  ``left`` counts the remaining calls, or tokens."""

    def __init__(self, models: ExtendedPair, counts_tokens: bool, always_block: bool) -> None:
        self.models, self.counts_tokens, self.always_block = models, counts_tokens, always_block
        numbers = models.pair.numbers
        self.target, self.draft = numbers.target, numbers.draft
        self.zero = numbers.target[0][0, 0] * 0
        self.worth = cache(self._worth)

    def _worth(self, start: Context, left: int) -> Any:
        """Compute W(start): tokens decoded in ``left`` calls, or minus the calls for ``left`` tokens."""
        total, before = self.zero, self.zero
        if left > 0:
            for piece in self.pieces(start, left, (), self.zero + 1):
                total, before = total + piece.slope * (piece.end - before), piece.end
        return total

    def worth_of_output(self, start: Context, left: int, output: Context) -> Any:
        """Compute w(b), the worth of a call from ``start`` that outputs b.

        It is |b| plus the worth of the remaining calls, or -1 plus the worth of the remaining tokens.
        """
        behind = start
        for token in output:
            behind = self.models.follow(behind, token)
        if self.counts_tokens:
            return len(output) + self.worth(behind, left - 1)
        return self.worth(behind, max(0, left - len(output))) - 1

    def length(self, left: int) -> int:
        return self.models.draft_length if self.counts_tokens else min(self.models.draft_length, left - 1)

    def gain(self, start: Context, left: int, node: Context) -> Any:
        """Compute the objective coefficient of x(a) at ``node`` a: Σ_t p(t|a) w(a,t) - w(a)."""
        row = self.models.row(self.target, start + node)
        worths = [p * self.worth_of_output(start, left, (*node, t)) for t, p in enumerate(row) if p > 0]
        return sum(worths, self.zero) - (self.worth_of_output(start, left, node) if node else 0)

    def pieces(self, start: Context, left: int, node: Context, draft_prob: Any) -> list[_Piece]:
        """Compute the largest contribution of ``node`` and its subtree, concave in the offered mass.

        It adds the node's gain and the children's functions at their shares p(t|a) of the mass.  The node
        accepts at most q(a).  Unless ``always_block`` is set, it accepts no more than the mass at which the
        function is largest.
        """
        shares = []
        if len(node) < self.length(left):
            rows = (self.models.row(levels, start + node) for levels in (self.target, self.draft))
            for token, (p, q) in enumerate(zip(*rows, strict=True)):
                if p > 0 and q * draft_prob > 0:
                    below = self.pieces(start, left, (*node, token), draft_prob * q)
                    shares.append([_Piece(piece.end / p, piece.slope * p) for piece in below])
        gain, found = self.gain(start, left, node), []
        for end in sorted({min(piece.end, draft_prob) for share in shares for piece in share} | {draft_prob}):
            taken = (next((piece.slope for piece in share if piece.end >= end), 0) for share in shares)
            slope = gain + sum(taken)
            if slope < 0 and node and not self.always_block:
                break
            found.append(_Piece(end, slope))
        return found

    def first_call(self, left: int) -> tuple[np.ndarray, ...]:
        """Compute x(a) of the first call, one array [V^depth] per depth."""
        one, size = self.zero + 1, self.models.pair.vocab_size
        masses: dict[Context, Any] = {(): one}
        draft_probs: dict[Context, Any] = {(): one}
        found = [np.array([one])]
        for depth in range(1, self.length(left) + 1):
            nodes = [numbered_context(number, depth, size) for number in range(size**depth)]
            for node in nodes:
                parent, token = node[:-1], node[-1]
                p, q = (self.models.row(levels, parent)[token] for levels in (self.target, self.draft))
                draft_probs[node] = draft_probs[parent] * q
                offered = min(masses[parent] * p, draft_probs[node])
                pieces = self.pieces((), left, node, draft_probs[node]) if offered > 0 else []
                masses[node] = min(offered, pieces[-1].end) if pieces else self.zero
            found.append(np.array([masses[node] for node in nodes]))
        return tuple(_plain(level) for level in found)


def _plain(level: np.ndarray) -> np.ndarray:
    values = [plain_number(value) for value in level]
    return np.array(values, dtype=object if level.dtype == object else float)

"""Laws of texts under a grammar: the projected law of masked rows, and the target given the grammar.

A grammar is a deterministic automaton, as in ``processors.grammar``: state -> token -> next state.  A text of
L + 1 tokens is allowed if the automaton reads it to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.pairs.pair import ModelPair

Transitions = Mapping[Any, Mapping[int, Any]]


_STOPPED = object()
"""The state of the automaton after a token that it does not allow."""


def completion_probs(pair: ModelPair, transitions: Transitions, start: Any) -> list[np.ndarray]:
    """Compute h(c): the probability that the target completes c to an allowed text of L + 1 tokens.

    It is 0 where the automaton has already stopped.  The recursion goes from the leaves up:
    h(c) = Σ_t p(t|c) h(c,t).

    Returns:
        One array per depth 0..L+1, [V^depth].

    Raises:
        InvalidInputError: the target gives no allowed text a positive probability.
    """
    states = [start]
    for _ in pair.target:
        below = [transitions.get(state, {}) for state in states]
        states = [allowed.get(token, _STOPPED) for allowed in below for token in range(pair.vocab_size)]
    one = pair.target[0][0, 0] * 0 + 1
    levels = [np.array([one * (state is not _STOPPED) for state in states])]
    for rows in reversed(pair.target):
        levels.insert(0, (rows * levels[0].reshape(rows.shape)).sum(axis=1))
    if not levels[0][0] > 0:
        raise InvalidInputError("the target gives no text that the grammar allows a positive probability")
    return levels


def _with_target(pair: ModelPair, weights: list[np.ndarray]) -> ModelPair:
    """Weigh every target row by its children's weights, where a child has some."""
    levels = []
    for rows, below in zip(pair.target, weights[1:], strict=True):
        weighted = normalise(rows * below.reshape(rows.shape))
        levels.append(np.where(weighted.sum(axis=1, keepdims=True) == 0, rows, weighted))
    return ModelPair(tuple(levels), pair.draft, pair.vocab)


def conditional_pair(pair: ModelPair, transitions: Transitions, start: Any) -> ModelPair:
    """Return the pair whose target is the target given the grammar: rows p(t|c) h(c,t)/h(c).

    Raises:
        InvalidInputError: the target gives no allowed text a positive probability.

    Example:
        >>> no_two_zeros = {"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}
        >>> fair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 1)
        >>> print(conditional_pair(fair, no_two_zeros, "any").target[0][0])
        [Fraction(1, 3) Fraction(2, 3)]
    """
    return _with_target(pair, completion_probs(pair, transitions, start))


def projected_pair(pair: ModelPair, transitions: Transitions, start: Any) -> ModelPair:
    """Return the pair whose target rows are masked: the tokens that keep an allowed completion, normalised.

    Engines output this law.  It differs from the target given the grammar (theory.md Statement 8.19).

    Example:
        >>> no_two_zeros = {"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}
        >>> fair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 1)
        >>> print(projected_pair(fair, no_two_zeros, "any").target[0][0])
        [Fraction(1, 2) Fraction(1, 2)]
    """
    probs = completion_probs(pair, transitions, start)
    return _with_target(pair, [level * 0 + (level > 0) for level in probs])


def grammar_distance(pair: ModelPair, transitions: Transitions, start: Any) -> Number:
    """Compute the total variation between the projected and the conditional law of L + 1 tokens.

    Example:
        >>> no_two_zeros = {"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}
        >>> fair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 1)
        >>> print(grammar_distance(fair, no_two_zeros, "any"))
        1/6
    """
    depth = pair.draft_length + 1
    laws = [make(pair, transitions, start) for make in (projected_pair, conditional_pair)]
    projected, conditional = (law.target_path_probs(depth) for law in laws)
    return plain_number(abs(projected - conditional).sum() / 2)

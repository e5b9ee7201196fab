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


def conditional_pair(
    pair: ModelPair, transitions: Transitions, start: Any, masked: bool = False
) -> ModelPair:
    """Return the pair whose target is the target given the grammar: rows p(t|c) h(c,t)/h(c).

    Args:
        pair, transitions, start: the models, and the grammar as in ``processors.grammar``.
        masked: True for the projected law, which engines output: of each row the tokens that keep an allowed
            completion, normalised.  It differs from the target given the grammar (theory.md Statement 8.19).

    Raises:
        InvalidInputError: the target gives no allowed text a positive probability.

    Example:
        >>> no_two_zeros = {"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}
        >>> fair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 1)
        >>> for masked in (False, True):
        ...     print(conditional_pair(fair, no_two_zeros, "any", masked).target[0][0])
        [Fraction(1, 3) Fraction(2, 3)]
        [Fraction(1, 2) Fraction(1, 2)]
    """
    levels = []
    for rows, probs in zip(pair.target, completion_probs(pair, transitions, start)[1:], strict=True):
        weights = probs.reshape(rows.shape)
        weighted = normalise(rows * (weights > 0 if masked else weights))
        levels.append(np.where(weighted.sum(axis=1, keepdims=True) == 0, rows, weighted))
    return ModelPair(tuple(levels), pair.draft, pair.vocab)

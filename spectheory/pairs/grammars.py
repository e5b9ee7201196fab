"""Laws of texts under a grammar: the projected law of masked rows, and the target given the grammar.

A grammar is a deterministic automaton, as in ``processors.grammar``: state -> token -> next state.  A text of
L + 1 tokens is allowed if the automaton reads it to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.pairs.contexts import Context, all_contexts, context_number
from spectheory.pairs.pair import ModelPair

Transitions = Mapping[Any, Mapping[int, Any]]


def completion_probs(pair: ModelPair, transitions: Transitions, start: Any) -> dict[Context, Any]:
    """Compute h(c): the probability that the target completes c to an allowed text of L + 1 tokens.

    It is 0 where the automaton has already stopped.  The recursion goes from the leaves up:
    h(c) = Σ_t p(t|c) h(c,t) over the tokens that the automaton allows.

    Raises:
        InvalidInputError: the target gives no allowed text a positive probability.
    """
    size, length = pair.vocab_size, pair.draft_length + 1
    states: dict[Context, Any] = {(): start}
    for context in all_contexts(size, length - 1):
        if context in states:
            for token, following in transitions.get(states[context], {}).items():
                states[(*context, token)] = following
    one = pair.target[0][0, 0] * 0 + 1
    probs: dict[Context, Any] = {}
    for context in reversed(all_contexts(size, length)):
        if context not in states:
            probs[context] = one - one
        elif len(context) == length:
            probs[context] = one
        else:
            row = pair.target[len(context)][context_number(context, size)]
            probs[context] = sum(row[token] * probs[(*context, token)] for token in range(size))
    if not probs[()] > 0:
        raise InvalidInputError("the target gives no text that the grammar allows a positive probability")
    return probs


def _with_target(pair: ModelPair, weights: dict[Context, Any]) -> ModelPair:
    """Weigh every target row by its children's weights, where a child has some."""
    size, levels = pair.vocab_size, []
    for depth, level in enumerate(pair.target):
        rows = level.copy()
        for number, row in enumerate(level):
            context = pair.context(depth, number)
            weighted = row * np.array([weights[(*context, token)] for token in range(size)])
            if weighted.sum() > 0:
                rows[number] = weighted / weighted.sum()
        levels.append(rows)
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
    return _with_target(pair, {context: prob * 0 + (prob > 0) for context, prob in probs.items()})


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

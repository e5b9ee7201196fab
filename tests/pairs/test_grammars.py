"""Projected and conditional laws under a grammar (theory.md Statement 8.19)."""

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from draft_values import FAIR, SKEW, rows_pair
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.grammars import Transitions, completion_probs, conditional_pair
from spectheory.pairs.instances import random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import grammar, processed

NO_TWO_ZEROS = {"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}


def grammar_distance(pair: ModelPair, transitions: Transitions, start: str) -> Any:
    """The total variation between the projected and the conditional law of all tokens."""
    projected, conditional = (
        conditional_pair(pair, transitions, start, masked).target_path_probs(pair.draft_length + 1)
        for masked in (True, False)
    )
    return abs(projected - conditional).sum() / 2


def test_laws_are_the_target_given_the_grammar_and_the_masked_rows() -> None:
    """By enumeration of all texts; the distance has the closed form of the statement."""
    for seed in range(4):
        pair = random_rational([8, seed], 2, 3)
        target = pair.target_path_probs(4)
        texts = list(product(range(2), repeat=4))
        allowed = [all(text[i : i + 2] != (0, 0) for i in range(3)) for text in texts]
        mass = sum(prob for prob, each in zip(target, allowed, strict=True) if each)
        conditional = conditional_pair(pair, NO_TWO_ZEROS, "any").target_path_probs(4)
        assert list(conditional) == [prob * each / mass for prob, each in zip(target, allowed, strict=True)]
        projected = conditional_pair(pair, NO_TWO_ZEROS, "any", masked=True).target_path_probs(4)
        masked = processed(pair, grammar(NO_TWO_ZEROS, "any"))
        assert list(projected) == list(masked.target_path_probs(4))
        distance = grammar_distance(pair, NO_TWO_ZEROS, "any")
        closed = sum(
            prob * abs(reached / prob - 1 / mass)
            for prob, reached, each in zip(target, projected, allowed, strict=True)
            if each and prob
        )
        assert distance == closed / 2 > 0


def test_values_and_partners() -> None:
    fair = rows_pair(FAIR, SKEW, 1)
    assert grammar_distance(fair, NO_TWO_ZEROS, "any") == Fraction(1, 6)
    assert grammar_distance(rows_pair(FAIR, SKEW, 2), NO_TWO_ZEROS, "any") == Fraction(3, 20)
    every = {"any": {0: "any", 1: "any"}}
    assert grammar_distance(fair, every, "any") == 0
    only_ones = {"any": {1: "any"}}  # one text: both laws are it
    assert grammar_distance(fair, only_ones, "any") == 0
    # No row is masked to nothing where a dead end lies ahead: the projection looks for completions (A11).
    dead_end = {"any": {0: "dead", 1: "any"}, "dead": {}}
    assert conditional_pair(fair, dead_end, "any", masked=True).target[0][0].tolist() == [0, 1]
    assert completion_probs(fair, dead_end, "any")[1][0] == 0
    with pytest.raises(InvalidInputError, match="no text"):
        conditional_pair(fair, {}, "any")

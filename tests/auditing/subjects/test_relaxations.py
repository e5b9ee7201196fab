"""Stated laws: the mixture and its inverse, given rates, deferred rejections."""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

from spectheory import instances, output_law
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.relaxations import deferred_rejection, mixture, synthetic_acceptance
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers


def test_a_mixture_has_the_target_s_own_last_row() -> None:
    pair = instances.sticky_chain(2)
    stated = mixture(Fraction(1, 3)).stated(pair)
    for depth in range(2):
        assert (stated.target[depth] == pair.target[depth] / 3 + pair.draft[depth] * Fraction(2, 3)).all()
    assert (stated.target[2] == pair.target[2]).all()


@pytest.mark.parametrize("weight", [Fraction(0), Fraction(-1), Fraction(3, 2)])
def test_weights_that_are_none(weight: Fraction) -> None:
    with pytest.raises(InvalidInputError, match="must lie above 0"):
        mixture(weight)


def test_the_weight_is_in_the_words() -> None:
    assert mixture(Fraction(1, 4)).words == "tokens at drafted positions have the law 1/4 p + 3/4 q"


def test_tokens_are_accepted_at_the_given_rates() -> None:
    verifier = synthetic_acceptance((Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))).verifier
    for pair in (instances.disjoint_supports(2), random_dyadic(1, 3, 2)):
        assert output_law(verifier, pair).length_probs == [Fraction(1, 4), Fraction(3, 8), Fraction(3, 8)]


def last_kept(accepts: tuple[bool, ...], may_defer: list[bool], window: int) -> int:
    """How many tokens are kept, decision after decision as FLy is told."""
    place = 0
    while place < len(accepts):
        following = accepts[place + 1 : place + 1 + window]
        if accepts[place]:
            place += 1
        elif may_defer[place] and len(following) == window and all(following):
            place += 1 + window
        else:
            return place
    return place


@pytest.mark.parametrize(("window", "threshold"), [(1, 0.5), (2, 0.0), (1, 0.6)])
def test_deferred_rejections(window: int, threshold: float) -> None:
    """The law of the length is the sum over all outcomes of the native decisions of every path."""
    pair = ModelPair.from_contexts(
        {context: row(context) for depth in range(4) for context in product(range(2), repeat=depth)},
        {context: row((*context, 1)) for depth in range(3) for context in product(range(2), repeat=depth)},
        3,
    )
    verifier = deferred_rejection(window, threshold, 3).verifier
    expected = [Fraction(0)] * 4
    for path in product(range(2), repeat=3):
        rows = [(row(path[:depth]), row((*path[:depth], 1)), path[depth]) for depth in range(3)]
        accept = [min(Fraction(1), p[token] / q[token]) for p, q, token in rows]
        may_defer = [-sum(float(x) * log(x) for x in p) >= threshold for p, _, _ in rows]
        drafted = np.prod([q[token] for _, q, token in rows])
        for accepts in product((True, False), repeat=3):
            share = np.prod([h if is_taken else 1 - h for h, is_taken in zip(accept, accepts, strict=True)])
            expected[last_kept(accepts, may_defer, window)] += drafted * share
    found = output_law(verifier, pair)
    assert found.length_probs == expected
    assert found.length_probs != output_law(verifiers["token"], pair).length_probs


def row(context: tuple[int, ...]) -> list[Fraction]:
    """Of two tokens, another one at every context."""
    weight = 2 + sum((3 * token + 2) * (place + 1) for place, token in enumerate(context)) % 13
    return [Fraction(weight, 16), Fraction(16 - weight, 16)]


def test_no_entropy_is_high_enough() -> None:
    """Then it is token verification, and what the target forbids is never kept."""
    pair = random_dyadic(3, 3, 2)
    plain = output_law(verifiers["token"], pair)
    deferring = output_law(deferred_rejection(1, 2.0, 3).verifier, pair)
    assert all((one == other).all() for one, other in zip(plain.masses, deferring.masses, strict=True))
    certain = ModelPair.context_free_pair(["1", "0"], ["1/2", "1/2"], 3)
    assert output_law(deferred_rejection(1, 0.0, 3).verifier, certain).total_variation == 0

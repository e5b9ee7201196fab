"""spectr2023 Lemma 3 and Eq. 9."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from figures.common.transport_bounds import equation_9, transport_bounds
from spectheory import instances
from spectheory.optima import otm_optimum


def equation_9_by_hand(
    target: list[Fraction], draft: list[Fraction], num_drafts: int, inside: tuple[bool, ...]
) -> Fraction:
    """spectr2023 Eq. 9 in braces, over all V^K ordered tuples."""
    total = Fraction(0)
    for y, chosen in enumerate(inside):
        if chosen:
            total += min(target[y], 1 - (1 - draft[y]) ** num_drafts)
    for x in product(range(len(target)), repeat=num_drafts):
        outside = sum((target[y] for y in set(x) if not inside[y]), start=Fraction(0))
        total += min(prod((draft[t] for t in x), start=Fraction(1)), outside)
    return total


def test_lemma_3_by_hand() -> None:
    """Every Ω_0 gives a number between α_K and the cut at Ω_0; the minimum and its set agree."""
    for number in range(24):
        V, num_drafts = 2 + number % 3, 1 + number % 4
        pair = instances.random_rational(9_000 + number, V, 1)
        target, draft = list(pair.target[0][0]), list(pair.draft[0][0])
        best = 1 - otm_optimum(target, draft, num_drafts).value
        bounds = transport_bounds(target, draft, num_drafts)
        values = {}
        for inside in product((False, True), repeat=V):
            values[inside] = equation_9_by_hand(target, draft, num_drafts, inside)
            tokens = np.array(inside)
            assert values[inside] == equation_9(pair.target[0][0], pair.draft[0][0], num_drafts, tokens)
            cut = sum(pair.target[0][0][tokens]) + 1 - sum(pair.draft[0][0][tokens]) ** num_drafts
            assert best <= values[inside] <= cut
        assert min(values.values()) == values[tuple(bounds.tokens.tolist())] == bounds.upper == best
        assert bounds.lower == (1 - (1 - Fraction(1, num_drafts)) ** num_drafts) * best
        floats = transport_bounds(pair.target[0][0].astype(float), pair.draft[0][0].astype(float), num_drafts)
        assert floats.upper == pytest.approx(float(bounds.upper), abs=1e-14)


def test_a_set_that_does_not_minimise_is_strictly_above() -> None:
    """The minimum in Eq. 9 matters: two tokens, K = 2, Ω_0 = {B} gives 1 where α_2 = 8/9."""
    target, draft = (np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)[::step] for step in (1, -1))
    assert equation_9(target, draft, 2, np.array([False, True])) > Fraction(8, 9)

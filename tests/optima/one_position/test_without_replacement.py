"""Drafts without replacement: level sets against the cut over all sets, and condition (Q) itself."""

from fractions import Fraction
from itertools import permutations
from math import prod

import pytest

from program_support import position_draft_law
from spectheory.optima import (
    min_cut_of_law,
    optimal_acceptance_without_replacement,
)
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.pairs.instances import random_rational


def test_level_sets_attain_the_cut_over_all_sets() -> None:
    """theory.md Statement 3.13 on 48 rational pairs, V up to 6 and K up to 4, exactly; float64 agrees."""
    tried = 0
    for seed in range(48):
        size, drafts = 3 + seed % 4, 1 + seed // 4 % 4
        pair = random_rational([446, seed], size, 1, zero_probability=seed % 3 / 10)
        target, draft = pair.target[0][0], pair.draft[0][0]
        if (draft > 0).sum() < drafts:
            continue
        found = optimal_acceptance_without_replacement(target, draft, drafts)
        law = position_draft_law(pair, WithoutReplacement((drafts,)))
        assert found.value == min_cut_of_law(target, law).value, seed
        inside = sum((prob for tokens, prob in law.items() if found.tokens[list(tokens)].all()), Fraction(0))
        assert found.value == target[found.tokens].sum() + 1 - inside
        floats = optimal_acceptance_without_replacement(target.astype(float), draft.astype(float), drafts)
        assert floats.value == pytest.approx(float(found.value), abs=1e-12)
        tried += 1
    assert tried > 36


def drafted_inside(draft: list[Fraction], tokens: set[int], num_drafts: int) -> Fraction:
    """P(all drafts lie in the set), over all orders."""
    total = Fraction(0)
    for order in permutations(sorted(tokens), num_drafts):
        total += prod(draft[x] / (1 - sum(draft[y] for y in order[:i])) for i, x in enumerate(order))
    return total


def gains(
    num_drafts: int, draft: list[Fraction], before: set[int], x: int, y: int
) -> tuple[Fraction, Fraction]:
    """Both sides of (Q)."""
    f = [drafted_inside(draft, tokens, num_drafts) for tokens in (before, before | {x}, before | {x, y})]
    return (f[1] - f[0]) / draft[x], (f[2] - f[1]) / draft[y]


def test_the_condition_behind_it() -> None:
    """(Q) on all sets of five tokens, for K = 2 and 3."""
    draft = [Fraction(n, 20) for n in (1, 2, 3, 5, 9)]
    for number in range(32):
        inside = {token for token in range(5) if number >> token & 1}
        for x, y in permutations(set(range(5)) - inside, 2):
            for drafts in (2, 3):
                left, right = gains(drafts, draft, inside, x, y)
                assert left <= right


def test_partner_not_every_law_of_drafts_has_level_sets() -> None:
    """Two pairs of tokens that are always drafted together: the best set is no level set of p/q."""
    target = [Fraction(n, 10) for n in (1, 4, 2, 3)]
    law = {(0, 3): Fraction(1, 2), (1, 2): Fraction(1, 2)}
    value, tokens = min_cut_of_law(target, law)
    assert value == Fraction(9, 10)
    assert tokens.tolist() == [True, False, False, True]

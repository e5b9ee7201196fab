"""f, ratios with a denominator of 0, and the level sets against all sets of leaves."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from later import Later
from leaf_laws import f, random_law
from spectheory import instances
from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.exact_numbers import to_flint
from spectheory.optima.bounds.level_sets import LevelSets

sympy = Later("sympy")


@pytest.mark.parametrize("num_drafts", [1, 2, 3, 64])
def test_f_in_every_arithmetic(num_drafts: int) -> None:
    """1 - (1 - u)^K of Fractions, python-flint rationals, floats, single numbers and symbols."""
    masses = [Fraction(0), Fraction(1, 10**18), Fraction(1, 3), Fraction(1)]
    expected = [f(mass, num_drafts) for mass in masses]
    array = np.array(masses, dtype=object)
    assert hit_probability(array, num_drafts).tolist() == expected
    assert [Fraction(str(u)) for u in hit_probability(to_flint(array), num_drafts)] == expected
    floats = hit_probability(array.astype(float), num_drafts)
    np.testing.assert_allclose(floats, np.array(expected, dtype=float), rtol=1e-14)
    u = sympy.Symbol("u")
    for mass, value in zip(masses, expected, strict=True):
        assert hit_probability(mass, num_drafts) == value
        assert hit_probability(float(mass), num_drafts) == pytest.approx(float(value), rel=1e-14)
        assert hit_probability(u, num_drafts).subs(u, sympy.Rational(str(mass))) == sympy.Rational(str(value))
    assert hit_probability(np.array([1 + 1e-16, 1 + 1e-9]), 2).tolist() == [1.0, 1.0]
    if num_drafts > 1:  # the plain power loses all of a small u
        assert 1 - (1 - 1e-18) ** num_drafts == 0.0 < floats[1]


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_level_sets_hold_the_largest_excess_and_the_largest_ratio(num_drafts: int) -> None:
    """Over all 2^M sets of leaves, r arbitrary and q with zeros; sets of another order do not hold them."""
    rng = np.random.default_rng([19, num_drafts])
    missed = 0
    for seed in range(60):
        pair = instances.random_rational([19, seed], *((2, 2), (3, 1), (5, 1))[seed % 3])
        draft = pair.draft_path_probs(pair.draft_length)
        law = random_law(rng, len(draft))
        law[draft == 0] = 0  # a leaf that is never drafted has an infinite ratio
        every = [list(s) for n in range(1, len(law) + 1) for s in combinations(range(len(law)), n)]
        excess = max(law[s].sum() - f(draft[s].sum(), num_drafts) for s in every)
        share = max(law[s].sum() / f(draft[s].sum(), num_drafts) for s in every if draft[s].sum() > 0)
        sets = LevelSets.of(law, draft, num_drafts)
        assert max(*sets.excesses, 0) == max(excess, 0)  # 0 is the excess of the empty set
        floats = LevelSets.of(law.astype(float), draft.astype(float), num_drafts)
        assert max(*floats.excesses, 0) == pytest.approx(float(max(excess, 0)), abs=1e-14)
        assert max(floats.shares) == pytest.approx(float(share), rel=1e-13)
        assert sets.is_feasible(0) == (excess <= 0) == (share <= 1)
        members = sets.leaves(int(np.argmax(sets.excesses)))
        assert law[members].sum() - f(draft[members].sum(), num_drafts) == max(sets.excesses)
        by_number = range(len(law) + 1)
        missed += excess > max(law[i:].sum() - f(draft[i:].sum(), num_drafts) for i in by_number)
    assert missed > 0


def test_a_leaf_that_is_never_drafted() -> None:
    """q = 0 < r comes first and is infeasible, r = q = 0 comes last and is not, r < 0 = q comes last too."""
    half = Fraction(1, 2)
    for law, order, feasible in (
        ([0, half, half], [1, 2, 0], True),
        ([half, half, 0], [0, 1, 2], False),
        ([-half, half, 1], [2, 1, 0], False),
    ):
        exact = np.array([Fraction(x) for x in law], dtype=object)
        draft = np.array([Fraction(0), half, half], dtype=object)
        for sets in (
            LevelSets.of(exact, draft, 2),
            LevelSets.of(exact.astype(float), draft.astype(float), 2),
        ):
            assert sets.order.tolist() == order
            assert sets.is_feasible(0) is feasible
    assert LevelSets.of(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 2).shares[0] == np.inf


def test_a_law_that_is_no_number_is_not_feasible() -> None:
    """NaN fails every comparison, so it must not pass as the absence of an excess."""
    assert LevelSets.of(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 2).is_feasible(1e-9)
    assert not LevelSets.of(np.array([0.5, np.nan]), np.array([0.5, 0.5]), 2).is_feasible(1e-9)

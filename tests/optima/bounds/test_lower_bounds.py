"""Certified lower bounds: skewed drafts that attain them, and laws that are refused."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import InfeasiblePointError
from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.bounds.lower_bounds import (
    certified_bound_of_draft,
    certified_lower_bound,
)
from spectheory.optima.bounds.skewed_draft import SkewedDraft, ranked_leaf_law
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.pairs import levels
from spectheory.pairs.pair import ModelPair


def test_an_infeasible_skewed_draft_is_rejected_with_its_witness() -> None:
    """The witness is a set of leaves with r(S) > f(q(S)), recomputed here."""
    pair = instances.random_float(2, 3, 3, concentration=0.5)
    best = multi_path_interval(pair, 3)
    draft = pair.draft_path_probs(3)
    leaf = int(np.argmax(best.skewed_draft / draft))
    wrong = 0.9 * best.skewed_draft
    wrong[leaf] += 0.1
    with pytest.raises(InfeasiblePointError, match="leaves") as caught:
        certified_lower_bound(pair, 3, wrong)
    numbers = [int(np.dot(context, (9, 3, 1))) for context in caught.value.witness]
    reachable = 1 - (1 - draft[numbers].sum()) ** 3
    assert wrong[numbers].sum() > reachable
    assert caught.value.violation == pytest.approx(wrong[numbers].sum() / reachable - 1, rel=1e-9)


def test_mass_on_an_undrafted_leaf_is_rejected() -> None:
    """q(b) = 0 and r(b) > 0 is infeasible whatever the size; r = 0 there is not."""
    pair = instances.disjoint_supports(1)
    with pytest.raises(InfeasiblePointError) as caught:
        certified_lower_bound(pair, 2, np.array([1e-3, 0.0, 0.0, 0.999]))
    assert caught.value.witness == ((0,),)
    assert certified_lower_bound(pair, 2, np.array([0.0, 0.0, 0.5, 0.5])) == pytest.approx(1.0)


@pytest.mark.parametrize("num_drafts", [1, 3])
def test_the_bound_is_below_the_exact_value_also_next_to_one_token(num_drafts: int) -> None:
    """Models that agree on next to nothing: of E[τ+1] - 1, about 10^-8, the rounding of 1 is no small part.

    The float program of the same sums is above the exact value on some of the pairs.
    """
    above = 0
    for number in range(30):
        small = Fraction(1 + 7 * number, 10**8)
        draft = [small, 1 - small, Fraction(0)]
        target = [1 - small, Fraction(0), small]
        pair = ModelPair.context_free_pair(target, draft, 2)
        law = SkewedDraft.from_ranking(pair, num_drafts)
        exact = law.block_efficiency(pair)
        floats = law.leaf_law.astype(float)
        assert Fraction(certified_lower_bound(pair.to_float(), num_drafts, floats)) <= exact
        plain = SkewedDraft.summed(pair.to_float(), floats).block_efficiency(pair.to_float())
        above += Fraction(plain) > exact
    assert above > 3


def test_drafts_that_do_not_sum_to_one_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draft rows of sum 0.9 leave P(some draft ends in S) open by as much: the bound falls by the factor."""
    monkeypatch.setattr(levels, "SUM_TOLERANCE", 0.2)
    target = np.array([[0.5, 0.5]])
    rows = {total: np.array([[0.5 * total, 0.5 * total]]) for total in (1.0, 0.9)}
    bounds = {}
    for total, draft in rows.items():
        pair = ModelPair((target, np.full((2, 2), 0.5)), (draft,), ("A", "B"))
        bounds[total] = certified_lower_bound(pair, 1, np.array([0.45, 0.45]))
    assert bounds[1.0] == pytest.approx(1.9, rel=1e-12)
    assert bounds[0.9] == pytest.approx(1.81, rel=1e-12)


def test_laws_at_and_below_the_limits_are_scaled_down_alone() -> None:
    """A law that is too large by what is tolerated earns no more than the optimum; one that is small is not
    scaled up, where the target would limit it."""
    pair = instances.two_token(1).to_float()
    draft = pair.draft_path_probs(1)
    assert Fraction(certified_lower_bound(pair, 1, draft * (1 + 5e-10))) <= Fraction(5, 3)
    limited = ModelPair.context_free_pair([0.25, 0.75], [1.0, 0.0], 1)
    assert certified_lower_bound(limited, 1, np.array([0.25, 0.0])) == pytest.approx(1.25)


def test_masses_keep_to_every_set_of_many_leaves() -> None:
    """The law of a ranking reaches P(some draft ends in S) for every S of top leaves.  Read as rationals, the
    masses of 2 000 leaves stay within all of them, which the law in floats does not."""
    rng = np.random.default_rng(4)
    draft = rng.dirichlet(np.full(2_000, 0.5))
    law = ranked_leaf_law(draft, np.arange(2_000), 2)
    tree = ContextTree.of(ModelPair.context_free_pair(law / law.sum(), draft, 1))
    drafted = list(accumulate(map(Fraction, draft[::-1].tolist())))
    limits = [1 - (1 - mass) ** 2 for mass in drafted]

    def within(masses: np.ndarray) -> bool:
        sums = accumulate(map(Fraction, masses[::-1].tolist()))
        return all(mass <= limit for mass, limit in zip(sums, limits, strict=True))

    masses = certified_bound_of_draft(tree, 2, law).masses[1]
    assert within(masses)
    assert not within(law)
    assert (masses <= law / (1 + 0.99 * tree.rounding)).all()  # all of the allowance, which covers any order

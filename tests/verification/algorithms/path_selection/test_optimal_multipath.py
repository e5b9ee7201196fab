"""optimal_multipath attains the optimum, exactly, on pairs in rationals and in floats."""

from fractions import Fraction
from itertools import permutations

import pytest

from explicit_ranking import ExplicitRanking
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.verification.algorithms.path_selection.optimal_multipath import OptimalMultipath


def test_optimal_multipath_beats_every_ranking_somewhere() -> None:
    """The mixture of rankings is needed: on some pair every single one earns less."""
    pair = instances.uniform_equal(1)
    assert output_law(OptimalMultipath(pair, 2), pair, 2).block_efficiency == 2
    orders = permutations(range(2))
    values = [output_law(ExplicitRanking(pair, order), pair, 2).block_efficiency for order in orders]
    assert values == [Fraction(7, 4), Fraction(7, 4)]  # theory.md §5
    assert len(OptimalMultipath(pair, 2).orders) == 2


@pytest.mark.deep
def test_optimal_multipath_on_float_pairs() -> None:
    """A float pair goes through its exact neighbour; the float law earns that optimum."""
    for seed, (V, L, K) in enumerate([(2, 2, 2), (3, 2, 3), (2, 3, 2)]):
        pair = instances.random_float(seed, V, L, agreement=0.5)
        verifier = OptimalMultipath(pair, K)
        law = output_law(verifier, pair, K)
        assert law.total_variation < 1e-13
        assert abs(law.block_efficiency - verifier.value) < 1e-12
        for name in ("block", "greedy_multipath", "spectr"):
            assert output_law(name, pair, K).block_efficiency <= verifier.value + 1e-9


def test_optimal_multipath_partner_made_for_another_setting() -> None:
    """Verified against one ranking's law instead of the mixture's it is wrong; another K is refused."""
    pair = instances.uniform_equal(1)
    wrong = OptimalMultipath(pair, 2)
    wrong._drafts[2] = SkewedDraft.from_order(pair, 2, wrong.orders[0])
    assert output_law(wrong, pair, 2).total_variation > 0
    with pytest.raises(InvalidInputError, match="made for 2 drafts"):
        output_law(OptimalMultipath(pair, 2), pair, 3)
    with pytest.raises(InvalidInputError, match="num_drafts"):
        OptimalMultipath(pair, 0)

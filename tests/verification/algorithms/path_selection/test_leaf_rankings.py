"""Verifiers bound to one pair: explicit orders of the leaves, and what happens on any other pair."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import reference
from deep import first_is_quick
from explicit_ranking import ExplicitRanking
from law_checks import assert_same_law
from spectheory import certify, instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.leaf_rankings import LeafRankings
from spectheory.verification.algorithms.path_selection.optimal_multipath import OptimalMultipath
from spectheory.verification.verifier import Verifier


@first_is_quick("first", [0, *(pytest.param(first, marks=pytest.mark.deep) for first in (1, 2, 3))])
def test_every_explicit_order_is_lossless(first: int) -> None:
    """Def. 5.1: all 24 orders of four leaves, most of them not tree-based; exact, in floats, with K = 3."""
    pair = instances.sticky_chain(2)
    values = set()
    for number, order in list(enumerate(permutations(range(4))))[first::4]:
        verifier = ExplicitRanking(pair, order)
        law = output_law(verifier, pair, 3)
        named = [pair.context(2, leaf) for leaf in order]
        skewed = reference.skewed_leaf_probs(pair, named, 3)
        assert law.total_variation == 0
        assert law.block_efficiency == reference.ranking_efficiency(pair, skewed)
        if number % 8 == first:
            assert_same_law(output_law(ExplicitRanking(pair, named), pair, 3), law)
            assert_same_law(output_law(verifier, pair.to_float(), 3), law, 1e-12)
        values.add(law.block_efficiency)
    assert len(values) > 1


class Unchecked(ExplicitRanking):
    """Known to be wrong: an order on the leaves of one pair that is taken to any other."""

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Verifier:
        return super().bind(process)


def test_a_bound_verifier_is_refused_on_another_pair() -> None:
    """By certify and output_law, exact or float, for the draft's and the target's rows and the shape."""
    pair, other = instances.sticky_chain(2), instances.two_token(2)
    for verifier in (ExplicitRanking(pair, range(4)), OptimalMultipath(pair, 2)):
        for elsewhere in (other, other.to_float()):
            for judge in (certify, output_law):
                with pytest.raises(
                    InvalidInputError, match=r"another pair: the draft rows at context \(0,\)"
                ):
                    judge(verifier, elsewhere, 2)
        # The last row of the target alone, by as little as a float can say.
        rows = pair.to_float().target[2].copy()
        rows[3] = np.nextafter(rows[3], 1)
        nearly = ModelPair((*pair.to_float().target[:2], rows), pair.to_float().draft, pair.vocab)
        with pytest.raises(InvalidInputError, match=r"another pair: the target rows at context \(1, 1\)"):
            output_law(verifier, nearly, 2)
        with pytest.raises(InvalidInputError, match=r"bound to a pair with \(L, V\) = \(2, 2\)"):
            output_law(verifier, instances.two_token(3), 2)
        paths = np.zeros((1, 2, 3), dtype=np.int64)
        with pytest.raises(InvalidInputError, match=r"bound to a pair with \(L, V\) = \(2, 2\)"):
            verifier.outcome(paths, np.full((1, 2, 4, 2), 0.5), np.full((1, 2, 3, 2), 0.5))


def test_why_partner_bound_to_the_wrong_pair() -> None:
    """Without the check: verified against the law of another pair's drafts it is not lossless."""
    certificate = certify(Unchecked(instances.sticky_chain(2), range(4)), instances.two_token(2), 2)
    assert not certificate
    assert certificate.total_variation > 0
    certificate = certify(Unchecked(instances.two_token(2), range(4)), instances.two_token(2), 2)
    assert certificate


def test_orders_partner_weights_and_arithmetic_are_checked() -> None:
    """A float64 pair's verifier has no exact law; weights of orders are a law exactly."""
    with pytest.raises(InvalidInputError, match="float64 pair"):
        output_law(ExplicitRanking(instances.two_token(1).to_float(), [0, 1]), instances.two_token(1), 2)
    for weights in ([Fraction(1, 2)], [Fraction(3, 2), Fraction(-1, 2)], [Fraction(1, 3), Fraction(1, 3)]):
        with pytest.raises(InvalidInputError, match="sum exactly 1"):
            LeafRankings(instances.two_token(1), weights, [[0, 1], [1, 0]])

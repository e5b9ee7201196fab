"""otm: optimal at one position, lossless on longer drafts, and what it keeps of its plans."""

from fractions import Fraction

import numpy as np
import pytest

from edge_pairs import random_pairs
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimum
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.kseq import KSeq
from spectheory.verification.algorithms.position_by_position.multi_round import MultiRound
from spectheory.verification.algorithms.position_by_position.otm import OTM


def test_otm_partner_the_others_are_below_it() -> None:
    """K-SEQ at any factor and multi-round rejection stay strictly below the plan on the two-token pair."""
    pair = instances.two_token(1)
    best = output_law(OTM(), pair, 2).block_efficiency
    assert output_law(MultiRound(), pair, 2).block_efficiency < best
    for factor in (None, Fraction(3, 2), Fraction(7, 4), 2, 3):
        assert output_law(KSeq(factor), pair, 2).block_efficiency < best


@pytest.mark.parametrize("process", [Iid(2), Iid(3), PrefixTree((1, 2)), PrefixTree((2, 2))])
def test_otm_on_longer_drafts_is_lossless(process: DraftProcess) -> None:
    """L = 2, exactly; never above the optimum of all valid verifiers (i.i.d. drafts)."""
    for pair in [*random_pairs(2, 2, 8, 1500), instances.point_masses(2), instances.two_token(2)]:
        law = output_law(OTM(), pair, drafts=process)
        assert law.total_variation == 0
        if process == Iid(2):
            assert law.block_efficiency <= optimum(pair, 2).value


def test_otm_at_two_positions_is_not_the_block_optimum() -> None:
    """Position by position is not optimal for the block: below the multi-path optimum at L = 2."""
    pair = instances.two_token(2)
    assert output_law(OTM(), pair, 2).block_efficiency < optimum(pair, 2).value


def test_otm_float_rows_agree_with_exact_ones() -> None:
    for pair in random_pairs(3, 1, 10, 1600):
        exact, in_float = output_law(OTM(), pair, 2), output_law(OTM(), pair.to_float(), 2)
        assert in_float.total_variation < 1e-12
        assert in_float.block_efficiency == pytest.approx(float(exact.block_efficiency), abs=1e-9)


def test_otm_takes_drafts_of_any_probability_but_zero() -> None:
    """A tuple whose probability underflows has its part of the plan; an impossible one is refused."""
    pair = ModelPair.context_free_pair([0.5, 0.5], [1.0, 1e-200], 1)
    law = output_law(OTM(), pair, 2)
    assert law.total_variation < 1e-12
    assert law.length_probs[1] == pytest.approx(0.5, abs=1e-12)
    rows = np.array([[[0.5, 0.5], [0.5, 0.5]]])
    with pytest.raises(InvalidInputError, match=r"tokens that the draft row can draw, got \(1,\)"):
        OTM().outcome(np.array([[1]]), rows, np.array([[[1.0, 0.0]]]))

"""otm: optimal at one position, lossless on longer drafts, and what it keeps of its plans."""

from fractions import Fraction

import numpy as np
import pytest

from edge_pairs import random_pairs
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimal_acceptance, optimum
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position import otm
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


def test_otm_beyond_the_program() -> None:
    """30 tokens, 2 drafts: the program would have 27 000 entries."""
    pair = instances.random_float(7, 30, 1, agreement=0.5)
    law = output_law(OTM(), pair, 2)
    assert law.total_variation < 1e-12
    best = optimal_acceptance(pair.target[0][0], pair.draft[0][0], 2).value
    assert law.length_probs[1] == pytest.approx(best, abs=1e-12)


def test_otm_takes_drafts_of_any_probability_but_zero() -> None:
    """A tuple whose probability underflows has its part of the plan; an impossible one is refused."""
    pair = ModelPair.context_free_pair([0.5, 0.5], [1.0, 1e-200], 1)
    law = output_law(OTM(), pair, 2)
    assert law.total_variation < 1e-12
    assert law.length_probs[1] == pytest.approx(0.5, abs=1e-12)
    rows = np.array([[[0.5, 0.5], [0.5, 0.5]]])
    with pytest.raises(InvalidInputError, match=r"tokens that the draft row can draw, got \(1,\)"):
        OTM().outcome(np.array([[1]]), rows, np.array([[[1.0, 0.0]]]))


def test_plans_of_long_rows_are_not_kept() -> None:
    """Nothing is left in memory, and the law is the same: one token more, which neither model emits."""
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.ones(otm.LARGEST_KEPT), (3, 1, 3))
    target_rows, draft_rows = rows[:, :, :2].repeat(2, axis=1), rows[:, :, 2:].repeat(2, axis=1)
    paths = np.array([[[0], [1]], [[2], [2]], [[0], [3]]])
    sizes, laws = [otm._kept_law.cache_info().currsize], []
    for more in (0, 1):
        longer = [np.pad(r, [(0, 0)] * 3 + [(0, more)]) for r in (target_rows, draft_rows)]
        outcome = OTM().outcome(paths, *longer)
        sizes.append(otm._kept_law.cache_info().currsize)
        row = outcome.correction(np.zeros(3, dtype=int), np.zeros(3, dtype=int))
        laws.append((outcome.stop_probs, row[:, : otm.LARGEST_KEPT]))
    assert sizes[0] < sizes[1] == sizes[2]
    for kept, computed in zip(*laws, strict=True):
        np.testing.assert_allclose(kept, computed, rtol=0, atol=1e-12)

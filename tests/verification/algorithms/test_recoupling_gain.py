"""recoupling_gain: in the mean over drafts it is the difference of the block efficiencies."""

from itertools import product

import numpy as np
import pytest

from spectheory import instances, output_law
from spectheory.pairs.contexts import prefix_of_leaf, rows_along
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import recoupling_gain as module
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.algorithms.recoupled import Recoupled
from spectheory.verification.algorithms.recoupling_gain import recoupling_gain

SCORED, GROUPED = ScoredMultipath(), ScoredMultipath(num_knots=3)


def mean_gain(verifier: ScoredMultipath, pair: ModelPair, num_drafts: int) -> float:
    size, length = pair.vocab_size, pair.draft_length
    probs = pair.draft_path_probs(length - 1)
    total = 0.0
    for nodes in product(range(len(probs)), repeat=num_drafts):
        leaves = np.array(nodes) * size
        prefixes = np.stack([prefix_of_leaf(leaves, d, length, size) for d in range(length + 1)], axis=-1)
        targets, drafts = (rows_along(side, prefixes) for side in (pair.target, pair.draft))
        gain = recoupling_gain(verifier, prefixes[:, 1:] % size, targets, drafts)
        assert gain > -1e-12
        total += float(np.prod(probs[list(nodes)])) * gain
    return total


@pytest.mark.parametrize(
    ("verifier", "size", "length", "num_drafts"),
    [
        (SCORED, 3, 2, 2),
        (SCORED, 2, 3, 2),
        (GROUPED, 4, 1, 3),
        pytest.param(GROUPED, 4, 2, 3, marks=pytest.mark.deep),
    ],
)
def test_the_mean_is_the_difference_of_the_block_efficiencies(
    verifier: ScoredMultipath, size: int, length: int, num_drafts: int
) -> None:
    pair = instances.random_float([98, size, length], size, length, agreement=0.3)
    before = float(output_law(verifier, pair, num_drafts).block_efficiency)
    behind = float(Recoupled(verifier).block_efficiency(pair, num_drafts))
    assert mean_gain(verifier, pair, num_drafts) == pytest.approx(behind - before, abs=1e-12)


def test_partner_without_the_stops_it_is_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the leaves in the cut, without the corrections at their nodes: nothing is gained."""
    pair = instances.random_float([98, 2, 3], 2, 2, agreement=0.3)
    assert mean_gain(SCORED, pair, 2) > 1e-4
    monkeypatch.setattr(module, "positive_part", np.zeros_like)
    assert mean_gain(SCORED, pair, 2) < 1e-12

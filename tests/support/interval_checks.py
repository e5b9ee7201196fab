"""What every certified interval must pass."""

import pytest

from spectheory.optima.bounds.dual_scores import certified_upper_bound
from spectheory.optima.bounds.lower_bounds import certified_lower_bound
from spectheory.optima.interval.interval import CertifiedInterval
from spectheory.pairs.pair import ModelPair


def proofs_hold(pair: ModelPair, num_drafts: int, best: CertifiedInterval) -> None:
    """Both ends follow from the published points alone, through the two bounding functions."""
    assert certified_lower_bound(pair, num_drafts, best.skewed_draft) == best.lower == best.value
    assert certified_upper_bound(pair, num_drafts, best.scores, best.slacks) == pytest.approx(
        best.upper, rel=1e-9
    )
    assert sum(float(level.sum()) for level in best.node_masses) == pytest.approx(best.lower, rel=1e-10)

"""Certified lower bounds: skewed drafts that attain them, and laws that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory import instances
from spectheory.bounds.lower_bounds import certified_lower_bound
from spectheory.errors import InfeasiblePointError
from spectheory.programs.interval.interval import multi_path_interval


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

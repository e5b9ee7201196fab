"""spectr: kseq at every position, on i.i.d. drafts and on trees that are acted out."""

import numpy as np
import pytest

from edge_pairs import edge_pairs, random_pairs
from law_checks import assert_same_law
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.pairs.drafts import Iid, PrefixTree
from spectheory.verification.algorithms.position_by_position import spectr
from spectheory.verification.algorithms.position_by_position.kseq import KSeq
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr
from torch_support import drafted, on_device


def test_kseq_is_spectr_at_one_position() -> None:
    """The same law, i.i.d. and on a tree of one level; floats to a few roundings."""
    for pair in [*edge_pairs(1), *random_pairs(3, 1, 10, 660)]:
        for process in (Iid(2), Iid(3), PrefixTree((3,))):
            laws = output_law(KSeq(), pair, drafts=process), output_law(SpecTr(), pair, drafts=process)
            assert_same_law(*laws, tolerance=1e-15 if laws[0].masses[0].dtype == float else 0.0)


def test_an_accelerator_is_not_asked_where_drafts_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at a number every depth has room for K/2 meeting places: the same outcome, to 1e-14."""
    pair = instances.random_float(5, 3, 4)
    given = on_device(drafted(pair, 5, batch=200, seed=8), "cpu")
    expected = SpecTr().outcome(*given).stop_probs
    monkeypatch.setattr(spectr, "on_host", lambda array: False)
    found = SpecTr().outcome(*given).stop_probs
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    # The partner: with one place per depth the second meeting of a depth is missed.
    own = spectr.where_true
    monkeypatch.setattr(spectr, "where_true", lambda c, n: own(c, 1))
    assert abs(SpecTr().outcome(*given).stop_probs - expected).max() > 0.01

"""The optimum: which program answers, what it refuses, and what it depends on."""

import pytest

from program_support import TWO_TOKENS
from spectheory import certify
from spectheory.exact.iteration import decoded_tokens_law
from spectheory.exact.law import output_law
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.optima import (
    antichains,
    fewest_calls,
    lossy_optimum,
    most_decoded_tokens,
    multi_path_interval,
    multi_path_optimum,
    optimum,
    single_path_optimum,
)
from spectheory.optima.context_free.merged_weights import context_free_path_optimum
from spectheory.optima.interval.interval import CertifiedInterval
from spectheory.optima.solving.solution import Optimum
from spectheory.pairs import levels
from spectheory.pairs.drafts import PerPath, PrefixTree
from spectheory.pairs.pair import ModelPair
from spectheory.simulation import simulate


def test_too_large_programs_are_refused() -> None:
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 4)
    with pytest.raises(EnumerationTooLargeError, match=r"458329 non-empty antichains"):
        optimum(pair, drafts=PerPath((pair, pair)))
    with pytest.raises(EnumerationTooLargeError, match="have more than 600 contexts, the limit for"):
        optimum(ModelPair.context_free_pair(*TWO_TOKENS, 9), drafts=PrefixTree((2, *[1] * 8)))
    with pytest.raises(EnumerationTooLargeError, match="about 1e"):
        antichains(4, 5)


def test_beyond_the_exact_programs_the_optimum_is_an_interval() -> None:
    """V = 2, L = 10: a certified float interval; that of one path holds the exact efficiency of block."""
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 10)
    one, best = multi_path_interval(pair, 1), optimum(pair, 2)
    for interval in (one, best):
        assert isinstance(interval, CertifiedInterval)
        assert interval.lower <= interval.value <= interval.upper <= interval.lower * (1 + 1e-6)
    block = output_law("block", pair).block_efficiency
    assert one.lower <= block <= one.upper
    assert block < best.lower


@pytest.mark.parametrize("num_drafts", [1, 2, 64])
@pytest.mark.parametrize("draft_length", [1, 2, 3, 5])
def test_no_bound_is_above_the_longest_output(draft_length: int, num_drafts: int) -> None:
    """Equal models earn L + 1 exactly: float bounds say so or less, also for rows that sum to 1 + 9e-10.

    Without the limit the programs say more, by rounding and by the sum of the rows.
    """
    rows = [0.3, 0.7], [0.3, 0.7 + 9e-10], [1 / 3, 2 / 3]
    for row in rows:
        pair = ModelPair.context_free_pair(row, row, draft_length)
        best = optimum(pair, num_drafts)
        assert best.lower <= best.value <= best.upper <= draft_length + 1
        assert best.upper - best.lower < 1e-5
    if draft_length <= 2:
        off = ModelPair.context_free_pair(rows[1], rows[1], draft_length)
        assert multi_path_optimum(off, num_drafts).upper > draft_length + 1


def test_one_path_from_another_model_has_the_optimum_of_that_model() -> None:
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 2)
    other = ModelPair.context_free_pair(TWO_TOKENS[0], ["1/4", "3/4"], 2)
    best = optimum(pair, drafts=PerPath((other,))).value
    assert best == single_path_optimum(other).value
    assert best != single_path_optimum(pair).value
    assert optimum(pair, drafts=PerPath((pair,))).value == single_path_optimum(pair).value


def test_one_class_answers() -> None:
    """Whatever found it, an optimum has a gap: 0, below the tolerance, or between the bounds."""
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 2)
    exact, merged = optimum(pair, 2), context_free_path_optimum(pair)
    rounded, interval = optimum(pair.to_float(), 2), optimum(pair, 1_001)
    assert (exact.gap, merged.gap) == (0, 0)
    assert 0 <= rounded.gap < 1e-9
    assert interval.gap == interval.upper - interval.lower > 0
    for found in (exact, merged, rounded, interval):
        assert isinstance(found, Optimum)
        assert found.is_interval == (found is interval)
        assert found.lower <= found.value <= found.upper


def test_float_rows_are_divided_by_their_sums_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """On this pair both rows are equal then, so that every draft is accepted; else the optimum is 2.973."""
    monkeypatch.setattr(levels, "SUM_TOLERANCE", 0.01)
    pair = ModelPair.context_free_pair([0.33, 0.661], [0.3329969727547931, 0.6670030272452069], 2)
    assert pair.normalised() is not pair
    best = optimum(pair)
    assert best.lower <= 3 <= best.upper + 1e-9
    assert best.upper == pytest.approx(3, abs=1e-9)
    assert certify("block", pair).block_efficiency == pytest.approx(3, abs=1e-12)
    assert float(lossy_optimum(pair, 0).value) == pytest.approx(3, abs=1e-6)
    assert float(most_decoded_tokens(pair, 1).value) == pytest.approx(3, abs=1e-6)
    by_laws = 1 + sum(law[:3].sum() for law in decoded_tokens_law("block", pair, 3))  # Σ_i P(N(i) < 3)
    for calls in (fewest_calls(pair, 3).value, by_laws):
        assert float(calls) == pytest.approx(1, abs=1e-9)
    assert simulate(pair, verifiers=["block"], samples=100).estimates[0].block_efficiency == pytest.approx(3)

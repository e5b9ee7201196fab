"""scored_multipath: lossless exactly, optimal at one position, near the optimum on longer drafts."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from deep import first_is_quick
from law_checks import budget_masses, trusted_law
from rankings import some_cases
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimal_acceptance, optimum
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection import scored, scored_multipath
from spectheory.verification.algorithms.path_selection.score_couplings import Coupling, intervals, tilted_cuts
from spectheory.verification.algorithms.path_selection.score_levels import (
    Levels,
    lazy_levels,
    proportional_levels,
)
from spectheory.verification.algorithms.path_selection.scored_multipath import (
    ScoredMultipath,
)
from torch_support import drafted_from_a_table, on_device


@pytest.mark.parametrize("rule", [lazy_levels, proportional_levels])
@pytest.mark.parametrize("coupling", [intervals, tilted_cuts])
@first_is_quick("size", [(2, 3, 3), (3, 2, 3), (4, 1, 4), (2, 4, 2), (3, 2, 4)])
def test_every_rule_is_lossless(size: tuple[int, int, int], coupling: Coupling, rule: Levels) -> None:
    """Exactly, on pairs with zeros, ties and equal rows; the default rules meet the whole table elsewhere."""
    (V, L, K), verifier = size, ScoredMultipath(rule, coupling, num_cells=5)
    for seed in range(3):
        pair = instances.random_rational([V, L, K, seed], V, L, equal_row_probability=0.3)
        law = output_law(verifier, pair, K)
        assert law.total_variation == 0
        assert most_violated_antichain(pair, budget_masses(law), K)[0] == 0


def test_one_path_has_the_law_of_a_draft() -> None:
    """K = 1: nothing is selected, and what the levels and laws of the general route give is the same."""
    for seed in range(3):
        pair = instances.random_rational([62, seed], 3, 2, equal_row_probability=0.3)
        law = ScoredMultipath(num_cells=3).skewed_draft(pair, 1)
        assert law.leaf_law.tolist() == pair.draft_path_probs(2).tolist()
        assert law.block_efficiency(pair) == output_law("block", pair).block_efficiency
        others = ScoredMultipath(num_cells=3).skewed_draft(pair, 2)
        assert others.leaf_law.tolist() != law.leaf_law.tolist()


@pytest.mark.parametrize("num_drafts", [2, 3, 4])
def test_one_position_is_optimal(num_drafts: int) -> None:
    """L = 1: accepts with α_K exactly, by both rules of levels."""
    for seed in range(12):
        pair = instances.random_rational([61, seed], 4, 1)
        best = optimal_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts).value
        for rule in (lazy_levels, proportional_levels):
            law = output_law(ScoredMultipath(rule, num_cells=2), pair, num_drafts)
            assert law.length_probs[1] == best


@first_is_quick("agreement", [0.0, 0.3, 0.6])
def test_closes_most_of_what_others_leave(agreement: float) -> None:
    """V = 3, L = 2, K = 3, 6 pairs: at least 85 % of the way from the best other verifier to the optimum.

    And 1e-2 below no other verifier on any of them.
    """
    rows = []
    for seed in range(6):
        pair = instances.random_float([77, seed], 3, 2, agreement=agreement)
        names = ("scored_multipath", "spectr", "greedy_multipath", "mixed_multipath", "block")
        own, *others = (float(output_law(name, pair, 3).block_efficiency) for name in names)
        rows.append((own, max(others), float(optimum(pair, 3).value)))
    own, best, most = np.array(rows).T
    assert (own <= most + 1e-9).all()
    assert (own >= best - 1e-2).all()
    assert own.mean() - best.mean() >= 0.85 * (most.mean() - best.mean())


@pytest.mark.parametrize("exponent", [12, 16, 30, 70])
def test_rare_tokens_drafted_again_and_again(exponent: int) -> None:
    """V = 2, L = 4, K = 2, a token with draft probability down to 2^-70 at every depth, drafted or not.

    In floating point the stop probabilities of every tuple of drafts sum to 1 and the law is lossless, to the
    rounding of one operation on 1: nothing is magnified by the rarity of the path.
    """
    rare = Fraction(1, 2**exponent)
    rows = [1 - rare / 3, rare / 3], [1 - rare, rare]
    exact = ModelPair.context_free_pair(*rows, 4)
    law = output_law("scored_multipath", exact.to_float(), 2)
    assert law.total_variation < 1e-15
    own = ScoredMultipath().skewed_draft(exact, 2).block_efficiency(exact)
    assert law.block_efficiency == pytest.approx(float(own), abs=1e-12)
    paths = np.array(list(product((0, 1), repeat=4)))
    both = paths[np.array(list(product(range(16), repeat=2)))]
    wide = [
        np.broadcast_to(np.array(row, dtype=float), (256, 2, n, 2))
        for row, n in zip(rows, (5, 4), strict=True)
    ]
    sums = ScoredMultipath().outcome(both, *wide).stop_probs.sum((1, 2))
    np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-14)


class Grouped(ScoredMultipath):
    """Groups the tokens by knots however few they are."""

    def _groups(self, row: Array) -> bool:
        return True


@pytest.mark.parametrize(
    "group", ["partial_overlap", "disjoint_supports", "random-V3-L2-K2", "random-V4-L1-K3"]
)
def test_grouped_tokens_are_lossless(group: str) -> None:
    """Knots cost efficiency, not exactness; near the rule without them."""
    for case in some_cases(group, 4):
        law = trusted_law(Grouped(), case.pair.to_float(), case.num_drafts)
        assert law.total_variation < 1e-12, case
        exact = float(output_law("scored_multipath", case.pair, case.num_drafts).block_efficiency)
        assert law.block_efficiency == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_many_tokens(dtype: torch.dtype) -> None:
    """300 tokens: stop probabilities are a law, the selected rows too, on torch as on numpy."""
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.full(300, 0.05), size=(6, 3, 5))
    rows[:, :, 0] = rows[:, :1, 0]
    target, draft = 0.5 * rows + 0.5 * rng.dirichlet(np.full(300, 0.05), size=(6, 1, 1)), rows[:, :, :4]
    paths = rng.permuted(np.argsort(-draft, axis=-1)[..., :3], axis=-1)[..., 0]
    found = ScoredMultipath().outcome(
        *(on_device((paths,), "cpu")), *(t.to(dtype) for t in on_device((target, draft), "cpu"))
    )
    expected = ScoredMultipath().outcome(paths, target, draft)
    tolerance = 1e-8 if dtype == torch.float64 else 2e-4
    np.testing.assert_allclose(found.stop_probs.numpy(), expected.stop_probs, rtol=0, atol=tolerance)
    np.testing.assert_allclose(expected.stop_probs.sum((1, 2)), 1, rtol=0, atol=1e-12)
    assert found.stop_probs.dtype == dtype
    selected = ScoredMultipath().select(paths, target, draft)
    np.testing.assert_allclose(selected.skewed_rows.sum(-1), 1, rtol=0, atol=1e-12)


def test_parameters() -> None:
    for wrong in ({"num_cells": 0}, {"num_knots": 2}, {"num_cells": 1.5}):
        with pytest.raises(InvalidInputError, match="must be a whole number"):
            ScoredMultipath(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_cast_once(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome and the states are those of the same rows in single; without the cast they differ."""
    paths, *rows = drafted_from_a_table(1, 5, 700, 3, 4, num_tokens=3)
    half = [array.to(dtype) for array in rows]
    single = ScoredMultipath().outcome(paths, *(array.float() for array in half))
    found = ScoredMultipath().outcome(paths, *half)
    assert torch.equal(found.stop_probs, single.stop_probs)
    drawn = [outcome.sample(torch.Generator().manual_seed(1)).token for outcome in (found, single)]
    assert torch.equal(*drawn)
    monkeypatch.setattr(scored, "at_least_single", lambda rows: rows)
    monkeypatch.setattr(scored, "has_loops", lambda *rows: False)  # they read single and double only
    monkeypatch.setattr(scored_multipath, "has_loops", lambda *rows: False)
    assert not torch.equal(ScoredMultipath().outcome(paths, *half).stop_probs.float(), single.stop_probs)

"""scored_multipath: lossless exactly, optimal at one position, near the optimum on longer drafts."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from array_kinds import KINDS, assert_is
from deep import first_is_quick
from law_checks import budget_masses, trusted_law
from rankings import some_cases
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimal_acceptance, optimum
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.bounds.level_sets import SortedByRatio
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
    between,
    hat_masses,
)
from torch_support import drafted, drafted_from_a_table, on_device


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


class UndraftedFirst(ScoredMultipath):
    """Tokens that are never drafted have the smallest p/q, not the largest: an empty cell at 0, not at 1."""

    def cell_edges(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        edges = super().cell_edges(target_row, draft_row, num_drafts)
        never = int((draft_row == 0).sum())
        kept = edges[..., : edges.shape[-1] - never]
        return np.concatenate([np.repeat(edges[..., :1], never, axis=-1), kept], axis=-1)


@pytest.mark.deep
def test_where_undrafted_tokens_stand_changes_no_law() -> None:
    """p/q is infinite where q = 0, but any place will do, exactly: the cells between are empty."""
    seen = 0
    for seed in range(20):
        pair = instances.random_rational([91, seed], 3, 1 + seed % 2, zero_probability=0.35)
        laws = [trusted_law(rule(num_cells=6), pair, 2) for rule in (ScoredMultipath, UndraftedFirst)]
        seen += bool((pair.draft[0] == 0).any())
        assert laws[0].total_variation == 0
        for one, other in zip(laws[0].accepted_masses, laws[1].accepted_masses, strict=True):
            assert (one == other).all(), seed
    assert seen > 8
    ratio = SortedByRatio.of(*(np.array([Fraction(n, 4) for n in row]) for row in ((1, 2, 1), (0, 1, 3))))
    assert ratio.order.tolist() == [2, 1, 0]


@pytest.mark.parametrize("num_drafts", [2, 3, 4])
def test_one_position_is_optimal(num_drafts: int) -> None:
    """L = 1: accepts with α_K exactly, by both rules of levels."""
    for seed in range(12):
        pair = instances.random_rational([61, seed], 4, 1)
        best = optimal_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts).value
        for rule in (lazy_levels, proportional_levels):
            law = output_law(ScoredMultipath(rule, num_cells=2), pair, num_drafts)
            assert law.length_probs[1] == best


@pytest.mark.parametrize(
    ("num_tokens", "num_knots", "loss"), [(24, 24, 0.0), (25, 24, 0.01302), (25, 48, 0.0), (300, 48, 0.00454)]
)
def test_grouped_tokens_lose_acceptance(num_tokens: int, num_knots: int, loss: float) -> None:
    """L = 1, K = 2, p_i ∝ i, q uniform: α = 1, and what 24 knots lose is said in docs/scored_selection.md."""
    ramp = np.arange(1, num_tokens + 1) / (num_tokens * (num_tokens + 1) / 2)
    pair = ModelPair.context_free_pair(ramp, np.full(num_tokens, 1 / num_tokens), 1)
    own = ScoredMultipath(num_knots=num_knots).skewed_draft(pair, 2).block_efficiency(pair)
    assert optimal_acceptance(pair.target[0][0], pair.draft[0][0], 2).value == pytest.approx(1, abs=1e-12)
    assert own == pytest.approx(2 - loss, abs=1e-5)


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


def test_it_can_be_below_a_ranking() -> None:
    """Dominance is measured, not proved: here the ranking is optimal, and some scores are lost."""
    pair = instances.random_rational([5, 56], 3, 2, equal_row_probability=0.3)
    best = optimum(pair, 4).value
    assert output_law("greedy_multipath", pair, 4).block_efficiency == best
    own = output_law("scored_multipath", pair, 4).block_efficiency
    assert best - Fraction(1, 50) < own < best


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


def test_hat_masses_share_every_token_between_two_knots() -> None:
    row, lower, share = np.array([[0.5, 0.25, 0.25]]), np.array([[0, 1, 0]]), np.array([[0.5, 1.0, 0.0]])
    assert hat_masses(row, lower, share, 3).tolist() == [[0.5, 0.25, 0.25]]


def test_demands_between_knots() -> None:
    """A demand lies between two knots, at a knot or beyond the last; what is never drafted has one too."""
    demands = np.array([[0.0, 0.5, 1.0, 2.0, 9.0, np.inf, np.nan]])
    lower, share = between(np.array([0.0, 1.0, 4.0]), demands)
    assert lower.tolist() == [[0, 0, 1, 1, 1, 1, 1]]
    np.testing.assert_allclose(share, [[0, 0.5, 0, 1 / 3, 1, 1, 1]], rtol=1e-15)


def test_parameters() -> None:
    for wrong in ({"num_cells": 0}, {"num_knots": 2}, {"num_cells": 1.5}):
        with pytest.raises(InvalidInputError, match="must be a whole number"):
            ScoredMultipath(**wrong)  # type: ignore[arg-type]


def test_more_cells_matter_little() -> None:
    """8, 32 and 64 cells on a drafted batch: within 1 % of each other, and not the same."""
    arrays = drafted(instances.random_float([77, 3], 3, 3, agreement=0.3), 3, batch=200, seed=4)
    means = [ScoredMultipath(num_cells=M).outcome(*arrays).expected_tokens().mean() for M in (8, 32, 64)]
    assert max(means) - min(means) < 0.01 * means[0]
    assert len(set(means)) == 3


@first_is_quick("dtype", [torch.float32, torch.float64])
def test_loops_over_long_rows_are_the_same_verifier(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laws and samples; in single precision a product and a sum may be rounded once instead of twice."""
    given = drafted_from_a_table(1, 5, 700, 3, 4, num_tokens=3)
    given = [array.to(dtype) if array.is_floating_point() else array for array in given]
    verifier, outcomes = ScoredMultipath(), []
    for loops, compared in ((True, False), (False, False), (True, True)):
        with monkeypatch.context() as patch:
            if not loops:
                patch.setattr(scored, "has_loops", lambda *rows: False)
                patch.setattr(scored_multipath, "has_loops", lambda *rows: False)
            if compared:
                patch.setattr(scored, "LONG_ROWS", 10**9)
            outcomes.append(verifier.outcome(*given))
    drawn = [outcome.sample(torch.Generator().manual_seed(1)) for outcome in outcomes]
    for outcome, sample in zip(outcomes, drawn, strict=True):
        torch.testing.assert_close(
            outcome.stop_probs, outcomes[0].stop_probs, rtol=0, atol=4 * torch.finfo(dtype).eps
        )
        assert torch.equal(sample.token, drawn[0].token)
    assert torch.equal(outcomes[2].stop_probs, outcomes[0].stop_probs)


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


@pytest.mark.parametrize("host", [True, False])
@pytest.mark.parametrize("kind", ["float64", "torch"])
def test_sums_by_number(kind: str, host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row: what has the same number is added up, by either kernel of torch as by numpy's."""
    monkeypatch.setattr(scored_multipath, "on_host", lambda array: host)
    table = [[Fraction(1, 3), Fraction(0), Fraction(-1, 6)], [Fraction(2), Fraction(1, 7), Fraction(5, 6)]]
    values, numbers = KINDS[kind](table), np.array([[1, 1, 0], [2, 0, 2]])
    found = scored_multipath.sums_by_number(
        values, torch.from_numpy(numbers) if kind == "torch" else numbers, 4
    )
    assert_is(
        found,
        [
            [Fraction(-1, 6), Fraction(1, 3), Fraction(0), Fraction(0)],
            [Fraction(1, 7), Fraction(0), Fraction(17, 6), Fraction(0)],
        ],
        kind,
    )

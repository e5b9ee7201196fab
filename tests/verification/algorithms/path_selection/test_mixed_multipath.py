"""mixed_multipath: lossless for every share, concave in it, and the best share at the root."""

from fractions import Fraction

import numpy as np
import pytest

import reference
from deep import first_is_quick
from explicit_ranking import ExplicitRanking
from law_checks import assert_same_law, budget_masses, trusted_law
from rankings import RANDOM_GROUPS, RANKINGS, plain_order, some_cases
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.bounds.rankings import Ranking, ratio_ranking
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.algorithms.path_selection.mixed_multipath import MixedMultipath, root_mixture
from spectheory.verification.algorithms.path_selection.optimal_multipath import OptimalMultipath
from spectheory.verification.outcome import Outcome

LAMBDAS = [Fraction(number, 5) for number in range(6)]


def mixture_value(pair: ModelPair, num_drafts: int, share: Fraction, ranking: Ranking) -> Fraction:
    """Σ_a min_k p(a_{k+1:} | a_{1:k}) r(a_{1:k}) of r = λ q + (1-λ) q^Γ, in plain Python."""
    ranked = reference.skewed_leaf_probs(pair, plain_order(pair, ranking), num_drafts)
    mixed = {path: share * reference.draft_prob(pair, path) + (1 - share) * r for path, r in ranked.items()}
    return reference.ranking_efficiency(pair, mixed)


@first_is_quick("group", [*RANDOM_GROUPS, "partial_overlap", "equal_models", "point_masses"], quick=3)
def test_mixture_is_lossless_and_concave(group: str) -> None:
    """Exact for every λ; λ = 1 is block, λ = 0 greedy_multipath; E is concave."""
    for case in some_cases(group, 5):
        pair, K = case.pair, case.num_drafts
        laws = [output_law(MixedMultipath(share), pair, K) for share in LAMBDAS]
        assert_same_law(laws[0], output_law("greedy_multipath", pair, K))
        assert_same_law(laws[-1], output_law("block", pair, K))
        for law, share in zip(laws, LAMBDAS, strict=True):
            assert law.total_variation == 0, (case, share)
            assert most_violated_antichain(pair, budget_masses(law), K)[0] == 0, case
        values = [law.block_efficiency for law in laws]
        assert values[2] == mixture_value(pair, K, LAMBDAS[2], ratio_ranking), case
        for left, middle, right in zip(values, values[1:], values[2:], strict=False):
            assert 2 * middle >= left + right, case


@pytest.mark.parametrize("name", RANKINGS)
def test_mixture_with_every_ranking(name: str) -> None:
    """Lossless with λ = 1/3 and with the rule at the root; the closed form holds."""
    for case in (*some_cases("random-V2-L2-K3", 3), *some_cases("random-V3-L2-K2", 3)):
        pair, K = case.pair, case.num_drafts
        law = trusted_law(MixedMultipath(Fraction(1, 3), RANKINGS[name]), pair, K)
        assert law.total_variation == 0
        assert law.block_efficiency == mixture_value(pair, K, Fraction(1, 3), RANKINGS[name])
        chosen = trusted_law(MixedMultipath(ranking=RANKINGS[name]), pair, K)
        assert chosen.total_variation == 0


@first_is_quick("group", ["two_token", "uniform_equal", "sticky_chain", *RANDOM_GROUPS], quick=3)
def test_rule_at_the_root(group: str) -> None:
    """Lossless exactly, with the λ of the root; with L = 1 no λ of a grid earns more."""
    for case in some_cases(group):
        law = output_law(MixedMultipath(), case.pair, case.num_drafts)
        assert law.total_variation == 0, case
        if case.pair.draft_length == 1:
            values = [mixture_value(case.pair, case.num_drafts, at, ratio_ranking) for at in LAMBDAS]
            assert law.block_efficiency >= max(values), case
        share = root_mixture(case.pair.target[0], case.pair.draft[0], case.num_drafts)[0]
        fixed = output_law(MixedMultipath(share), case.pair, case.num_drafts)
        assert_same_law(law, fixed)


def test_mixture_parameters() -> None:
    """Floats are taken exactly, also on exact pairs; what is no number in [0, 1] is refused."""
    pair = instances.two_token(2)
    law = output_law(MixedMultipath(0.25), pair, 2)
    assert_same_law(law, output_law(MixedMultipath(Fraction(1, 4)), pair, 2))
    assert law.total_variation == 0
    for wrong in (-0.1, 2, Fraction(5, 4), "1/2", True, float("nan"), float("inf"), None.__class__):
        with pytest.raises(InvalidInputError, match="first_draft_prob"):
            MixedMultipath(wrong)
    for verifier in (
        MixedMultipath(),
        OptimalMultipath(pair, 2),
        GreedyMultipath(),
        ExplicitRanking(pair, range(4)),
    ):
        with pytest.raises(InvalidInputError, match="is not valid for 'without_replacement'"):
            output_law(verifier, pair, drafts=WithoutReplacement((2, 1)))


class ShareOfTheDrafts(MixedMultipath):
    """Known to be wrong: λ depends on the drafts, not on the context only."""

    def _share(self, target_row: Array, draft_row: Array, powers: Array) -> Array:
        return self.shares

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        same = paths[..., 0, 0] == paths[..., 1, 0]
        zero = target_rows[..., 0, 0, 0] * 0
        self.shares = np.where(same, zero, zero + 1)
        return super().outcome(paths, target_rows, draft_rows)


def test_mixture_partner_a_share_that_looks_at_the_drafts() -> None:
    """Then the selected path has another law than λ q + (1-λ) q^Γ, and the output is wrong."""
    assert output_law(ShareOfTheDrafts(), instances.two_token(2), 2).total_variation > 0

"""Scores with a cap: what Statement 5.14 says of them, and their estimates from drafts and continuations."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rankings import some_cases
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import multi_path_interval, optimum
from spectheory.optima.bounds import capped_upper_bound, sampled_bound
from spectheory.optima.bounds.on_path_scores import (
    Continuations,
    capped_scores,
    default_caps,
    empirical_bernstein,
    largest_score,
    sampled_path_scores,
)
from spectheory.pairs.pair import ModelPair
from theory_examples import bound_with_cap, cap_scores
from torch_support import drafted, on_device

CAPS = (Fraction(1, 2), Fraction(1), Fraction(7, 5), Fraction(2))


@pytest.mark.parametrize("group", ["partial_overlap", "equal_models", "random-V2-L3-K2", "random-V3-L2-K3"])
def test_scores_by_hand(group: str) -> None:
    """theory.md Statement 5.14 in plain Python, exactly; feasible, or the bound would be refused."""
    for case in some_cases(group, 4):
        for cap in CAPS:
            for own, expected in zip(
                capped_scores(case.pair, cap).scores, cap_scores(case.pair, cap), strict=True
            ):
                assert (own == expected).all(), (case, cap)
            bound = capped_upper_bound(case.pair, case.num_drafts, [cap])
            most = case.pair.draft_length + 1
            assert bound.value == min(most, bound_with_cap(case.pair, case.num_drafts, str(cap)))


@pytest.mark.parametrize("group", ["two_token", "disjoint_supports", "random-V2-L3-K3", "random-V3-L2-K2"])
def test_one_path_and_cap_1_is_block(group: str) -> None:
    """theory.md Statement 5.14: B(1) is the optimum of one path."""
    for case in some_cases(group, 6):
        bound = capped_upper_bound(case.pair, 1, [1]).value
        assert bound == output_law("block", case.pair).block_efficiency, case


@pytest.mark.parametrize("num_drafts", [2, 3])
def test_one_position_and_the_best_cap_is_the_optimum(num_drafts: int) -> None:
    """theory.md Statement 5.14: the smallest B(C) over the ratios, K and a cap below all of them."""
    for seed in range(12):
        pair = instances.random_rational([71, seed], 4, 1)
        ratios = [p / q for p, q in zip(pair.target[0][0], pair.draft[0][0], strict=True) if p * q]
        caps = [*ratios, num_drafts, min([*ratios, Fraction(1)]) / 2]
        assert capped_upper_bound(pair, num_drafts, caps).value == optimum(pair, num_drafts).value


@pytest.mark.deep
def test_never_below_the_optimum_and_close_to_it() -> None:
    """200 random pairs in float64: above what a verifier attains; 1 % above it on average, at worst 3 %."""
    looseness = []
    for seed in range(200):
        V, L, K = ((2, 3, 2), (3, 2, 2), (3, 2, 3), (4, 2, 4))[seed % 4]
        pair = instances.random_float([72, seed], V, L, agreement=0.1 * (seed % 7))
        attained = multi_path_interval(pair, K, relative_gap=1e-3).lower
        bound = capped_upper_bound(pair, K, default_caps(K, 12)).value
        assert bound >= attained - 1e-9, seed
        looseness.append(bound / attained - 1)
    assert np.mean(looseness) < 0.01
    assert max(looseness) < 0.03


def test_partner_another_cap_is_far_off() -> None:
    """The cap matters: with the cap of one path, three drafts are bounded by 2 % more at least."""
    pair = instances.random_float([72, 3], 3, 2)
    assert capped_upper_bound(pair, 3, [1.0]).value > 1.02 * capped_upper_bound(pair, 3).value


def test_bad_caps() -> None:
    pair = instances.two_token(1)
    with pytest.raises(InvalidInputError, match="must be positive"):
        capped_scores(pair, 0)
    with pytest.raises(InvalidInputError, match="caps is empty"):
        capped_upper_bound(pair, 2, [])


def continued(pair: ModelPair, paths: np.ndarray, seed: int, by: str = "target") -> Continuations:
    rng = np.random.default_rng(seed)
    V, L = pair.vocab_size, pair.draft_length
    shape = (*paths.shape, L - 1)
    tokens = np.zeros(shape, dtype=np.int64)
    target_rows, draft_rows = np.full((*shape, V), np.nan), np.full((*shape, V), np.nan)
    prefix = np.zeros(paths.shape[:-1], dtype=np.int64)
    for start in range(L):
        number = prefix
        for step in range(L - 1 - start):
            rows = getattr(pair, by)[start + step][number]
            uniform = rng.random((*number.shape, 1))
            token = np.minimum((uniform >= rows.cumsum(-1)).sum(-1), V - 1)
            number = number * V + token
            tokens[..., start, step] = token
            target_rows[..., start, step, :] = pair.target[start + step + 1][number]
            draft_rows[..., start, step, :] = pair.draft[start + step + 1][number]
        prefix = prefix * V + paths[..., start]
    return Continuations(tokens, target_rows, draft_rows)


PAIR = instances.random_float([73, 1], 3, 4, agreement=0.3)


def samples_of(
    pair: ModelPair, num_drafts: int, cap: float, seed: int, by: str = "target", tuples: int = 20_000
) -> np.ndarray:
    """max_k ĉ(X^k) of every tuple."""
    arrays = drafted(pair, num_drafts, tuples, seed)
    scores = sampled_path_scores(*arrays, continued(pair, arrays[0], seed + 1, by), cap)
    return scores.max(-1)


@pytest.mark.parametrize(("num_drafts", "cap"), [(1, 1.0), (1, 1.5), (3, 2.0)])
def test_sampled_scores_estimate_the_bound(num_drafts: int, cap: float) -> None:
    """One path: the exact mean within 4 standard errors.  Several: no lower, and 1 % higher at most."""
    exact = capped_upper_bound(PAIR, num_drafts, [cap]).value
    values = samples_of(PAIR, num_drafts, cap, seed=5)
    error = values.std() / math.sqrt(len(values))
    assert values.mean() >= exact - 4 * error
    assert values.mean() <= exact * (1.01 if num_drafts > 1 else 1) + 4 * error
    assert values.max() <= largest_score(PAIR.draft_length)


def test_partner_continuing_with_the_draft_is_something_else() -> None:
    exact = capped_upper_bound(PAIR, 1, [1.5]).value
    values = samples_of(PAIR, 1, 1.5, seed=5, by="draft")
    assert abs(values.mean() - exact) > 10 * values.std() / math.sqrt(len(values))


def test_shared_prefixes_share_their_continuation() -> None:
    """Two copies of a path score the same, whatever continuations the second has."""
    paths, *rows = drafted(PAIR, 1, 50, seed=2)
    doubled = [np.repeat(array, 2, axis=1) for array in (paths, *rows)]
    scores = sampled_path_scores(*doubled, continued(PAIR, doubled[0], 3), 1.5)
    assert (scores[:, 0] == scores[:, 1]).all()


def test_torch_agrees() -> None:
    arrays = drafted(PAIR, 3, 40, seed=8)
    behind = continued(PAIR, arrays[0], 9)
    expected = sampled_path_scores(*arrays, behind, 1.5)
    found = sampled_path_scores(
        *on_device(arrays, "cpu"), Continuations(*on_device(tuple(behind), "cpu")), 1.5
    )
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-12)


def test_sampled_bound_holds_on_a_real_choice_of_caps() -> None:
    """It is above the optimum, and the exact bound of the chosen cap lies below both upper ends."""
    caps = default_caps(3, 8)
    fitting, fresh = (
        np.stack([samples_of(PAIR, 3, cap, seed, tuples=4000) for cap in caps], axis=1) for seed in (20, 30)
    )
    found = sampled_bound(fitting, fresh, caps, PAIR.draft_length)
    exact = capped_upper_bound(PAIR, 3, [found.cap]).value
    best = multi_path_interval(PAIR, 3).lower
    assert best <= exact <= found.upper < found.sure
    assert found.sure < 1.06 * best
    assert found.samples == 4000


def test_partner_the_sample_that_chose_the_cap_is_too_low() -> None:
    """50 columns of noise around 2: the smallest mean is below 2 where it was chosen, and not elsewhere."""
    rng = np.random.default_rng(1)
    chosen, fresh = [], []
    for _ in range(200):
        fitting, other = rng.normal(2, 1, size=(2, 30, 50))
        found = sampled_bound(fitting, other, range(50), draft_length=2)
        chosen.append(fitting[:, int(found.cap)].mean())
        fresh.append(found.mean)
    assert np.mean(chosen) < 1.7
    assert np.mean(fresh) == pytest.approx(2, abs=0.05)


def test_empirical_bernstein_covers() -> None:
    """Skewed numbers in [0, 1], 90 % asked for: it covers, the normal end does not, where few are seen."""
    rng = np.random.default_rng(2)
    draws = (rng.random((2000, 40)) < 0.02).astype(float)
    sure = [empirical_bernstein(row, 1.0, 0.9) for row in draws]
    normal = [row.mean() + 1.2816 * row.std(ddof=1) / math.sqrt(40) for row in draws]
    assert np.mean(np.array(sure) >= 0.02) >= 0.9
    assert np.mean(np.array(normal) >= 0.02) < 0.9


def test_sampled_bound_refuses_what_proves_nothing() -> None:
    values = np.ones((4, 2))
    for fitting, fresh in ((values, values), (values, values[:1].copy()), (values[:0].copy(), values)):
        with pytest.raises(InvalidInputError, match="did not choose its cap"):
            sampled_bound(fitting, fresh, [1.0, 2.0], 2)
    with pytest.raises(InvalidInputError, match=r"expected \(tuples, caps\)"):
        sampled_bound(values, values.copy(), [1.0], 2)

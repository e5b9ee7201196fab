"""Scores with a cap: what Statement 5.14 says of them, and their estimates from drafts and continuations."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rankings import some_cases
from scripts import load
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.optima.bounds import capped_upper_bound
from spectheory.optima.bounds.on_path_scores import capped_scores
from spectheory.pairs.pair import ModelPair
from theory_examples import bound_with_cap, cap_scores
from torch_support import drafted

continuations = load("benchmarks", "continuations")
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


def test_partner_another_cap_is_far_off() -> None:
    """The cap matters: with the cap of one path, three drafts are bounded by 2 % more at least."""
    pair = instances.random_float([72, 3], 3, 2)
    assert capped_upper_bound(pair, 3, [1.0]).value > 1.02 * capped_upper_bound(pair, 3).value


def continued(pair: ModelPair, paths: np.ndarray, seed: int, by: str = "target") -> Any:
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
    return continuations.Continuations(tokens, target_rows, draft_rows)


PAIR = instances.random_float([73, 1], 3, 4, agreement=0.3)


def samples_of(
    pair: ModelPair, num_drafts: int, cap: float, seed: int, by: str = "target", tuples: int = 20_000
) -> np.ndarray:
    """max_k ĉ(X^k) of every tuple."""
    arrays = drafted(pair, num_drafts, tuples, seed)
    scores = continuations.sampled_path_scores(*arrays, continued(pair, arrays[0], seed + 1, by), cap)
    return np.asarray(scores.max(-1))


@pytest.mark.parametrize(("num_drafts", "cap"), [(1, 1.0), (1, 1.5), (3, 2.0)])
def test_sampled_scores_estimate_the_bound(num_drafts: int, cap: float) -> None:
    """One path: the exact mean within 4 standard errors.  Several: no lower, and 1 % higher at most."""
    exact = capped_upper_bound(PAIR, num_drafts, [cap]).value
    values = samples_of(PAIR, num_drafts, cap, seed=5)
    error = values.std() / math.sqrt(len(values))
    assert values.mean() >= exact - 4 * error
    assert values.mean() <= exact * (1.01 if num_drafts > 1 else 1) + 4 * error
    assert values.max() <= sum(range(1, PAIR.draft_length + 2))


def test_partner_continuing_with_the_draft_is_something_else() -> None:
    exact = capped_upper_bound(PAIR, 1, [1.5]).value
    values = samples_of(PAIR, 1, 1.5, seed=5, by="draft")
    assert abs(values.mean() - exact) > 10 * values.std() / math.sqrt(len(values))

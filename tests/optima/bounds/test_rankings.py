"""Orders of tokens and of leaves against sorting in plain Python."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch

from rankings import RANKINGS, plain_order
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.kernels import row_kernels
from spectheory.optima.bounds.rankings import (
    check_leaf_order,
    coarse_ratio_ranking,
    leaf_order,
    mass_ranked_up_to,
    ranking_keys,
    ratio_ranking,
)


@pytest.mark.parametrize("name", RANKINGS)
def test_leaf_order_sorts_by_keys_and_tokens(name: str) -> None:
    """Def. 5.2: the leaves sorted by their tuples of (key, token id), ties included."""
    for seed in range(8):
        pair = instances.random_rational(seed, 3, 2)
        found = [pair.context(2, int(leaf)) for leaf in leaf_order(pair, RANKINGS[name])]
        assert found == plain_order(pair, RANKINGS[name])


def test_bad_orders_and_rankings() -> None:
    pair = instances.two_token(2)
    with pytest.raises(InvalidInputError, match=r"keys of shape \(1, 1\) for rows of shape \(1, 2\)"):
        ranking_keys(lambda target_rows, draft_rows: draft_rows[..., :1], pair.target[0], pair.draft[0])
    for order in (
        [0, 1, 2],
        [0, 1, 2, 2],
        [0, 1, 2, 4],
        [0.0, 1.0, 2.0, 3.0],
        [[0], [1], [2], [3]],
        [(0, 0), (0, 1), (1, 0), (1, 0)],
    ):
        with pytest.raises(InvalidInputError, match="exactly once"):
            check_leaf_order(pair, order)
    with pytest.raises(InvalidInputError, match=r"outside 0\.\.1"):
        check_leaf_order(pair, [(0, 0), (0, 1), (1, 0), (1, -1)])
    assert check_leaf_order(pair, np.array([[1, 1], [0, 0], [1, 0], [0, 1]])).tolist() == [3, 0, 2, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_masses_of_coarse_ratios_need_no_sort(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against sums over the tokens sorted by (key, token id); the keys of single entries are the same."""
    generator = torch.Generator().manual_seed(3)
    target, draft = (
        (2 * torch.randn(3, 2, 3_001, generator=generator)).softmax(-1).to(dtype)[:, :, 1:] for _ in range(2)
    )
    draft[:, :, ::7] = 0
    monkeypatch.setattr(row_kernels, "argsort", None)
    found = mass_ranked_up_to(coarse_ratio_ranking, target, draft)
    assert found.dtype is dtype

    def error(ranking: Callable[..., torch.Tensor]) -> float:
        keys, places = ranking(target, draft).float().numpy(), np.broadcast_to(np.arange(3_000), draft.shape)
        order, masses = np.lexsort((places, keys)), draft.double().numpy()
        sums = np.empty_like(masses)
        np.put_along_axis(sums, order, np.take_along_axis(masses, order, -1).cumsum(-1), -1)
        return float(abs(np.where(masses > 0, found.double().numpy() - sums, 0)).max())

    assert error(coarse_ratio_ranking) < 2 * torch.finfo(dtype).eps
    assert error(ratio_ranking) > 8e-3  # the partner
    some = coarse_ratio_ranking(target[..., 5], draft[..., 5])
    assert torch.equal(some, coarse_ratio_ranking(target, draft)[..., 5])
    exact = coarse_ratio_ranking(*(instances.random_rational(1, 5, 1).target[0],) * 2)
    assert exact.tolist() == [[1] * 5]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rare", [1e-39, 1e-300, Fraction(1, 10**39), Fraction(1, 10**330)])
def test_coarse_ratios_above_float32_are_infinite(rare: float | Fraction) -> None:
    """Without a warning or an error.  Partner: a ratio that float32 has is finite."""
    target = np.array([1, 1], dtype=object) / Fraction(2)
    draft = np.array([rare, 1 - rare], dtype=object)
    if isinstance(rare, float):
        target, draft = target.astype(float), draft.astype(float)
    assert coarse_ratio_ranking(target, draft).tolist() == [np.inf, 0.5]
    assert coarse_ratio_ranking(target[1:], draft[1:] / 10**30).max() < np.inf

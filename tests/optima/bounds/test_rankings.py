"""Orders of tokens and of leaves against sorting in plain Python."""

import numpy as np
import pytest

from rankings import RANKINGS, plain_order
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.bounds.rankings import check_leaf_order, leaf_order, ranking_keys


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

"""Optimal acceptance of the next token at several nodes at once: a minimum cut, found by sorting."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectheory.foundation.arrays import divide_or_zero, ones_like, running_minimum, zeros_like
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import fractions_if_exact, plain_number
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.one_position.min_cut import MinCut
from spectheory.pairs.rows import parse_probs


def min_cut_of_nodes(
    masses: Sequence[Any] | np.ndarray, draft_probs: Sequence[Any] | np.ndarray, num_drafts: Sequence[int]
) -> MinCut:
    """Compute the largest probability that the output (a, w) is a drafted token w at node a, by sorting.

    Source: theory.md Statement 5.24.  Node j draws n_j tokens from q_j, and e_j(w) is the probability that
    the output keeps node j and continues with w.  The probability is

        min over sets T_j of  Σ_j e_j(T_j^c) + 1 - Π_j (1 - q_j(T_j))^{n_j}.

    1. Sort the tokens of every node by e/q, descending.  Its first i tokens have draft mass Q_i.
    2. Merge the J V tokens of all nodes by (e_i/q_i) (1 - Q_i) / n_j, descending.
    3. Take the smallest value over all prefixes of this list.

    Args:
        masses: e, [J, V].
        draft_probs: q, [J, V].
        num_drafts: n, [J].

    Returns:
        The value, and the minimising sets T_j as a mask [J, V].

    Raises:
        InvalidInputError: the arrays have different shapes.

    Example:
        >>> from fractions import Fraction
        >>> print(min_cut_of_nodes([["1/3", "2/3"]], [["2/3", "1/3"]], [2]).value)
        8/9
    """
    rows = [np.stack([parse_probs(row) for row in side]) for side in (masses, draft_probs)]
    if rows[0].shape != rows[1].shape or len(num_drafts) != len(rows[0]):
        raise InvalidInputError(
            "expected masses and draft_probs of one shape [J, V] and J numbers of drafts, "
            f"got {rows[0].shape}, {rows[1].shape} and {len(num_drafts)}"
        )
    _, order, negative, draft = SortedByRatio.of(-rows[0], rows[1])
    # a token that is never drafted cannot be matched, so its mass is removed from the sums
    wanted = np.where(draft == 0, zeros_like(draft), -negative)
    number = np.array(num_drafts)[:, None]
    room = 1 - draft.cumsum(axis=-1)
    first = np.argsort(-(divide_or_zero(wanted, draft) * room / number).ravel(), kind="stable")
    node = first // draft.shape[1]
    # 1 - Q of every node after each merged token: [J, 1 + J V]
    left = np.where(node == np.arange(len(draft))[:, None], room.ravel()[first], ones_like(room[:, :1]))
    left = running_minimum(np.concatenate([ones_like(left[:, :1]), left], axis=1))
    served = np.concatenate([zeros_like(left[0, :1]), wanted.ravel()[first].cumsum()])
    values = wanted.sum() - served + 1 - np.prod(left**number, axis=0)
    best = int(np.argmin(values))
    tokens = rows[1] == 0
    tokens[node[:best], order.ravel()[first[:best]]] = True
    return MinCut(plain_number(fractions_if_exact(values)[best]), tokens)

"""Rankings of the tokens after every context, and the orders of all leaves that follow from them."""

from collections.abc import Callable, Sequence

import numpy as np
from array_api_compat import is_torch_array

from spectheory.foundation.arrays import Array, argsort, namespace, put_along, quotients, take_along
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import is_exact, to_fractions
from spectheory.foundation.kernels import choice
from spectheory.pairs.contexts import prefix_numbers
from spectheory.pairs.pair import ModelPair

Ranking = Callable[[Array, Array], Array]
"""A tree-based ranking π (Def. 5.2): (target_rows [..., V], draft_rows [..., V]) -> keys [..., V], ascending.

The keys of a row may depend on this row only.  Tokens with equal keys rank by their id.  A token with q = 0
is never drafted, so its key may have any value, even NaN.
"""

COARSE_BITS = 12
"""Bits of a float32 that a coarse ratio keeps after the sign: 8 of the exponent and 4 of the fraction."""
ABOVE_FLOAT32 = 2**128
"""A ratio that is infinite in float32, and can be written in float64."""

LeafOrder = Sequence[int] | Sequence[Sequence[int]] | np.ndarray
"""A total order on the V^L leaves (Def. 5.1), lowest rank first: leaf numbers or paths of token ids."""


def ratio_ranking(target_rows: Array, draft_rows: Array) -> Array:
    """Compute π(x) = p(x|a) / q(x|a), the ranking of the paper (Eq. 21).  [..., V], [..., V] -> [..., V]

    Example:
        >>> ratio_ranking(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
        array([0.5, 1.5])
    """
    return quotients(target_rows, draft_rows)


def coarse_ratio_ranking(target_rows: Array, draft_rows: Array) -> Array:
    """Compute p(x|a) / q(x|a) in float32, coarsely.  [..., V], [..., V] -> [..., V]

    Ratios are rounded to float32, then down to one of 16 values from each power of two to the next.  Above
    float32 they are infinite.  This is another tree-based ranking than that of the paper.  Tokens are in
    4 096 classes, ranked by their id in each, so that long torch rows on a CPU need no sort.

    Example:
        >>> coarse_ratio_ranking(np.array([0.26, 0.74]), np.array([0.5, 0.5]))
        array([0.5   , 1.4375], dtype=float32)
    """
    if is_torch_array(target_rows) and target_rows.itemsize == 2:
        target_rows, draft_rows = target_rows.float(), draft_rows.float()
    ratios = quotients(target_rows, draft_rows)
    if is_exact(ratios):
        ratios = np.minimum(to_fractions(ratios), ABOVE_FLOAT32).astype(float)
    xp, cut = namespace(ratios), 31 - COARSE_BITS
    with np.errstate(over="ignore"):
        rounded = xp.astype(ratios, xp.float32)
    return (rounded.view(xp.int32) >> cut << cut).view(xp.float32)


def ranking_keys(ranking: Ranking, target_rows: Array, draft_rows: Array) -> Array:
    """Compute the keys of a ranking, one per token.  [..., V], [..., V] -> [..., V]"""
    keys = ranking(target_rows, draft_rows)
    if tuple(keys.shape) != tuple(draft_rows.shape):
        raise InvalidInputError(
            f"the ranking returned keys of shape {tuple(keys.shape)} for rows of shape "
            f"{tuple(draft_rows.shape)}; return one key per token"
        )
    return keys


def mass_ranked_up_to(ranking: Ranking, target_rows: Array, draft_rows: Array) -> Array:
    """Compute for each token x the draft mass of x and of lower-ranked tokens, ties by token id.  [..., V]"""
    if ranking is coarse_ratio_ranking and choice.sorts_by_loop(target_rows, draft_rows):
        return choice.row_kernels().mass_of_ratios_up_to(target_rows, draft_rows, COARSE_BITS)
    order = argsort(ranking_keys(ranking, target_rows, draft_rows))
    return put_along(namespace(draft_rows).cumulative_sum(take_along(draft_rows, order), axis=-1), order)


def leaf_order(pair: ModelPair, ranking: Ranking = ratio_ranking) -> np.ndarray:
    """List all leaf numbers in the lexicographic order of a ranking (Def. 5.2), lowest first, [V^L].

    Example:
        >>> from spectheory import instances
        >>> leaf_order(instances.bernoulli("1/4", "1/8", draft_length=2)).tolist()
        [3, 2, 1, 0]
    """
    positions = np.zeros(1, dtype=np.int64)
    for target_rows, draft_rows in zip(pair.target[:-1], pair.draft, strict=True):
        keys = ranking_keys(ranking, target_rows, draft_rows)
        token_ranks = np.argsort(np.argsort(keys, axis=-1, stable=True), axis=-1, stable=True)
        positions = (positions[:, None] * pair.vocab_size + token_ranks).ravel()
    return np.argsort(positions)


def check_leaf_order(pair: ModelPair, order: LeafOrder) -> np.ndarray:
    """Check that an explicit order lists every leaf once, and return it as leaf numbers, [V^L]."""
    V, L = pair.vocab_size, pair.draft_length
    numbers = np.asarray(order)
    if numbers.ndim == 2 and numbers.shape[-1] == L and numbers.dtype.kind == "i":
        if not ((numbers >= 0) & (numbers < V)).all():
            raise InvalidInputError(f"an order of leaves names a token outside 0..{V - 1}")
        numbers = prefix_numbers(numbers, V)[:, -1]
    is_list = numbers.ndim == 1 and numbers.dtype.kind == "i"
    if not is_list or sorted(numbers.tolist()) != list(range(V**L)):
        raise InvalidInputError(
            f"an order of leaves must list each of the {V**L} paths of {L} tokens exactly once, as leaf "
            f"numbers 0..{V**L - 1} or as tuples of token ids, got {np.asarray(order).tolist()}"
        )
    return numbers

"""The skewed draft q^Γ: the law of the path that a ranking selects among K i.i.d. drafts.

Two statements of it (greedy2026, section 5), which the tests hold together: over an explicit
order of all leaves (Eq. 19), and along one path for a ranking that orders the children of every
context (Eqs. 22-23), which needs on-path values only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq

from spectheory.arrays import (
    Array,
    divide_or_zero,
    is_exact,
    namespace,
    normalise,
    ones_like,
    power_sum,
    take_token,
    to_flint,
    to_fraction,
    to_fractions,
    zeros_like,
)
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.validate import check_num_drafts

Ranking = Callable[[Array, Array], Array]
"""A tree-based ranking π (Def. 5.2): (target_rows [..., V], draft_rows [..., V]) -> keys [..., V], ascending.

A row's keys may depend on that row's values only.  Tokens with equal keys rank by their id.  Where
q = 0 a key may be anything but a NaN: such a token is never drafted.
"""

LeafOrder = Sequence[int] | Sequence[Sequence[int]] | np.ndarray
"""A total order on the V^L leaves (Def. 5.1), lowest rank first: leaf numbers or paths of token ids."""


def ratio_ranking(target_rows: Array, draft_rows: Array) -> Array:
    """π(x) = p(x|a) / q(x|a), the ranking of the paper (Eq. 21).  [..., V], [..., V] -> [..., V]

    Example:
        >>> ratio_ranking(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
        array([0.5, 1.5])
    """
    return divide_or_zero(target_rows, draft_rows)


def ranking_keys(ranking: Ranking, target_rows: Array, draft_rows: Array) -> Array:
    """The keys of a ranking, one per token.  [..., V], [..., V] -> [..., V]

    Raises:
        InvalidInputError: the ranking returns another shape.
    """
    keys = ranking(target_rows, draft_rows)
    if tuple(keys.shape) != tuple(draft_rows.shape):
        raise InvalidInputError(
            f"the ranking returned keys of shape {tuple(keys.shape)} for rows of shape "
            f"{tuple(draft_rows.shape)}; return one key per token"
        )
    return keys


def mass_ranked_below(keys: Array, draft_rows: Array) -> Array:
    """sum_{t ranked below x} q(t | a) for every token x, keys ascending, ties by token id.  [..., V]"""
    xp = namespace(draft_rows)
    order = xp.argsort(keys, axis=-1, stable=True)
    in_order = xp.take_along_axis(draft_rows, order, axis=-1)
    below = xp.cumulative_sum(in_order, axis=-1) - in_order
    return xp.take_along_axis(below, xp.argsort(order, axis=-1, stable=True), axis=-1)


def skewed_draft_rows(
    path: Array,
    target_rows: Array,
    draft_rows: Array,
    num_drafts: int,
    ranking: Ranking = ratio_ranking,
    first_draft_prob: Array | None = None,
) -> Array:
    """r(. | a_{1:i}) along one path for i = 0..L-1, r = λ q + (1-λ) q^Γ (Eqs. 22-23 and 14).

    With U - B = q(a_{1:i}), q^Γ(a_{1:i}) = U^K - B^K = q(a_{1:i}) S(U, B) for
    S(U, B) = sum_j U^j B^(K-1-j).  So r / q = λ + (1-λ) S =: g, and

        r(x | a_{1:i}) = q(x | a_{1:i}) g(U_x, B_x) / g(U, B),

    which does not subtract nearly equal powers at deep, unlikely contexts.

    Args:
        path: [..., L] the selected path.
        target_rows: [..., L+1, V] target rows along it.
        draft_rows: [..., L, V] draft rows along it.
        num_drafts: K.
        ranking: the order of the children of every context.
        first_draft_prob: λ, [...]; None is λ = 0, the skewed draft of the ranking itself.

    Returns:
        [..., L, V].
    """
    xp = namespace(draft_rows)
    path_prob = ones_like(draft_rows[..., 0, 0])
    below_path = zeros_like(path_prob)
    share = zeros_like(path_prob) if first_draft_prob is None else first_draft_prob
    rows = []
    for depth in range(path.shape[-1]):
        row = draft_rows[..., depth, :]
        below_token = mass_ranked_below(ranking_keys(ranking, target_rows[..., depth, :], row), row)
        below = below_path[..., None] + path_prob[..., None] * below_token
        upper = below + path_prob[..., None] * row
        here = share + (1 - share) * power_sum(below_path + path_prob, below_path, num_drafts)
        there = share[..., None] + (1 - share[..., None]) * power_sum(upper, below, num_drafts)
        rows.append(divide_or_zero(row * there, here[..., None]))
        token = path[..., depth]
        below_path = take_token(below, token)
        path_prob = path_prob * take_token(row, token)
    return xp.stack(rows, axis=-2)


# ------------------------------------------------------------------ orders of the leaves


def leaf_order(pair: ModelPair, ranking: Ranking = ratio_ranking) -> np.ndarray:
    """All leaves in the lexicographic order of a tree-based ranking (Def. 5.2), lowest first.

    Returns:
        Leaf numbers, [V^L].

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
    """An explicit order as leaf numbers, [V^L].

    Raises:
        InvalidInputError: it does not list every leaf exactly once.

    Example:
        >>> from spectheory import instances
        >>> check_leaf_order(instances.two_token(2), [(0, 0), (1, 1), (0, 1), (1, 0)]).tolist()
        [0, 3, 1, 2]
    """
    V, L = pair.vocab_size, pair.draft_length
    numbers = np.asarray(order)
    if numbers.ndim == 2 and numbers.shape[-1] == L and numbers.dtype.kind == "i":
        if not ((numbers >= 0) & (numbers < V)).all():
            raise InvalidInputError(f"an order of leaves names a token outside 0..{V - 1}")
        numbers = numbers @ V ** np.arange(L)[::-1]
    if numbers.dtype.kind != "i" or sorted(numbers.ravel().tolist()) != list(range(V**L)):
        raise InvalidInputError(
            f"an order of leaves must list each of the {V**L} paths of {L} tokens exactly once, as leaf "
            f"numbers 0..{V**L - 1} or as tuples of token ids, got {np.asarray(order).tolist()}"
        )
    return numbers


# ----------------------------------------------------------------------------- the object


@dataclass(frozen=True, eq=False)
class SkewedDraft:
    """A law of the selected path on an enumerated pair, with its conditionals.

    Attributes:
        node_laws: ``node_laws[i]`` = r(a_{1:i}), [V^i], for depths 0..L (Eq. 13); Fractions or float64.
        vocab_size: V.

    Example:
        The paper's ranking on the two-token example: the leaf A is drafted alone with (2/3)^2.

        >>> from spectheory import instances
        >>> skewed = SkewedDraft.from_ranking(instances.two_token(1), num_drafts=2)
        >>> print(skewed.leaf_law, skewed.block_efficiency(instances.two_token(1)))
        [Fraction(4, 9) Fraction(5, 9)] 17/9
    """

    node_laws: tuple[np.ndarray, ...]
    vocab_size: int

    @property
    def draft_length(self) -> int:
        """L."""
        return len(self.node_laws) - 1

    @property
    def leaf_law(self) -> np.ndarray:
        """r(a_{1:L}), [V^L]."""
        return self.node_laws[-1]

    @cached_property
    def rows(self) -> tuple[np.ndarray, ...]:
        """r(. | a_{1:i}) for i = 0..L-1, arrays [V^i, V] (Eq. 14); zeros where r(a_{1:i}) = 0."""
        levels = (level.reshape(-1, self.vocab_size) for level in self.node_laws[1:])
        return tuple(normalise(level) for level in levels)

    @staticmethod
    def from_leaf_law(pair: ModelPair, leaf_law: np.ndarray) -> SkewedDraft:
        """The draft with this law on the leaves of a pair, summed up the tree (Eq. 13).

        Raises:
            InvalidInputError: there is not one entry per leaf.
        """
        V, L = pair.vocab_size, pair.draft_length
        levels = [np.asarray(leaf_law)]
        if levels[0].shape != (V**L,):
            raise InvalidInputError(
                f"a leaf law has one entry per path of {L} tokens, shape ({V**L},); got {levels[0].shape}"
            )
        for _ in range(L):
            levels.append(levels[-1].reshape(-1, V).sum(axis=1))
        return SkewedDraft(tuple(_plain(level) for level in reversed(levels)), V)

    @staticmethod
    def from_order(pair: ModelPair, num_drafts: int, order: LeafOrder) -> SkewedDraft:
        """r(P_i) = F_i^K - F_{i-1}^K, F_i the draft mass of the i lowest leaves (Eq. 19).

        Printed with q(P_i) inside the sums over j; it is q(P_j).
        """
        num_drafts, numbers = check_num_drafts(num_drafts), check_leaf_order(pair, order)
        probs = _fast(pair.draft_path_probs(pair.draft_length))[numbers]
        upper = probs.cumsum()
        leaf_law = np.empty_like(probs)
        leaf_law[numbers] = probs * power_sum(upper, upper - probs, num_drafts)
        return SkewedDraft.from_leaf_law(pair, leaf_law)

    @staticmethod
    def from_ranking(pair: ModelPair, num_drafts: int, ranking: Ranking = ratio_ranking) -> SkewedDraft:
        """q^Γ(a_{1:i}) = (q(a_{1:i}) + B)^K - B^K at every node, B the mass ranked below it (Eqs. 22-23).

        Printed with q(t) in the inner sums; it is the conditional q(t | a_{1:j}).
        """
        num_drafts = check_num_drafts(num_drafts)
        probs = _fast(pair.draft_path_probs(0))
        below = probs - probs
        levels = [probs]
        for target_rows, draft_rows in zip(pair.target[:-1], pair.draft, strict=True):
            rows = _fast(draft_rows)
            below_token = mass_ranked_below(ranking_keys(ranking, _fast(target_rows), rows), rows)
            below = (below[:, None] + probs[:, None] * below_token).ravel()
            probs = (probs[:, None] * rows).ravel()
            levels.append(probs * power_sum(below + probs, below, num_drafts))
        return SkewedDraft(tuple(_plain(level) for level in levels), pair.vocab_size)

    @staticmethod
    def mixture(weights: Sequence[Any], drafts: Sequence[SkewedDraft]) -> SkewedDraft:
        """sum_w weight_w r_w: draw a path-selection rule, then select with it."""
        levels = zip(*(draft.node_laws for draft in drafts), strict=True)
        mixed = (sum(w * level for w, level in zip(weights, group, strict=True)) for group in levels)
        return SkewedDraft(tuple(np.asarray(level) for level in mixed), drafts[0].vocab_size)

    def accepted_masses(self, pair: ModelPair) -> tuple[np.ndarray, ...]:
        """min_{k <= i} p(a_{k+1:i} | a_{1:k}) r(a_{1:k}) for depths 0..L, [V^i] (Eq. 83).

        P(tau >= i and X_{1:i} = a_{1:i}) of block verification with draft r.
        """
        levels = [_fast(self.node_laws[0])]
        for law, target_rows in zip(self.node_laws[1:], pair.target, strict=False):
            reached = (levels[-1][:, None] * _fast(target_rows)).ravel()
            levels.append(np.minimum(_fast(law), reached))
        return tuple(_plain(level) for level in levels)

    def block_efficiency(self, pair: ModelPair) -> Any:
        """E[tau + 1] of block verification with this draft (Eq. 16), tokens per target call."""
        return sum(level.sum() for level in self.accepted_masses(pair))


def like_rows(table: np.ndarray, rows: Array) -> Array:
    """A table of an enumerated pair in the arithmetic, precision and device of ``rows``.

    Raises:
        InvalidInputError: the rows are exact and the table is not.
    """
    if not is_exact(rows):
        return namespace(rows).asarray(table.astype(float), dtype=rows.dtype, device=rows.device)
    if not is_exact(table):
        raise InvalidInputError(
            "a verifier bound to a float64 pair was asked about exact rows; bind it to the exact pair"
        )
    return to_flint(table) if isinstance(rows.ravel()[0], fmpq) else table


def like_entries(value: Any, array: Array) -> Array:
    """One rational number as an array of the shape and arithmetic of ``array``, never through a float
    where that is exact."""
    one = ones_like(array)
    if not is_exact(array):
        return one * float(value)
    number = to_fraction(value)
    return one * number.numerator / number.denominator


def _fast(array: np.ndarray) -> np.ndarray:
    return to_flint(array) if is_exact(array) else array


def _plain(array: np.ndarray) -> np.ndarray:
    return to_fractions(array) if is_exact(array) else array

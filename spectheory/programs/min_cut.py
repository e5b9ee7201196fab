"""Optimal acceptance at one position in closed form: a minimum cut instead of V^{K+1} variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.arrays import Array, is_exact, namespace, to_flint, to_fraction, to_fractions
from spectheory.errors import InvalidInputError
from spectheory.pair import parse_probs
from spectheory.programs.budgets import check_num_drafts


class MinCut(NamedTuple):
    """The optimal acceptance and the cut that proves it.

    Attributes:
        value: α_K, [...].
        tokens: whether each token belongs to the minimising set H, booleans [..., V].
    """

    value: Any
    tokens: Array


def optimal_acceptance(
    target_probs: Sequence[Any] | Array,
    draft_probs: Sequence[Any] | Array,
    num_drafts: int,
    row_sum_tolerance: float = 1e-4,
) -> MinCut:
    """The largest probability that the output is one of K i.i.d. drafts, in O(V log V).

    Source: the optimum of spectr Eq. 4 as a minimum cut,

        α_K = min_{H ⊆ V} [ target(H) + 1 - draft(H)^K ].

    draft(H)^K is convex in a modular function, so the minimiser is a prefix of the tokens sorted by
    target/draft ascending; tokens with draft probability 0 come last.

    Args:
        target_probs, draft_probs: rows [..., V]: numpy float64 or exact rationals, torch tensors, or
            a list of strings or numbers.
        num_drafts: K.
        row_sum_tolerance: how far the sum of a float row may be from 1.

    Returns:
        The value [...] (Fractions, or float64 whatever the precision of the rows) and the minimising
        set as a mask [..., V].

    Raises:
        InvalidInputError: rows that are not probabilities over one vocabulary, or a bad num_drafts.

    Example:
        >>> value, tokens = optimal_acceptance(["1/3", "2/3"], ["2/3", "1/3"], num_drafts=2)
        >>> print(value, tokens)
        8/9 [ True False]
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_rows(target_probs, draft_probs, row_sum_tolerance)
    if is_exact(target):
        value, tokens = _min_cut(to_flint(target), to_flint(draft), num_drafts)
        value = to_fractions(value)
    else:
        xp = namespace(target)
        value, tokens = _min_cut(xp.astype(target, xp.float64), xp.astype(draft, xp.float64), num_drafts)
    # one numpy row gives a scalar, not an array without axes
    return MinCut(value[()] if isinstance(value, np.ndarray) else value, tokens)


def bernoulli_acceptance(draft_head: Any, target_head: Any, num_drafts: int) -> Any:
    """α_K of Bernoulli rows: min(c, 1 - (1-b)^K) + min(1-c, 1 - b^K) (THEORY section 3; spectr App. B).

    Args:
        draft_head: b, the draft's probability of heads, a Fraction or a float.
        target_head: c, the target's.
        num_drafts: K.

    Example:
        >>> from fractions import Fraction
        >>> print(bernoulli_acceptance(Fraction(2, 3), Fraction(1, 3), 2))
        8/9
    """
    num_drafts = check_num_drafts(num_drafts)
    for name, head in (("draft_head", draft_head), ("target_head", target_head)):
        if not 0 <= head <= 1:
            raise InvalidInputError(f"{name} must be a probability between 0 and 1, got {head}")
    heads = min(target_head, 1 - (1 - draft_head) ** num_drafts)
    return heads + min(1 - target_head, 1 - draft_head**num_drafts)


def uniform_acceptance(ratio: Any, num_drafts: int) -> Any:
    """α_K of a draft uniform on d tokens and a target uniform on d/r of them: 1 - (1 - 1/r)^K.

    Args:
        ratio: r ≥ 1, a Fraction, an int or a float.
        num_drafts: K.

    Example:
        >>> from fractions import Fraction
        >>> print(uniform_acceptance(Fraction(2), 3))
        7/8
    """
    num_drafts = check_num_drafts(num_drafts)
    if not ratio >= 1:
        raise InvalidInputError(f"ratio must be at least 1, got {ratio}")
    exact_one = ratio / ratio if not isinstance(ratio, int) else to_fraction(1)
    return 1 - (1 - exact_one / ratio) ** num_drafts


def check_rows(
    target_probs: Sequence[Any] | Array, draft_probs: Sequence[Any] | Array, row_sum_tolerance: float = 1e-4
) -> tuple[Array, Array]:
    """Both rows as arrays of one shape and arithmetic, each a probability distribution.

    Raises:
        InvalidInputError: they are not.
    """
    target: Array = target_probs if hasattr(target_probs, "dtype") else parse_probs(target_probs)
    draft: Array = draft_probs if hasattr(draft_probs, "dtype") else parse_probs(draft_probs)
    if target.shape != draft.shape or not target.ndim or not target.shape[-1]:
        raise InvalidInputError(
            f"target_probs has shape {tuple(target.shape)} and draft_probs {tuple(draft.shape)}; "
            "both must be [..., V] with one entry per token"
        )
    if target.dtype != draft.dtype:
        raise InvalidInputError(
            f"target_probs holds {target.dtype} and draft_probs {draft.dtype} entries; use one kind for both"
        )
    for name, rows in (("target_probs", target), ("draft_probs", draft)):
        xp = namespace(rows)
        allowed = 0 if is_exact(rows) else row_sum_tolerance
        sums_to_one = xp.asarray(abs(xp.sum(rows, axis=-1) - 1) <= allowed)
        # written so that a NaN is refused too
        if not (bool((rows >= 0).all()) and bool(sums_to_one.all())):
            raise InvalidInputError(f"{name} must hold probabilities ≥ 0 that sum to 1 over the last axis")
    return target, draft


def _min_cut(target: Array, draft: Array, num_drafts: int) -> tuple[Any, Array]:
    xp = namespace(target)
    ratio = _ratios(target, draft)
    order = xp.argsort(ratio, axis=-1)
    target_below = xp.take_along_axis(target, order, axis=-1).cumsum(-1)
    draft_below = xp.take_along_axis(draft, order, axis=-1).cumsum(-1)
    # cut[i]: the value of the prefix of i tokens; the empty prefix has value 1
    cut = target_below + (1 - draft_below**num_drafts)
    cut = xp.concat([target_below[..., :1] * 0 + 1, cut], axis=-1)
    best = xp.argmin(cut, axis=-1)[..., None]
    value = xp.take_along_axis(cut, best, axis=-1)[..., 0]
    # within equal ratios the cut is concave, so a minimum sits at an end: H = {ratio ≤ last ratio}
    last = xp.take_along_axis(order, xp.where(best > 0, best - 1, best), axis=-1)
    tokens = (ratio <= xp.take_along_axis(ratio, last, axis=-1)) & (best > 0)
    return value, tokens


def _ratios(target: Array, draft: Array) -> Array:
    """target/draft; where the draft is 0, larger than every other ratio."""
    xp = namespace(target)
    drafted = draft > 0
    with np.errstate(over="ignore"):  # a ratio beyond the range of floats ranks last, as it should
        ratio = target / xp.where(drafted, draft, draft * 0 + 1)
    if is_exact(target):  # rationals have no infinity
        return xp.where(drafted, ratio, np.max(ratio) + 1)
    return xp.where(drafted, ratio, ratio * 0 + float("inf"))

"""Scores with a cap: upper bounds on every valid verifier from the rows on drafted paths.

Source: theory.md Statement 5.14.  Fix a cap C > 0.  Along a path

    s(∅) = 1,      s(ax) = min{ s(a) p(x|a)/q(x|a), C }.

A context is a *hit* if the cap binds there, or if it cannot be drafted; the root is one.  G(a) is the mean
number of contexts that the target visits from a, itself included and up to depth L, before the next hit, and
c_C(b) the sum of G over the hits on the path b.  No valid verifier has a block efficiency above
E[max_k c_C(X^k)].

On language models the rows on a path show its hits, but not G, which ``sampled_path_scores`` estimates.
Noise in the estimate loosens the bound and never breaks it (theory.md Statement 7.2).  It is kept low: the
last step of a continuation is replaced by its mean, and paths that share a prefix share its continuation.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import (
    Array,
    divide_or_zero,
    like_entries,
    namespace,
    take_token,
    zeros_like,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import exact_number, flint_if_exact, fractions_if_exact
from spectheory.foundation.validation import check_confidence, check_num_drafts
from spectheory.optima.bounds.context_tree import ContextTree, Levels
from spectheory.optima.bounds.dual_scores import least_scores, slacks_of_shares, upper_bound
from spectheory.pairs.contexts import first_path_with_prefix
from spectheory.pairs.pair import ModelPair


def capped_step(state: Array, target_row: Array, draft_row: Array, cap: Array) -> tuple[Array, Array]:
    """s(ax) and whether ax is a hit, for every token x.  [...], [..., V] twice, [...] -> [..., V] twice"""
    xp = namespace(target_row)
    uncapped = divide_or_zero(state[..., None] * target_row, draft_row)
    limit = cap[..., None] + zeros_like(uncapped)
    hits = (uncapped >= limit) | (draft_row == 0)
    return xp.where(hits, limit, uncapped), hits


class CappedScores(NamedTuple):
    """A point of the dual, y and z by depth 0..L: ``upper_bound`` and ``certified_upper_bound`` take it."""

    scores: Levels
    slacks: Levels


def capped_scores(pair: ModelPair, cap: Any) -> CappedScores:
    """y and z of the cap C on an enumerated pair.

    Args:
        pair: the models.
        cap: C > 0; a Fraction or an int for an exact pair.

    Raises:
        InvalidInputError: the cap is not positive.

    Example:
        >>> from fractions import Fraction
        >>> from spectheory import instances
        >>> point = capped_scores(instances.two_token(2), 1)
        >>> print(upper_bound(instances.two_token(2), 1, *point))
        20/9
    """
    if not cap > 0:
        raise InvalidInputError(f"the cap must be positive, got {cap}")
    tree = ContextTree.of(pair)
    state = tree.draft_probs[0]
    shares = [state - state]
    for target_rows, rows in zip(tree.target_rows, pair.draft, strict=True):
        limit = like_entries(exact_number(cap), state)
        step = capped_step(state, target_rows, flint_if_exact(rows), limit)
        state, hits = (level.reshape(-1) for level in step)
        shares.append(np.where(hits, state - state, state - state + 1))
    slacks = slacks_of_shares(tree, shares)
    scores = least_scores(tree, slacks)
    return CappedScores(*([fractions_if_exact(level) for level in levels] for levels in (scores, slacks)))


class CappedBound(NamedTuple):
    """The best bound of a list of caps, a Fraction that is a proof or a float up to rounding, and its cap."""

    value: Any
    cap: Any


def default_caps(num_drafts: int, steps: int = 24) -> list[float]:
    """Caps up to K, spaced geometrically from 1/4: floats with at most 12 binary digits, exact as they stand.

    Example:
        >>> default_caps(2, 3)
        [0.25, 0.70703125, 2.0]
    """
    caps = np.geomspace(0.25, check_num_drafts(num_drafts), steps)
    return (np.round(caps * 1024) / 1024).tolist()


def capped_upper_bound(pair: ModelPair, num_drafts: int, caps: Sequence[Any] | None = None) -> CappedBound:
    """The smallest bound E[max_k c_C(X^k)] over some caps: no valid verifier of K drafts earns more.

    Args:
        pair: the models, enumerated.
        num_drafts: K.
        caps: the caps tried; ``default_caps`` if none are given.

    Example:
        >>> from spectheory import instances
        >>> print(*capped_upper_bound(instances.two_token(2), 2, [1, 2]))
        212/81 2
    """
    tried = default_caps(num_drafts) if caps is None else list(caps)
    if not tried:
        raise InvalidInputError("caps is empty; give at least one")
    return min(CappedBound(upper_bound(pair, num_drafts, *capped_scores(pair, cap)), cap) for cap in tried)


class Continuations(NamedTuple):
    """Continuations of every prefix of the drafted paths by the target, n = L-1 tokens each.

    Only the first L-1-i tokens of the continuation of prefix i are used; the others may be anything.

    Attributes:
        tokens: [..., K, L, n], drawn from the target; entry (k, i) continues the first i tokens of path k.
        target_rows, draft_rows: [..., K, L, n, V], both models' rows behind the first 1..n of these tokens.
    """

    tokens: Array
    target_rows: Array
    draft_rows: Array


def sampled_path_scores(
    paths: Array, target_rows: Array, draft_rows: Array, continuations: Continuations, cap: float
) -> Array:
    """ĉ(X^k), an unbiased estimate of the score c_C of every drafted path.

    Args:
        paths: [..., K, L] token ids.
        target_rows: [..., K, L+1, V].
        draft_rows: [..., K, L, V].
        continuations: independent of which paths were drafted behind the prefixes.
        cap: C > 0.

    Returns:
        [..., K]; its maximum over the paths is a sample of the bound.
    """
    xp = namespace(target_rows)
    length = paths.shape[-1]
    limit = zeros_like(target_rows[..., 0, 0]) + cap
    state = zeros_like(limit) + 1
    hit = state > 0
    holders = first_path_with_prefix(paths)
    total = zeros_like(limit)
    for depth in range(length):
        rows = target_rows[..., depth, :], draft_rows[..., depth, :]
        behind = Continuations(
            continuations.tokens[..., depth, :],
            continuations.target_rows[..., depth, :, :],
            continuations.draft_rows[..., depth, :, :],
        )
        visits = _visits(state, rows, behind, limit, length - depth)
        # Paths that share the prefix take the continuation of the first of them.
        visits = xp.take_along_axis(visits, holders[..., depth], axis=-1)
        total = total + xp.where(hit, visits, zeros_like(visits))
        states, hits = capped_step(state, *rows, limit)
        token = paths[..., depth]
        state, hit = take_token(states, token), take_token(hits, token)
    return total + xp.where(hit, zeros_like(total) + 1, zeros_like(total))


def _visits(
    state: Array, rows: tuple[Array, Array], behind: Continuations, limit: Array, remaining: int
) -> Array:
    """Ĝ: 1 + Σ_j 1{no hit among the first j tokens} P(no hit at the next | these j tokens), [..., K].

    The mean of Ĝ is G, and Ĝ does not depend on the last token drawn.
    """
    xp = namespace(state)
    alive = zeros_like(state) + 1
    total = alive
    for step in range(remaining):
        states, hits = capped_step(state, *rows, limit)
        total = total + alive * xp.sum(xp.where(hits, zeros_like(rows[0]), rows[0]), axis=-1)
        if step + 1 < remaining:
            token = behind.tokens[..., step]
            state, hit = take_token(states, token), take_token(hits, token)
            alive = xp.where(hit, zeros_like(alive), alive)
            rows = behind.target_rows[..., step, :], behind.draft_rows[..., step, :]
    return total


class SampledBound(NamedTuple):
    """An upper bound on every valid verifier, estimated from drafts that did not choose its cap.

    Attributes:
        cap: C, chosen on other drafts.
        mean: of max_k ĉ(X^k), tokens per target call.
        standard_error: of the mean.
        upper: the mean plus the normal quantile of the confidence times the standard error: with about this
            confidence no valid verifier earns more.
        sure: the same without a normal approximation (``empirical_bernstein``).
        confidence: of both, one-sided.
        samples: how many K-tuples of drafts.
    """

    cap: float
    mean: float
    standard_error: float
    upper: float
    sure: float
    confidence: float
    samples: int


def sampled_bound(
    fitting: np.ndarray, fresh: np.ndarray, caps: Sequence[float], draft_length: int, confidence: float = 0.99
) -> SampledBound:
    """Choose the cap with the smallest mean on one set of drafts and evaluate it on another.

    On the sample that chose the cap, the smallest mean is too small on average and proves nothing.

    Args:
        fitting: max_k ĉ(X^k) by tuple of drafts and cap, [N, caps], to choose from.
        fresh: the same of other, independent tuples, [M, caps].
        caps: C of every column.
        draft_length: L.
        confidence: one-sided, of ``upper`` and ``sure``.

    Raises:
        InvalidInputError: shapes that do not fit, fewer than two fresh tuples, the same array twice, or a
            confidence outside (0, 1).

    Example:
        >>> fitting, fresh = np.array([[2.0, 3.0], [2.0, 3.0]]), np.array([[2.0, 1.0], [3.0, 1.0]])
        >>> bound = sampled_bound(fitting, fresh, [1.0, 2.0], draft_length=2)
        >>> bound.cap, bound.mean
        (1.0, 2.5)
    """
    check_confidence(confidence)
    if fitting.ndim != 2 or fresh.ndim != 2 or {fitting.shape[1], fresh.shape[1]} != {len(caps)}:
        raise InvalidInputError(
            f"got samples of shapes {fitting.shape} and {fresh.shape} for {len(caps)} caps; "
            "expected (tuples, caps)"
        )
    if len(fitting) < 1 or len(fresh) < 2 or np.shares_memory(fitting, fresh):
        raise InvalidInputError(
            "a bound is evaluated on drafts that did not choose its cap; give two sets of them, "
            "the second of at least two"
        )
    best = int(np.argmin(fitting.mean(axis=0)))
    values = fresh[:, best]
    mean, error = float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
    return SampledBound(
        cap=float(caps[best]),
        mean=mean,
        standard_error=error,
        upper=mean + NormalDist().inv_cdf(confidence) * error,
        sure=empirical_bernstein(values, largest_score(draft_length), confidence),
        confidence=confidence,
        samples=len(values),
    )


def largest_score(draft_length: int) -> float:
    """The largest score of a path, Σ_{i=0..L} (L+1-i) = (L+1)(L+2)/2, also of an estimate: Ĝ(a) ≤ L+1-|a|."""
    return (draft_length + 1) * (draft_length + 2) / 2


def empirical_bernstein(values: np.ndarray, largest: float, confidence: float) -> float:
    """An upper end for the mean of i.i.d. numbers in [0, largest], with at least this confidence.

    Source: maurer2009 Theorem 4, mean + sqrt(2 V ln(2/δ)/n) + 7 largest ln(2/δ)/(3 (n-1)), V the sample
    variance.
    """
    n, log = len(values), math.log(2 / (1 - confidence))
    spread = math.sqrt(2 * float(values.var(ddof=1)) * log / n)
    return float(values.mean()) + spread + 7 * largest * log / (3 * (n - 1))

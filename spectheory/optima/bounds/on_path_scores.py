"""Upper bounds on every valid verifier from capped scores, which use only the rows on drafted paths.

Source: theory.md Statement 5.14.  Fix a cap C > 0.  Along a path

    s(∅) = 1,      s(ax) = min{ s(a) p(x|a)/q(x|a), C }.

A context is a *hit* if the cap binds there, or if it cannot be drafted.  The root is a hit too.  G(a) is the
mean number of contexts that the target visits from a before the next hit, including a and up to depth L.
c_C(b) is the sum of G over the hits on the path b.  No valid verifier has a block efficiency above
E[max_k c_C(X^k)].
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import (
    Array,
    divide_or_zero,
    like_entries,
    namespace,
    zeros_like,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import exact_number, flint_if_exact, fractions_if_exact
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.context_tree import ContextTree, Levels
from spectheory.optima.bounds.dual_scores import least_scores, slacks_of_shares, upper_bound
from spectheory.pairs.pair import ModelPair


def capped_step(state: Array, target_row: Array, draft_row: Array, cap: Array) -> tuple[Array, Array]:
    """Compute s(ax) for every token x, and True if ax is a hit.

    [...], [..., V] twice, [...] -> [..., V] twice
    """
    xp = namespace(target_row)
    uncapped = divide_or_zero(state[..., None] * target_row, draft_row)
    limit = cap[..., None] + zeros_like(uncapped)
    hits = (uncapped >= limit) | (draft_row == 0)
    return xp.where(hits, limit, uncapped), hits


class CappedScores(NamedTuple):
    """A dual point, y and z by depth 0..L, for ``upper_bound`` and ``certified_upper_bound``."""

    scores: Levels
    slacks: Levels


def capped_scores(pair: ModelPair, cap: Any) -> CappedScores:
    """Compute the scores y and slacks z of the cap C on an enumerated pair.

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
    """The smallest bound over a list of caps, and its cap.  A Fraction is a proof, a float may be rounded."""

    value: Any
    cap: Any


def default_caps(num_drafts: int, steps: int = 24) -> list[float]:
    """List caps from 1/4 to K in geometric progression.

    They are multiples of 1/1024, and so exact in float64.

    Example:
        >>> default_caps(2, 3)
        [0.25, 0.70703125, 2.0]
    """
    caps = np.geomspace(0.25, check_num_drafts(num_drafts), steps)
    return (np.round(caps * 1024) / 1024).tolist()


def capped_upper_bound(pair: ModelPair, num_drafts: int, caps: Sequence[Any] | None = None) -> CappedBound:
    """Compute the smallest E[max_k c_C(X^k)] over several caps, at most L + 1, in tokens per target call.

    No valid verifier has a larger block efficiency.

    Args:
        pair: the models, enumerated.
        num_drafts: K.
        caps: the caps C to try; by default ``default_caps``.

    Example:
        >>> from spectheory import instances
        >>> print(*capped_upper_bound(instances.two_token(2), 2, [1, 2]))
        212/81 2
    """
    tried = default_caps(num_drafts) if caps is None else list(caps)
    if not tried:
        raise InvalidInputError("caps is empty; give at least one")
    values = [upper_bound(pair, num_drafts, *capped_scores(pair, cap)) for cap in tried]
    bounds = [min(value, type(value)(pair.draft_length + 1)) for value in values]
    return min(map(CappedBound, bounds, tried))

"""Traversal verification: the tree of drafts from its leaves up, one weight per context."""

from __future__ import annotations

from typing import ClassVar

from spectheory.arrays import (
    Array,
    divide_or_zero,
    namespace,
    ones_like,
    positive_part,
    scaled_residual_mass,
    take_along,
    take_draft_row,
    take_path,
    take_stop_row,
    take_token,
    zeros_like,
)
from spectheory.outcome import (
    Outcome,
    first_path_with_prefix,
    is_first_with_prefix,
    shared_prefixes,
)
from spectheory.verifier import Verifier


class Traversal(Verifier):
    """Leaf-to-root verification of the tree that K i.i.d. paths make.

    From the idea of traversal2025: a leaf is tried first, with the capped ratio of joint probabilities.
    After a rejection the parent's target row becomes its residual, and the next child is tried, then the
    parent.
    The paper's text was not at hand.  So nothing here is a statement about what it prints, and what is done
    with repeated drafts is ours.  A context a has a weight w, the probability that the output is accepted
    there or below, and a target row r; w = 1 at the root, r = p(.|a) at first.

    1. The draws at a are tested in the order of their paths.  Draw x enters its context with weight
       min(1, w r(x) / q(x)), and everything below it is tried before the next draw.
    2. If all of it is rejected, S = sum max(w r - q, 0), r becomes max(w r - q, 0) / S, and w becomes
       S / (1 - w + S).  A draw that repeats an earlier one is rejected without a test.
    3. After the last draw a is accepted with probability w, with the correction token from r.  At depth L
       there are no draws: r = p.

    Lossless (theory.md Statement 5.21).  With one draft it is ``block``; with L = 1 it is ``multi_round``.
    r is max(α p - β q, 0), normalised: a few numbers per context instead of a row.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.law import output_law
        >>> law = output_law(Traversal(), instances.two_token(2), 3)
        >>> print(law.block_efficiency, law.total_variation)
        1865/729 0
    """

    name: ClassVar[str] = "traversal"
    source: ClassVar[str] = "this package, from the idea of traversal2025"

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        last = paths.shape[-1] - 1
        shared, holders = shared_prefixes(paths), first_path_with_prefix(paths)
        first = is_first_with_prefix(paths)
        weights, *scales = _weights(paths, target_rows, draft_rows, shared, holders)
        stop = _stop_probs(weights, shared, first, holders)

        def residual(path_index: Array, length: Array) -> Array:
            at = path_index, xp.clip(length, None, last)
            alpha, beta = (take_token(take_path(scale, at[0]), at[1]) for scale in scales)
            alpha = xp.where(length > last, ones_like(alpha), alpha)
            target_row = take_stop_row(target_rows, path_index, length)
            draft_row = take_draft_row(draft_rows, path_index, length)  # zeros at depth L
            return positive_part(alpha[..., None] * target_row - beta[..., None] * draft_row)

        return Outcome.from_weights(xp.where(first, stop, zeros_like(stop)), residual)


def _weights(
    paths: Array, target_rows: Array, draft_rows: Array, shared: Array, holders: Array
) -> tuple[Array, Array, Array]:
    """Steps 1 and 2, from the root down: w after the last draw, [..., K, L+1], and α, β, [..., K, L].

    r = max(α p - β q, 0) / m, at first with (α, β, m) = (1, 0, 1).  In w r - q they are w α / m and
    w β / m + 1.  Times m / (w + m) that is in [0, 1] again, so that no weight, however small, overflows.  All
    is kept per path, the same on paths that share the context.
    """
    xp = namespace(target_rows)
    on_target = take_along(target_rows[..., :-1, :], paths[..., None])[..., 0]
    ratio = divide_or_zero(on_target, take_along(draft_rows, paths[..., None])[..., 0])
    one = ones_like(ratio[..., 0])
    weight = one
    weights: list[Array] = []
    alphas: list[Array] = []
    betas: list[Array] = []
    for depth in range(paths.shape[-1]):
        state, entering = (weight, one, zeros_like(one), one), []
        for number in range(paths.shape[-2]):
            w, alpha, beta, m = (entry[..., number] for entry in state)
            tested = positive_part(alpha * ratio[..., number, depth] - beta)
            entering.append(divide_or_zero(w * tested, m))
            total = w + m
            alpha, beta = divide_or_zero(w * alpha, total), divide_or_zero(w * beta + m, total)
            rows = target_rows[..., number, depth, :], draft_rows[..., number, depth, :]
            left = beta * scaled_residual_mass(divide_or_zero(alpha, beta), *rows)
            s = divide_or_zero(left, m) * total
            new = divide_or_zero(s, 1 - w + s), alpha, beta, left
            here = shared[..., number, :, depth]
            state = tuple(xp.where(here, x[..., None], old) for x, old in zip(new, state, strict=True))
        for kept, entry in zip((weights, alphas, betas), state, strict=False):
            kept.append(entry)
        # The first path with a token says how its context is entered.
        weight = xp.minimum(take_along(xp.stack(entering, axis=-1), holders[..., depth + 1]), one)
    return xp.stack([*weights, weight], axis=-1), xp.stack(alphas, axis=-1), xp.stack(betas, axis=-1)


def _stop_probs(weights: Array, shared: Array, first: Array, holders: Array) -> Array:
    """Step 3: P(stop at the prefix of every length of every path), [..., K, L+1].

    Up the tree: P(all that is drafted below is rejected).  Down the tree: P(the context is entered).
    """
    xp = namespace(weights)
    one = ones_like(weights[..., 0])
    rejected_below, earlier_rejected = [one], []  # by depth, from L up
    for depth in reversed(range(weights.shape[-1] - 1)):
        rejected = rejected_below[-1] * (1 - weights[..., depth + 1])
        rejected = xp.where(first[..., depth + 1], rejected, one)  # what repeats a draw is not tried
        below, earlier = one, []
        for number in range(weights.shape[-2]):
            earlier.append(below[..., number])
            here = shared[..., number, :, depth]
            below = xp.where(here, below * rejected[..., number, None], below)
        earlier_rejected.append(take_along(xp.stack(earlier, axis=-1), holders[..., depth + 1]))
        rejected_below.append(below)
    entered = [one]
    for earlier_rejection in reversed(earlier_rejected):
        entered.append(entered[-1] * earlier_rejection)
    return xp.stack(entered, axis=-1) * xp.stack(rejected_below[::-1], axis=-1) * weights

"""Traversal verification: verify the tree of drafts from its leaves up, with one weight per context."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from spectheory.foundation.arrays import (
    Array,
    at_most_one,
    divide_or_zero,
    namespace,
    on_host,
    ones_like,
    positive_part,
    residual_mass,
    take_along,
    take_path,
    take_token,
    zeros_like,
)
from spectheory.pairs.contexts import first_path_with_prefix, is_first_with_prefix, shared_prefixes
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome, on_numbers_of_host
from spectheory.verification.verifier import TreeVerifier


class Traversal(TreeVerifier):
    """Leaf-to-root verification of the tree formed by K i.i.d. paths, or of a prefix tree of drafts.

    The idea is from traversal2025: a leaf is tried first, with the capped ratio of joint probabilities.
    After a rejection the parent's target row becomes its residual, and the next child is tried, then the
    parent.  We did not have the paper's text, and the rule for repeated drafts is ours.  A context a has a
    target row r, at first r = p(.|a), and a weight w, the probability that the output is accepted at a or
    below it.  At the root w = 1.

    1. The draws at a are tested in the order of their paths.  On a prefix tree these are the draws of all
       its nodes at a.  Draw x enters the context a x with weight min(1, w r(x) / q(x)); everything below x is
       tried before the next draw.
    2. If everything below x is rejected, let S = sum max(w r - q, 0).  Then r becomes max(w r - q, 0) / S,
       and w becomes S / (1 - w + S).  A draw that repeats an earlier one is rejected without a test.
    3. After the last draw a is accepted with probability w, with the correction token from r.  At depth L
       there are no draws and r = p.

    Lossless (theory.md Statement 5.21).  With one draft it is ``block``; with L = 1 it is ``multi_round``.
    Since r is max(α p - β q, 0), normalised, we store a few numbers per context instead of a row.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> law = output_law(Traversal(), instances.two_token(2), 3)
        >>> print(law.block_efficiency, law.total_variation)
        1865/729 0
    """

    name: ClassVar[str] = "traversal"
    source: ClassVar[str] = "this package, from the idea of traversal2025"
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree"})
    numbers_of_host: ClassVar[bool] = True

    @on_numbers_of_host
    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(paths)
        last = paths.shape[-1] - 1
        shared, holders = shared_prefixes(paths), first_path_with_prefix(paths)
        first = is_first_with_prefix(paths)
        is_draft = shared[..., :-1] & self.draws(paths)[:, None]
        weights, *scales = _weights(paths, target_rows, draft_rows, is_draft, holders)
        stop = _stop_probs(weights, shared, first, holders)

        def residual(path_index: Array, length: Array) -> Array:
            at = path_index, xp.clip(length, None, last)
            alpha, beta = (take_token(take_path(scale, at[0]), at[1]) for scale in scales)
            alpha = xp.where(length > last, ones_like(alpha), alpha)
            return CorrectionRows(target_rows, draft_rows, path_index, length).residual(alpha, beta)

        return Outcome.from_weights(xp.where(first, stop, zeros_like(stop)), residual)


class TriedContext(NamedTuple):
    """The state of a context after some of its draws were rejected.

    The target row is r = max(α p - β q, 0) / m, at first with (α, β, m) = (1, 0, 1).  In w r - q the factors
    of p and q are w α / m and w β / m + 1.  We multiply both by m / (w + m), which brings them back into
    [0, 1], so that they cannot overflow for small weights.
    """

    weight: Array
    alpha: Array
    beta: Array
    mass: Array

    @staticmethod
    def entered(weight: Array) -> TriedContext:
        one = ones_like(weight)
        return TriedContext(weight, one, zeros_like(weight), one)

    def entering(self, ratio: Array) -> Array:
        """Step 1: compute w r(x) / q(x) for a draw x with p(x) / q(x) = ``ratio``."""
        tested = positive_part(self.alpha * ratio - self.beta)
        return divide_or_zero(self.weight * tested, self.mass)

    def after_rejection(self, target_row: Array, draft_row: Array) -> TriedContext:
        """Step 2: compute the state after a rejection, whatever token was drawn.  Rows are [..., V]."""
        w, m = self.weight, self.mass
        total = w + m
        alpha, beta = divide_or_zero(w * self.alpha, total), divide_or_zero(w * self.beta + m, total)
        left = beta * residual_mass(target_row, draft_row, divide_or_zero(alpha, beta))
        s = divide_or_zero(left, m) * total
        return TriedContext(divide_or_zero(s, 1 - w + s), alpha, beta, left)


def _weights(
    paths: Array, target_rows: Array, draft_rows: Array, is_draft: Array, holders: Array
) -> tuple[Array, Array, Array]:
    """Steps 1 and 2 from the root down: compute w after the last draw, [..., K, L+1], and α, β, [..., K, L].

    The numbers are stored per path; paths that share a context hold the same numbers.

    Args:
        paths, target_rows, draft_rows: as in ``outcome``.
        is_draft: booleans [..., K, K, L]; entry (k, c, i) is True if token i of path k is a draw at the
            context of path c.
        holders: ``first_path_with_prefix(paths)``, [..., K, L+1].
    """
    xp = namespace(paths)
    ratio = divide_or_zero(take_token(target_rows[..., :-1, :], paths), take_token(draft_rows, paths))
    one = ones_like(ratio[..., 0])
    weight = one
    weights: list[Array] = []
    alphas: list[Array] = []
    betas: list[Array] = []
    for depth in range(paths.shape[-1]):
        state, entering = TriedContext.entered(weight), []
        if _no_draws_meet(is_draft[..., depth]):  # then all paths are computed at once
            new = state.after_rejection(target_rows[..., depth, :], draft_rows[..., depth, :])
            entered = state.entering(ratio[..., depth])
            entering = [entered[..., number] for number in range(paths.shape[-2])]
            here = xp.linalg.diagonal(is_draft[..., depth])
            state = TriedContext(*(xp.where(here, x, old) for x, old in zip(new, state, strict=True)))
        for number in range(paths.shape[-2] if not entering else 0):
            own = TriedContext(*(entry[..., number] for entry in state))
            entering.append(own.entering(ratio[..., number, depth]))
            new = own.after_rejection(target_rows[..., number, depth, :], draft_rows[..., number, depth, :])
            here = is_draft[..., number, :, depth]
            state = TriedContext(
                *(xp.where(here, x[..., None], old) for x, old in zip(new, state, strict=True))
            )
        for kept, entry in zip((weights, alphas, betas), state, strict=False):
            kept.append(entry)
        # The first path with a token gives the weight with which its context is entered.
        weight = at_most_one(take_along(xp.stack(entering, axis=-1), holders[..., depth + 1]))
    return xp.stack([*weights, weight], axis=-1), xp.stack(alphas, axis=-1), xp.stack(betas, axis=-1)


def _no_draws_meet(is_draft: Array) -> bool:
    """True if no context has draws of two paths, and the host can check it.  [..., K, K]"""
    return on_host(is_draft) and not bool(namespace(is_draft).any(is_draft.sum(-2) > 1))


def _stop_probs(weights: Array, shared: Array, first: Array, holders: Array) -> Array:
    """Step 3: compute the probability of a stop at each prefix of each path, [..., K, L+1].

    We first go up the tree for P(everything drafted below a context is rejected), and then down the tree for
    P(the context is entered).
    """
    xp = namespace(weights)
    one = ones_like(weights[..., 0])
    rejected_below, earlier_rejected = [one], []  # by depth, from L up
    for depth in reversed(range(weights.shape[-1] - 1)):
        rejected = rejected_below[-1] * (1 - weights[..., depth + 1])
        rejected = xp.where(first[..., depth + 1], rejected, one)  # a repeated draw is not tried again
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

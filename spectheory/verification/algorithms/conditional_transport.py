"""Conditional transport: verify the tree of drafts from its leaves up, with an optimal plan per context."""

from __future__ import annotations

from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    at_most_one,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    positive_part,
    take_along,
    take_path,
    take_row,
    zeros_like,
)
from spectheory.pairs.contexts import first_path_with_prefix, is_first_with_prefix, shared_prefixes
from spectheory.verification.algorithms.position_by_position.otm import OTM
from spectheory.verification.algorithms.position_by_position.positions import Position, PositionByPosition
from spectheory.verification.algorithms.traversal import _stop_probs
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import TreeVerifier


class ConditionalTransport(TreeVerifier):
    """Leaf-to-root verification with one optimal transport plan for all drafts at a context.

    The idea is from univer2026, whose text we did not have: transport plans of single positions, scaled by
    the probability that their context is accepted.  The rule is ours.  A context a that a draft enters has a
    weight w, the probability that the output is accepted at a or below it.  At the root w = 1.

    1. Y is drawn from an optimal plan between the drafts at a and the law w p(.|a).  This law has one more
       token, the rest, with mass 1 - w.  Given the drafts, Y = x has probability m(x)
    2. The distinct drafts x at a are tried in the order of their paths.  Each enters its context with weight
       m(x) / (1 - m of the earlier drafts), and everything below it is tried before the next draft
    3. If everything is rejected, Y is none of the drafts.  If Y is a token, the round ends at a with the
       correction token Y.  If Y is the rest, a is rejected.  At depth L there are no drafts: a is accepted
       with probability w, and Y ~ p

    Lossless (theory.md Statement 5.30).  With one draft it is ``block``.  At L = 1 it accepts as much as
    ``otm``, the most that a lossless verifier can.  It is optimal on trees that branch only at the last
    position.

    Raises:
        InvalidInputError: a drafted token has probability 0 in the draft row of its path.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> law = output_law(ConditionalTransport(), instances.two_token(2), 3)
        >>> print(law.block_efficiency, law.total_variation)
        6212/2187 0
    """

    name: ClassVar[str] = "conditional_transport"
    source: ClassVar[str] = "this package, from the idea of univer2026"
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree"})
    plan: ClassVar[PositionByPosition] = OTM()
    """The coupling at a context.  With ``multi_round`` in its place the verifier is ``traversal``."""

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        shared, holders = shared_prefixes(paths), first_path_with_prefix(paths)
        first, is_draft = is_first_with_prefix(paths), shared[..., :-1] & self.draws(paths)[:, None]
        weight = ones_like(target_rows[..., 0, 0])
        weights, residuals = [], []
        for depth in range(paths.shape[-1]):
            plan = self.plan.select(_scaled(weight, paths, target_rows, draft_rows, is_draft, depth))
            before = xp.cumulative_sum(plan.by_draft, axis=-1) - plan.by_draft
            entering = at_most_one(divide_or_zero(plan.by_draft, 1 - before))
            none = positive_part(1 - xp.sum(plan.by_draft, axis=-1))
            corrections = normalise(plan.residual) * none[..., None]
            weights.append(at_most_one(divide_or_zero(xp.sum(corrections[..., :-1], axis=-1), none)))
            residuals.append(corrections[..., :-1])
            # The first path with a token gives the weight with which its context is entered.
            own = xp.stack([entering[..., number, number] for number in range(paths.shape[-2])], axis=-1)
            weight = take_along(own, holders[..., depth + 1])
        rows = xp.stack([*residuals, target_rows[..., -1, :]], axis=-2)
        stop = _stop_probs(xp.stack([*weights, weight], axis=-1), shared, first, holders)

        def correction_row(path_index: Array, length: Array) -> Array:
            return take_row(take_path(rows, path_index), length)

        return Outcome.from_weights(xp.where(first, stop, zeros_like(stop)), correction_row)


def _scaled(
    weight: Array, paths: Array, target_rows: Array, draft_rows: Array, is_draft: Array, depth: int
) -> Position:
    """Step 1: build the contexts at one depth, with one more token of mass 1 - w that is never drafted."""
    xp = namespace(target_rows)

    def with_rest(rows: Array, rest: Array) -> Array:
        return xp.concat([rows, rest[..., None]], axis=-1)

    return Position(
        paths[..., depth],
        with_rest(weight[..., None] * target_rows[..., depth, :], 1 - weight),
        drafts := with_rest(draft_rows[..., depth, :], zeros_like(weight)),
        xp.moveaxis(is_draft[..., depth], -1, -2),
        lambda number: drafts[..., number, None, :],
    )

"""Base class of verifiers that work position by position: kseq, spectr, multi-round rejection and otm.

Each algorithm supplies its rule at one position, ``select``.  The base class tracks the surviving drafts, the
probability of every context, and the end of the round (spectr2023 Algorithm 3).
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from spectheory.foundation.arrays import (
    Array,
    at_most_one,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    prefix_products,
    take_along,
    take_path,
    take_row,
    take_token,
    zero_where,
    zeros_like,
)
from spectheory.pairs.contexts import is_first_with_prefix, shared_prefixes
from spectheory.verification.correction_rows import CorrectionRows, take_draft_row
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import TreeVerifier


class Position(NamedTuple):
    """C contexts of one depth and the drafts at each: the contexts of all K paths (C = K), or one (C = 1).

    Attributes:
        tokens: [..., K], the next token of every path.
        target_rows: [..., C, V], p(. | context).
        draft_rows: [..., C, V], q(. | context), of the path to which the context belongs.
        is_draft: booleans [..., C, K], True if the next token of path k is a draft at context c.  This means
            that path k is at context c, and draws its own token instead of repeating an earlier path's.
        draft_row_of: path k -> [..., 1, V], the row from which its next token was drawn.
    """

    tokens: Array
    target_rows: Array
    draft_rows: Array
    is_draft: Array
    draft_row_of: Callable[[int], Array]

    def on_tokens(self, rows: Array) -> Array:
        """Take the entries of ``rows`` [..., C, V] at the next tokens, [..., C, K]."""
        tokens = namespace(self.tokens).broadcast_to(self.tokens[..., None, :], self.is_draft.shape)
        return take_along(rows, tokens)

    def context_of(self, number: int) -> int:
        """Return the index of path k's context among the C contexts."""
        return number if self.is_draft.shape[-2] > 1 else 0


class Selection(NamedTuple):
    """The law of the next token Y at C contexts, given their drafts.

    Attributes:
        by_draft: [..., C, K], P(the draft of path k is selected as Y), 0 if path k has no draft there.
        none: [..., C], P(no draft is selected).
        residual: [..., C, V], mass proportional to the law of Y given that no draft is selected.  Drafted
            tokens may have mass.  If a context has no drafts, it is the target's row.
    """

    by_draft: Array
    none: Array
    residual: Array


class DraftSelection(NamedTuple):
    """A ``Selection`` without its residual.

    ``note``, [..., C], is the number from which ``residual`` computes the residual at a stop.
    """

    by_draft: Array
    none: Array
    note: Array


class Step(NamedTuple):
    """Transition probabilities at the contexts of all K paths, C = K, or at one context, C = 1.

    Attributes:
        leave: [..., C], P(Y is not a drafted token).
        follow: [..., K], P(Y is the next token of path k) at the context of path k.
        note: [..., C], the note of ``DraftSelection``, or None if the rule supplies ``select``.
        residual: [..., C, V], the law of Y given that no draft is selected, without drafted tokens.  None if
            there is a note.
    """

    leave: Array
    follow: Array
    note: Array | None
    residual: Array | None


class PositionByPosition(TreeVerifier):
    """Draft selection with multiple candidates, spectr2023 Algorithm 3, for any rule at one position.

    At a context with its surviving drafts:

    1. the rule of the algorithm chooses Y, given the next tokens of the drafts         (lines 1-2)
    2. at depth L-1 a Y that was drafted is followed by one more token from the target (lines 3-10)
    3. at other depths the drafts whose next token is Y survive; if none does, the round ends
       with Y as the correction token                                               (lines 11-16)

    Lossless if at every context Y follows the target, given that the drafts follow their law (theory.md
    Statement 5.15).
    """

    _depths_at_once: ClassVar[int | None] = 1
    """The number of depths computed together, ``None`` for all.  More depths give fewer, larger kernels."""

    def select(self, position: Position) -> Selection:
        """Apply the rule at one position: compute the law of Y given the drafts there."""
        found = self.select_draft(position)
        if found is None:
            raise NotImplementedError(f"{type(self).__name__} has neither select nor select_draft")
        residual = self.residual(position.target_rows, position.draft_rows, found.note)
        return Selection(found.by_draft, found.none, residual)

    def select_draft(self, position: Position) -> DraftSelection | None:
        """Compute ``select`` without the residual, for rules whose residual has no mass on drafted tokens.

        The stops then need no residual, and no row is written to compute them.  Such a rule also supplies
        ``residual``.  Other rules supply ``select``, and this method returns ``None``.
        """
        return None

    def residual(self, target_rows: Array, draft_rows: Array, note: Array) -> Array:
        """Compute the residual of ``select``, [..., V], from the note of ``select_draft``, [...]."""
        raise NotImplementedError

    def residual_at(self, rows: CorrectionRows, note: Array) -> Array:
        """Compute ``residual`` at a stop."""
        return self.residual(rows.target_row, rows.draft_row, note)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp, rows = namespace(paths), namespace(target_rows)
        shared = shared_prefixes(paths)
        # [..., C, K, L]: path k's draw at this depth is a draft at the context of path c
        is_draft = shared[..., :-1] & self.draws(paths)
        steps = [
            self.step(
                Position(
                    xp.moveaxis(paths[..., at], -1, -2),
                    rows.moveaxis(target_rows[..., at, :], -2, -3),
                    rows.moveaxis(draft_rows[..., at, :], -2, -3),
                    xp.moveaxis(is_draft[..., at], -1, -3),
                    lambda number, at=at: draft_rows[..., number, at, None, :],  # type: ignore[misc]
                )
            )[:3]  # drop the residuals, which are as large as the rows
            for at in self._depths(paths.shape[-1])
        ]
        leave, follow, *notes = (
            xp.moveaxis(xp.concat(part, axis=-2), -1, -2)
            for part in zip(*steps, strict=True)
            if part[0] is not None
        )
        last = paths.shape[-1] - 1
        # P(context a_{1:i} of path k is reached) for i = 0..L, [..., K, L+1]
        reach = prefix_products(follow)
        stop = xp.concat([reach[..., :-1] * leave, reach[..., -1:]], axis=-1)
        holds_first = is_first_with_prefix(paths)

        def residual(path_index: Array, length: Array) -> Array:
            if notes:
                rows = CorrectionRows(target_rows, draft_rows, path_index, length)
                # After the last drafted token q is 0, and every note gives the target's row.
                on_path = take_path(notes[0], path_index)
                note = take_token(on_path, xp.clip(length, None, last))
                return self.residual_at(rows, note)
            position = _position_at(paths, target_rows, draft_rows, is_draft, path_index, length)
            return _without_drafted(position, self.select(position).residual)[..., 0, :]

        return Outcome.from_weights(xp.where(holds_first, stop, zeros_like(stop)), residual)

    def _depths(self, length: int) -> list[slice]:
        size = self._depths_at_once or length
        return [slice(depth, min(depth + size, length)) for depth in range(0, length, size)]

    def step(self, position: Position) -> Step:
        """Compute the ``Step`` at the contexts, from ``select_draft`` or ``select``."""
        xp = namespace(position.tokens)
        found, residual = self.select_draft(position), None
        if found is None:
            selection = self.select(position)
            residual = normalise(selection.residual)
            by_draft, none = selection.by_draft, selection.none
            from_residual = none * take_token(residual, position.tokens)
            residual = _without_drafted(position, residual)
            leave = xp.sum(residual, axis=-1)
        else:
            by_draft, none = found.by_draft, found.none
            leave, from_residual = ones_like(none), zeros_like(none)
        same_token = position.tokens[..., :, None] == position.tokens[..., None, :]
        follow = xp.sum(xp.where(same_token, by_draft, zeros_like(by_draft)), axis=-1)
        return Step(none * leave, follow + from_residual, None if found is None else found.note, residual)


def first_accepted(accept: Array, residual: Array) -> Selection:
    """Test the drafts in order, independently, until one is accepted; if none is, use the residual.

    Args:
        accept: [..., C, K], P(draft k is accepted | it is tested), 0 if there is no draft.
        residual: [..., C, V].
    """
    return Selection(*one_after_the_other(accept), residual)


def one_after_the_other(accept: Array) -> tuple[Array, Array]:
    """Compute ``by_draft`` and ``none`` of ``first_accepted``."""
    all_rejected = prefix_products(1 - accept)
    return all_rejected[..., :-1] * accept, all_rejected[..., -1]


def acceptance_ratio(target_on_tokens: Array, draft_on_tokens: Array, is_draft: Array) -> Array:
    """Compute min(1, p(x)/q(x)) for drafts x, and 0 where there is no draft.  [..., C, K]"""
    xp = namespace(target_on_tokens)
    ratio = divide_or_zero(target_on_tokens, draft_on_tokens)
    return xp.where(is_draft, at_most_one(ratio), zeros_like(ratio))


def _position_at(
    paths: Array,
    target_rows: Array,
    draft_rows: Array,
    is_draft: Array,
    path_index: Array,
    length: Array,
) -> Position:
    """Build the position at one prefix per batch element (C = 1).  At depth L there are no drafts."""
    xp = namespace(target_rows)
    at_leaf = length == paths.shape[-1]
    last = xp.where(at_leaf, length - 1, length)
    rows = CorrectionRows(target_rows, draft_rows, path_index, length)
    drafts_here = take_row(take_path(xp.moveaxis(is_draft, -1, -2), path_index), last)
    return Position(
        take_row(xp.moveaxis(paths, -1, -2), last),
        rows.target_row[..., None, :],
        rows.draft_row[..., None, :],
        (drafts_here & ~at_leaf[..., None])[..., None, :],
        lambda number: take_draft_row(draft_rows, zeros_like(path_index) + number, length)[..., None, :],
    )


def _without_drafted(position: Position, residual: Array) -> Array:
    xp = namespace(residual)
    vocabulary = xp.arange(residual.shape[-1], device=position.tokens.device)
    for number in range(position.tokens.shape[-1]):
        drafted = vocabulary == position.tokens[..., number, None]
        hit = position.is_draft[..., number, None] & drafted[..., None, :]
        residual = zero_where(hit, residual)
    return residual

"""The frame of the verifiers that go position by position: kseq, spectr, multi-round rejection and otm.

Each algorithm supplies its rule at one position, ``select``.  This module has what they share (spectr2023
Algorithm 3): which drafts survive, how likely each context is reached, and where the round ends.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from typing import NamedTuple, Self

from spectheory.arrays import (
    Array,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    prefix_products,
    take_draft_row,
    take_path,
    take_row,
    take_stop_row,
    take_token,
    zeros_like,
)
from spectheory.drafts import DraftProcess
from spectheory.errors import InvalidInputError
from spectheory.outcome import Outcome, is_first_with_prefix, shared_prefixes
from spectheory.pair import ModelPair
from spectheory.verifier import Verifier


class Position(NamedTuple):
    """C contexts of one depth with the drafts at each of them.

    Attributes:
        tokens: [..., K], the next token of every path.
        target_rows: [..., C, V], p(. | context).
        draft_rows: [..., C, V], q(. | context), of the path the context belongs to.
        is_draft: booleans [..., C, K], whether the next token of path k is a draft at context c: the
            path stands there and draws its own token, rather than repeating an earlier path's.
        draft_row_of: path k -> [..., 1, V], the row its next token was drawn from.
    """

    tokens: Array
    target_rows: Array
    draft_rows: Array
    is_draft: Array
    draft_row_of: Callable[[int], Array]

    def on_tokens(self, rows: Array) -> Array:
        """The entries of ``rows`` [..., C, V] at the next tokens, [..., C, K]."""
        xp = namespace(rows)
        wide = xp.broadcast_to(self.tokens[..., None, :], self.is_draft.shape)
        return xp.take_along_axis(rows, wide, axis=-1)


class Selection(NamedTuple):
    """The law of the next token Y at C contexts, given their drafts.

    Attributes:
        by_draft: [..., C, K], P(Y is the draft of path k), 0 where path k has none at the context.
        none: [..., C], P(no draft is selected).
        residual: [..., C, V], mass proportional to the law of Y given that none is.  It may lie on
            drafted tokens.  The target's row where there are no drafts.
    """

    by_draft: Array
    none: Array
    residual: Array


class PositionByPosition(Verifier):
    """Draft selection with multiple candidates, spectr2023 Algorithm 3, for any rule at one position.

    At a context with its surviving drafts:

    1. Y is chosen given their next tokens, by the rule of the algorithm                 (lines 1-2)
    2. at depth L-1 a Y that was drafted is followed by one more token from the target (lines 3-10)
    3. otherwise the drafts whose next token is Y survive; if there are none the round ends
       with Y as the correction token                                               (lines 11-16)

    Lossless if at every context Y follows the target when the drafts follow their law (theory.md
    Statement 5.15).  On a tree, paths that repeat an earlier path's draw count as one draft.  Counted as
    several they would not be independent, and the output would not follow the target.
    """

    _process: DraftProcess | None = None

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Self:
        """The same algorithm, told which paths draw their own token at which depth."""
        super().bind(process, pair)
        configured = copy(self)
        configured._process = process
        return configured

    @abstractmethod
    def select(self, position: Position) -> Selection:
        """The rule at one position: the law of Y given the drafts there."""

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        shared = shared_prefixes(paths)
        # [..., C, K, L]: path k's draw at this depth is a draft at the context of path c
        is_draft = shared[..., :-1] & self._draws(paths)
        reach = ones_like(target_rows[..., 0, 0])  # P(context a_{1:i} of path k is reached), [..., K]
        stop_probs = []
        for depth in range(paths.shape[-1]):
            position = Position(
                paths[..., depth],
                target_rows[..., depth, :],
                draft_rows[..., depth, :],
                is_draft[..., depth],
                lambda number, depth=depth: draft_rows[..., number : number + 1, depth, :],  # type: ignore[misc]
            )
            leave, follow = _leave_or_follow(position, self.select(position))
            stop_probs.append(reach * leave)
            reach = reach * follow
        stop_probs.append(reach)
        stop = xp.stack(stop_probs, axis=-1)
        holds_first = is_first_with_prefix(paths)

        def correction(path_index: Array, length: Array) -> Array:
            position = _position_at(paths, target_rows, draft_rows, is_draft, path_index, length)
            return normalise(_without_drafted(position, self.select(position).residual))[..., 0, :]

        return Outcome(xp.where(holds_first, stop, zeros_like(stop)), correction)

    def _draws(self, paths: Array) -> Array:
        """Whether path k draws its own token at depth i, booleans [K, L]."""
        num_drafts, length = paths.shape[-2:]
        xp = namespace(paths)
        if self._process is None:
            return xp.ones((num_drafts, length), dtype=xp.bool, device=paths.device)
        draws = self._process.draws(length)
        if draws.shape != (num_drafts, length):
            raise InvalidInputError(
                f"verifier {self.name!r} was set up for {self._process}, which draws "
                f"{self._process.num_drafts} paths, but got {num_drafts}; set it up with bind"
            )
        return xp.asarray(draws, device=paths.device)


def first_accepted(accept: Array, residual: Array) -> Selection:
    """Drafts accepted independently of each other, in order, until one is; otherwise the residual.

    Args:
        accept: [..., C, K], P(draft k is accepted, once it is its turn), 0 where there is no draft.
        residual: [..., C, V].
    """
    all_rejected = prefix_products(1 - accept)
    return Selection(all_rejected[..., :-1] * accept, all_rejected[..., -1], residual)


def acceptance_ratio(target_on_tokens: Array, draft_on_tokens: Array, is_draft: Array) -> Array:
    """min(1, p(x)/q(x)) for drafts x, and 0 where there is no draft.  [..., C, K]"""
    xp = namespace(target_on_tokens)
    ratio = divide_or_zero(target_on_tokens, draft_on_tokens)
    return xp.where(is_draft, xp.minimum(ratio, ones_like(ratio)), zeros_like(ratio))


def _leave_or_follow(position: Position, selection: Selection) -> tuple[Array, Array]:
    """P(Y is not drafted) and P(Y is the next token of path k), both [..., K], at every path's context."""
    xp = namespace(selection.residual)
    residual = normalise(selection.residual)
    leave = xp.sum(_without_drafted(position, residual), axis=-1)
    same_token = position.tokens[..., :, None] == position.tokens[..., None, :]
    by_draft = xp.where(same_token, selection.by_draft, zeros_like(selection.by_draft))
    follow = xp.sum(by_draft, axis=-1) + selection.none * take_token(residual, position.tokens)
    return selection.none * leave, follow


def _position_at(
    paths: Array,
    target_rows: Array,
    draft_rows: Array,
    is_draft: Array,
    path_index: Array,
    length: Array,
) -> Position:
    """The context of one prefix per batch element (C = 1); at depth L there are no drafts."""
    xp = namespace(target_rows)
    at_leaf = length == paths.shape[-1]
    last = xp.where(at_leaf, length - 1, length)
    drafts_here = take_row(take_path(xp.moveaxis(is_draft, -1, -2), path_index), last)
    return Position(
        take_row(xp.moveaxis(paths, -1, -2), last),
        take_stop_row(target_rows, path_index, length)[..., None, :],
        take_draft_row(draft_rows, path_index, length)[..., None, :],
        (drafts_here & ~at_leaf[..., None])[..., None, :],
        lambda number: take_draft_row(draft_rows, zeros_like(path_index) + number, length)[..., None, :],
    )


def _without_drafted(position: Position, residual: Array) -> Array:
    """The residual with zeros at the tokens drafted at the same context, [..., C, V]."""
    xp = namespace(residual)
    vocabulary = xp.arange(residual.shape[-1], device=position.tokens.device)
    for number in range(position.tokens.shape[-1]):
        drafted = vocabulary == position.tokens[..., number, None]
        hit = position.is_draft[..., number, None] & drafted[..., None, :]
        residual = xp.where(hit, xp.zeros_like(residual), residual)
    return residual

"""SpecTr: K-SEQ position by position over the drafts that survive."""

from __future__ import annotations

from typing import ClassVar

from spectheory.algorithms.kseq import kseq_rule
from spectheory.arrays import (
    Array,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    take_draft_row,
    take_path,
    take_row,
    take_stop_row,
    take_token,
)
from spectheory.outcome import Outcome, Verifier, first_path_with_prefix, shared_prefixes


class SpecTr(Verifier):
    """Draft selection with multiple candidates, spectr.txt Algorithm 3 with Algorithm 2 inside.

    At a context reached by n surviving drafts (p target, q draft):

    1. the transport plan is K-SEQ with its ρ* for n drafts                           (line 1)
    2. Y is the first draft token accepted, each with probability min(1, p/(ρ q)), in the order
       of the drafts; if none is, Y is drawn from the residual                (line 2; Alg. 2)
    3. at depth L-1 an accepted Y is followed by one more token from the target    (lines 3-10)
    4. otherwise the drafts whose next token is Y survive; if there are none the round ends
       with Y as the correction token                                            (lines 11-16)

    A token drawn from the residual may happen to be drafted too; the round then goes on with it,
    as printed.  Lossless (Thm 2); K = 1 is ``token``.  ρ* is algebraic, so the law is float64.

    Example:
        >>> from spectheory import certify, instances
        >>> certificate = certify("spectr", instances.two_token(1), num_drafts=2, with_optimum=False)
        >>> round(certificate.block_efficiency_float, 6)
        1.81142
    """

    name: ClassVar[str] = "spectr"
    source: ClassVar[str] = "spectr Alg. 2, 3"
    exact: ClassVar[bool] = False

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        shared = shared_prefixes(paths)
        holds_first = (
            first_path_with_prefix(paths) == xp.arange(paths.shape[-2], device=paths.device)[:, None]
        )
        survivors = xp.astype(xp.sum(xp.astype(shared, xp.int64), axis=-2), target_rows.dtype)

        reach = ones_like(target_rows[..., 0, 0])  # P(context a_{1:i} of path k is reached), [..., K]
        stop_probs = []
        for depth in range(paths.shape[-1]):
            tokens = paths[..., depth]
            target_row, draft_row = target_rows[..., depth, :], draft_rows[..., depth, :]
            rule = kseq_rule(target_row, draft_row, survivors[..., depth])
            select, reject_all = _select(
                take_token(target_row, tokens),
                take_token(draft_row, tokens),
                rule.division_factor,
                shared[..., depth],
            )
            residual = normalise(rule.residual)
            next_tokens = tokens[..., None, :]
            leave = xp.sum(_without_drafted(residual, next_tokens, shared[..., depth]), axis=-1)
            stop_probs.append(reach * reject_all * leave)
            same_child = xp.astype(shared[..., depth + 1], target_rows.dtype)
            by_acceptance = xp.sum(same_child * select[..., None, :], axis=-1)
            reach = reach * (by_acceptance + reject_all * take_token(residual, tokens))
        stop_probs.append(reach)
        stop = xp.stack(stop_probs, axis=-1)

        def correction(path_index: Array, length: Array) -> Array:
            """The residual without the drafted tokens; at depth L the target's row."""
            at_leaf = length == paths.shape[-1]
            last = xp.where(at_leaf, length - 1, length)
            next_tokens = take_row(xp.moveaxis(paths, -1, -2), last)
            together = take_row(take_path(xp.moveaxis(shared, -1, -2), path_index), last)
            rule = kseq_rule(
                take_stop_row(target_rows, path_index, length),
                take_draft_row(draft_rows, path_index, length),
                take_token(take_path(survivors, path_index), length),
            )
            return normalise(_without_drafted(rule.residual, next_tokens, together & ~at_leaf[..., None]))

        return Outcome(xp.where(holds_first, stop, xp.zeros_like(stop)), correction)


def _select(
    target_on_path: Array, draft_on_path: Array, division_factor: Array, shared: Array
) -> tuple[Array, Array]:
    """P(draft k is the one accepted) and P(no draft at its context is), both [..., K].

    Args:
        target_on_path, draft_on_path: p and q of each path's next token, [..., K].
        division_factor: ρ at each path's context, [..., K].
        shared: [..., K, K], which paths stand at the same context.
    """
    xp = namespace(target_on_path)
    accept = divide_or_zero(target_on_path, division_factor * draft_on_path)
    accept = xp.minimum(accept, ones_like(accept))
    num_drafts = accept.shape[-1]
    none_before, none_at_all = ones_like(accept), ones_like(accept)
    numbers = xp.arange(num_drafts, device=shared.device)
    for other in range(num_drafts):
        rejected = xp.where(shared[..., other], 1 - accept[..., other][..., None], xp.ones_like(accept))
        none_at_all = none_at_all * rejected
        none_before = none_before * xp.where(numbers > other, rejected, xp.ones_like(rejected))
    return none_before * accept, none_at_all


def _without_drafted(residual: Array, next_tokens: Array, shared: Array) -> Array:
    """The residual with zeros at the tokens drafted at the same context.

    Args:
        residual: [..., V].
        next_tokens: [..., K] the next token of every draft.
        shared: [..., K] whether that draft stands at the context.
    """
    xp = namespace(residual)
    vocabulary = xp.arange(residual.shape[-1], device=next_tokens.device)
    for other in range(next_tokens.shape[-1]):
        hit = shared[..., other, None] & (vocabulary == next_tokens[..., other, None])
        residual = xp.where(hit, xp.zeros_like(residual), residual)
    return residual

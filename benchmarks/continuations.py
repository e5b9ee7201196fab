"""Continuations of drafted paths by the target, from which an upper bound on all verifiers is sampled.

On language models the rows on a path show the hits of its capped scores (theory.md Statement 5.14), but not
their gains G, which ``sampled_path_scores`` estimates.  Noise in the estimate loosens the bound and never
breaks it (Statement 7.2).  It is kept low: the last step of a continuation is replaced by its mean, and paths
that share a prefix share its continuation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spectheory.foundation.arrays import Array, namespace, take_token, zeros_like
from spectheory.optima.bounds.on_path_scores import capped_step
from spectheory.pairs.contexts import first_path_with_prefix
from spectheory.verification.outcome import sample_rows

if TYPE_CHECKING:
    from torch import Generator

    from spectheory.models import SamplingOptions
    from spectheory.models.drafting import DraftedBatch, PrefilledPrompts


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


def continued(
    prefilled: PrefilledPrompts,
    batch: DraftedBatch,
    generator: Generator,
    options: SamplingOptions | None = None,
) -> Continuations:
    """One continuation by the target of every prefix of every drafted path, for ``sampled_path_scores``.

    The models go on from the texts that they have read.
    """
    import torch

    from spectheory.models import SamplingOptions
    from spectheory.models.sampling import scaled_logits

    pair, texts, options = prefilled.pair, prefilled.texts, options or SamplingOptions()
    size, number, length, vocab = batch.draft_rows.shape

    def rows(logits: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scaled_logits(pair.logits(logits), options, dtype=pair.probs_dtype), dim=-1)

    tokens = batch.paths.new_zeros((size, number, length, length - 1))
    target_rows, draft_rows = batch.draft_rows.new_zeros((2, size, number, length, length - 1, vocab))
    with torch.no_grad():
        for depth in range(length - 1):
            paths, row = batch.paths[:, :, :depth], batch.target_rows[:, :, depth]
            steps = length - 1 - depth
            for step in range(steps):
                paths = torch.cat([paths, sample_rows(row, generator)[..., None]], dim=-1)
                logits = prefilled.target.follow(texts, paths, first=paths.shape[-1] if step else 0)
                row = rows(logits[:, :, -1:])[:, :, 0]
                target_rows[:, :, depth, step] = row
            tokens[:, :, depth, :steps] = paths[:, :, depth:]
            logits = prefilled.draft.follow(texts, paths, first=0)[:, :, depth + 1 :]
            draft_rows[:, :, depth, :steps] = rows(logits)
    return Continuations(tokens, target_rows, draft_rows)

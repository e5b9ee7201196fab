"""Continuations of drafted paths by the target, from which an upper bound on all verifiers is sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectheory.optima.bounds.on_path_scores import Continuations
from spectheory.verification.outcome import sample_rows

if TYPE_CHECKING:
    from torch import Generator

    from spectheory.models import SamplingOptions
    from spectheory.models.drafting import DraftedBatch, PrefilledPrompts


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

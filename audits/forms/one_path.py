"""Samplers that return how many drafted tokens they accept, and the token after them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from audits.forms.answers import counted
from spectheory.auditing.subjects.signatures import Row

Counting = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Any], tuple[Any, Any]]
"""(drafts [B, L], target_probs [B, L+1, V], draft_probs [B, L, V], generator) -> counts and tokens, [B]."""


def batches(call: Counting) -> Callable[..., Any]:
    """A sampler of the signature "batch", of requests with equal lengths."""

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        drafted = torch.stack([row.draft_tokens for row in rows])
        target = torch.stack([row.target_probs for row in rows])
        draft = torch.stack([row.draft_probs for row in rows])
        counts, tokens = call(drafted, target, draft, generator)
        return [
            counted(path, count, token)
            for path, count, token in zip(drafted.tolist(), counts.tolist(), tokens.tolist(), strict=True)
        ]

    return sampler


def one_request(call: Counting) -> Callable[..., Any]:
    """A sampler of the signature "sampler", of one path; the call has a batch of one."""

    def sampler(paths: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, generator: Any) -> list[int]:
        count, token = call(paths[:1], target[:1], draft[:1], generator)
        return counted(paths[0].tolist(), count, int(token))

    return sampler

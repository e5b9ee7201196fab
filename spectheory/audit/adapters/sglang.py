"""SGLang: token and block verification of a chain, one Triton kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from spectheory.audit.fetch import Release
from spectheory.audit.kernels import interpreting
from spectheory.audit.one_module import module_alone
from spectheory.audit.signatures import Row

MODULE = "sglang.kernels.ops.speculative.reject_sampling"
FILES = (f"{MODULE.replace('.', '/')}.py",)


def chain_sampling(release: Release, *, block_verification: bool) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    with interpreting():
        shipped = module_alone(release.folder, [MODULE]).chain_speculative_sampling_triton

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        """Called as the verification step of a chain does, with coins of float32."""
        size, length = len(rows), len(rows[0].draft_tokens)
        slots = torch.arange(size * (length + 1)).reshape(size, length + 1)
        predicts = torch.full((size * (length + 1),), -1, dtype=torch.int32)
        accept_index = torch.full((size, length + 1), -1, dtype=torch.int32)
        accepted = torch.empty((size,), dtype=torch.int32)
        roots = torch.zeros((size, 1), dtype=torch.long)
        none = torch.full_like(slots, -1)
        shipped(
            predicts,
            accept_index,
            accepted,
            torch.cat([roots, torch.stack([row.draft_tokens for row in rows])], dim=1),
            slots,
            none,
            none,
            torch.rand((size, length + 1), dtype=torch.float32),
            torch.rand((size,), dtype=torch.float32),
            torch.stack([row.target_probs for row in rows]),
            torch.stack([row.draft_probs for row in rows]),
            1.0,
            1.0,
            True,
            block_verification=block_verification,
        )
        return [
            predicts[index[: count + 1].long()].tolist()
            for index, count in zip(accept_index, accepted.tolist(), strict=True)
        ]

    return sampler

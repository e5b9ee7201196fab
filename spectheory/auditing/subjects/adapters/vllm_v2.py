"""vLLM's second model runner: token and block verification, and two relaxations, in Triton kernels."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from spectheory.auditing.following.kernel_draws import elementwise, gumbel_noise
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.subjects.adapters.flat_batch import PLACEHOLDER
from spectheory.auditing.subjects.adapters.vllm import FLY
from spectheory.auditing.subjects.one_module import module_alone
from spectheory.auditing.subjects.signatures import Row
from spectheory.foundation.wheels import Release

GUMBEL = "vllm.v1.worker.gpu.sample.gumbel"
MODULE = "vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils"
STAND_INS = (
    "vllm.triton_utils: Triton, with numpy's log1p for the device's",
    "murmur3_uniform32 and _log1p_neg_stable: exponential random numbers, one per seed, position and token",
    "the runner: a seed per request, and positions that advance by the returned tokens",
)
SEEDS = ("requests: 1, 2, .. by their slots; positions start at the seed of the generator",)


def rejection_sample(release: Release, **options: Any) -> Callable[..., Any]:
    """A sampler of the signature "batch"; the options are those of the shipped function.

    Every request has its own seed.  The generator's seed holds the position of its next token, so that a call
    continues where the previous call ended.
    """
    shipped = _loaded(release)

    def sampler(rows: Sequence[Row], generator: torch.Generator) -> list[list[int]]:
        """As the runner calls it; the slots of the requests are in another order."""
        size, vocab = len(rows), rows[0].target_probs.shape[-1]
        lengths = [len(row.draft_tokens) + row.padding for row in rows]
        slots = torch.arange(size, 0, -1, dtype=torch.int32)
        first = generator.initial_seed()
        draft = torch.full((size + 1, max(lengths), vocab), -torch.inf)
        temperature = torch.ones(size + 1)
        for row, slot in zip(rows, slots.tolist(), strict=True):
            draft[slot, : len(row.draft_tokens)] = row.draft_probs.log()
            temperature[slot] = 0.0 if row.is_greedy else 1.0
        counts = torch.tensor([length + 1 for length in lengths], dtype=torch.int32)
        places = torch.cat([torch.arange(count, dtype=torch.int32) for count in counts.tolist()])
        sampled, accepted = shipped(
            torch.cat([_padded(row.target_probs.log(), row.padding) for row in rows]),
            draft,
            torch.cat([_drafted(row) for row in rows]),
            torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0, dtype=torch.int32)]),
            first + places.long(),
            slots,
            slots.repeat_interleave(counts),
            places,
            temperature,
            1 + torch.arange(size + 1),
            max(lengths),
            **options,
        )
        found = [row[:count] for row, count in zip(sampled, accepted.tolist(), strict=True)]
        generator.manual_seed(first + int(accepted.max()))
        return [tokens.tolist() for tokens in found]

    return sampler


def _loaded(release: Release) -> Callable[..., Any]:
    """The shipped function; the hash behind its Gumbel numbers is replaced."""
    with interpreting():
        import triton
        import triton.language as tl

        device = SimpleNamespace(log1p=elementwise(np.log1p))
        given: dict[str, dict[str, Any]] = {
            "vllm.triton_utils": {"tl": tl, "triton": triton, "tldevice": device}
        }
        gumbel: Any = module_alone(release.folder, [GUMBEL], given)
        gumbel.murmur3_uniform32, gumbel._log1p_neg_stable = gumbel_noise(
            gumbel.murmur3_uniform32, gumbel._log1p_neg_stable
        )
        given[GUMBEL] = vars(gumbel)
        shipped: Callable[..., Any] = module_alone(release.folder, [MODULE, FLY], given).rejection_sample
    return shipped


def _padded(rows: torch.Tensor, padding: int) -> torch.Tensor:
    """The rows of placeholders are read and not used; the last row follows all drafts."""
    return torch.cat([rows[:-1], *[rows[-1:]] * padding, rows[-1:]])


def _drafted(row: Row) -> torch.Tensor:
    """The token before the drafts, the drafts, placeholders."""
    tokens = [0, *row.draft_tokens.tolist(), *[PLACEHOLDER] * row.padding]
    return torch.tensor(tokens, dtype=torch.int32)

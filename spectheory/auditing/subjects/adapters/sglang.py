"""SGLang: token and block verification of a chain, one Triton kernel, and DSpark's token verification."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from spectheory.auditing.following.kernel_draws import elementwise, gumbel_noise
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.subjects.one_module import file_of, module_alone
from spectheory.auditing.subjects.signatures import Row
from spectheory.foundation.wheels import Release

MODULE = "sglang.kernels.ops.speculative.reject_sampling"
DSPARK = tuple(
    f"sglang.kernels.ops.speculative.dspark.{name}" for name in ("blockwise_rejection", "dispatch")
)
FILES = tuple(file_of(name) for name in (MODULE, *DSPARK))


def chain_sampling(release: Release, *, block_verification: bool) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    with interpreting():
        shipped = module_alone(release.folder, [MODULE]).chain_speculative_sampling_triton

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        """As the verification step of a chain calls it, with coins of float32."""
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


def blockwise_rejection(release: Release) -> Callable[..., Any]:
    """A sampler of the signature "batch": DSpark's verification of a chain.

    The generator's seed holds the step counter of its random numbers, so that a call continues where the
    previous call ended.
    """
    with interpreting():
        module: Any = module_alone(release.folder, DSPARK, {"msgspec": {"Struct": _Struct}})
    module.libdevice = SimpleNamespace(log1p=elementwise(np.log1p))
    module._murmur3_uniform32, module._log1p_neg_stable = gumbel_noise(
        module._murmur3_uniform32, module._log1p_neg_stable
    )

    def sampler(rows: Sequence[Row], generator: torch.Generator) -> list[list[int]]:
        """As the verification step of a chain calls it, at temperature 1."""
        drafted = torch.stack([row.draft_tokens for row in rows])
        counter = torch.tensor([generator.initial_seed()])
        accepted, bonus, _ = module.blockwise_rejection_triton(
            candidates=torch.cat([torch.zeros_like(drafted[:, :1]), drafted], dim=1),
            target_logits=torch.cat([row.target_probs for row in rows]).log(),
            draft_logits=torch.stack([row.draft_probs for row in rows]).log(),
            target_temperatures=torch.ones(len(rows)),
            draft_temperatures=torch.ones(len(rows)),
            noise=SimpleNamespace(key=KEY, counter=counter),
        )
        generator.manual_seed(int(counter))
        return [
            [*tokens[:count], token]
            for tokens, count, token in zip(drafted.tolist(), accepted.tolist(), bonus.tolist(), strict=True)
        ]

    return sampler


KEY = 7
"""The key of a server's random numbers."""
STAND_INS = ("the coins, which the caller draws: torch.rand of float32",)
DSPARK_STAND_INS = (
    "msgspec.Struct: a class without fields",
    "libdevice: numpy's log1p",
    "_murmur3_uniform32 and _log1p_neg_stable: exponential random numbers, one per seed, position and token",
)
DSPARK_SEEDS = (f"the server's key: {KEY}; its counter starts at the seed of the generator",)


class _Struct:
    """The base class of DSpark's settings."""

    def __init_subclass__(cls, frozen: bool) -> None:
        super().__init_subclass__()

"""LMDeploy: token verification, portable in torch or in Triton kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.subjects.adapters.flat_batch import BONUS, PLACEHOLDER, bonus_tokens
from spectheory.auditing.subjects.one_module import file_of, module_alone
from spectheory.auditing.subjects.signatures import Row
from spectheory.foundation.wheels import Release

BACKENDS = "lmdeploy.pytorch.backends"
DEFAULT = (f"{BACKENDS}.default.rejection_sampling", f"{BACKENDS}.rejection_sampling")
CUDA = (
    f"{BACKENDS}.cuda.rejection_sampling",
    f"{BACKENDS}.rejection_sampling",
    "lmdeploy.pytorch.kernels.cuda.rejection_sampling",
)
STAND_INS = (BONUS,)
FILES = tuple(file_of(name) for name in dict.fromkeys((*DEFAULT, *CUDA)))


def portable(release: Release) -> Callable[..., Any]:
    """The torch implementation as a sampler of the signature "batch"."""
    shipped = module_alone(release.folder, DEFAULT).DefaultRejectionSamplingImpl
    return _batch(shipped())


def in_triton(release: Release) -> Callable[..., Any]:
    """The Triton implementation as a sampler of the signature "batch"."""
    with interpreting():
        shipped = module_alone(release.folder, CUDA).CudaRejectionSamplingImpl
    return _batch(shipped())


def _batch(implementation: Any) -> Callable[..., Any]:
    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        """As its module calls it; all paths have the same length."""
        greedy = torch.tensor([row.is_greedy for row in rows])
        target = torch.stack([row.target_probs for row in rows]).log()
        drafted = torch.stack([row.draft_tokens for row in rows])
        if bool(greedy.all()):
            found, *_ = implementation.forward_greedy(target.argmax(dim=-1), drafted)
        else:
            found, *_ = implementation.forward(
                target[:, :-1].contiguous(),
                drafted,
                bonus_tokens(rows),
                is_greedy=greedy if bool(greedy.any()) else None,
                draft_probs=torch.stack([row.draft_probs for row in rows]),
            )
        return [[token for token in tokens if token != PLACEHOLDER] for tokens in found.tolist()]

    return sampler

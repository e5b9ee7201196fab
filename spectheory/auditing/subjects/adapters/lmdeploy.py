"""LMDeploy: token verification, portable in torch or in Triton kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from spectheory.auditing.subjects.adapters.answers import without_padding
from spectheory.auditing.subjects.adapters.flat_batch import bonus_tokens
from spectheory.auditing.subjects.library_code import Code
from spectheory.auditing.subjects.reached_code import Function
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError

BACKENDS = "lmdeploy.pytorch.backends"
PORTABLE = Function("DefaultRejectionSamplingImpl", (f"{BACKENDS}.default.rejection_sampling",))
IN_TRITON = Function("CudaRejectionSamplingImpl", (f"{BACKENDS}.cuda.rejection_sampling",))


def batch(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    implementation = code.function()

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        greedy = torch.tensor([row.is_greedy for row in rows])
        target = torch.stack([row.target_probs for row in rows]).log()
        drafted = torch.stack([row.draft_tokens for row in rows])
        if bool(greedy.all()):
            found = implementation.forward_greedy(target.argmax(dim=-1), drafted)
        else:
            found = implementation.forward(
                target[:, :-1].contiguous(),
                drafted,
                bonus_tokens(rows),
                is_greedy=greedy if bool(greedy.any()) else None,
                draft_probs=torch.stack([row.draft_probs for row in rows]),
            )
        return [_agreed(*each) for each in zip(*(part.tolist() for part in found), strict=True)]

    return sampler


def _agreed(tokens: list[int], rejected: int, last: int) -> list[int]:
    """The tokens of a request; the engine also reads how many are rejected, and the last token."""
    found = without_padding(tokens)
    if len(found) != len(tokens) - rejected or found[-1:] != [last]:
        raise UndefinedDrawError(
            f"it returns the tokens {found}, and says that {rejected} are rejected and {last} is the last"
        )
    return found

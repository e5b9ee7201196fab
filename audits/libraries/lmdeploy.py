"""LMDeploy: token verification, portable in torch or in Triton kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from audits.forms.flat_batch import BONUS
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.flattened_batch import bonus_tokens, without_padding
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError

LIBRARY = Library("lmdeploy", "lmdeploy", "0.18.0")
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


_PORTABLE = Subject(
    LIBRARY,
    PORTABLE,
    batch,
    {"d50628ae69614373555c90b40cdc88458dce183219eb605ac31f8f6052bc43f5": LIBRARY.tested},
    "batch",
    mistake=(
        "target_draft_probs / draft_token_probs >= uniform_probs",
        "target_draft_probs / draft_token_probs <= uniform_probs",
    ),
    settings={"mixes": ("greedy",), "stand_ins": (BONUS,)},
)
SUBJECTS = {
    "lmdeploy": _PORTABLE,
    # Its file launches the kernels, and is not the file that has them.
    "lmdeploy-triton": _PORTABLE._replace(
        function=IN_TRITON,
        tested={"621c491fe87279db178f12f4f37fece29f59c8f07b1c93381d1770e484acac27": LIBRARY.tested},
        mistake=("target_prob / draft_prob >= uniform_prob", "target_prob / draft_prob <= uniform_prob"),
    ),
}

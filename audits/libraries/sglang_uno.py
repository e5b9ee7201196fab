"""SGLang UNO: sparse rejection of a chain, on all tokens as the support."""

from collections.abc import Callable
from typing import Any

import torch

from audits.forms.one_path import batches
from audits.libraries.sglang import LIBRARY
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Subject

FUNCTION = Function(
    "_sparse_rejection_from_support",
    ("sglang.srt.speculative.uno_utils",),
    frozenset(
        {
            "candidates", "target_ids", "target_probs", "draft_ids", "draft_probs", "accept_uniforms",
            "final_uniforms",
        }
    ),
)  # fmt: skip
STAND_INS = ("torch.compile: not compiled", "the coins, which the caller draws: torch.rand of float32")


def uno(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch": SGLang UNO's verification on all tokens as the support."""

    def call(drafted: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, _: Any) -> tuple[Any, Any]:
        size, length = drafted.shape
        return code.call(
            candidates=torch.cat([torch.zeros((size, 1), dtype=torch.long), drafted], dim=1),
            target_ids=torch.arange(target.shape[-1]).expand(target.shape),
            target_probs=target,
            draft_ids=torch.arange(draft.shape[-1]).expand(draft.shape),
            draft_probs=draft,
            accept_uniforms=torch.rand((size, length + 1), dtype=torch.float32),
            final_uniforms=torch.rand((size,), dtype=torch.float32),
        )

    return batches(call)


SUBJECTS = {
    "sglang-uno": Subject(
        LIBRARY,
        FUNCTION,
        uno,
        {"d0080a5f06e23e0d4af2191d4176221d5cc30ed762183f5047b1333e0847c5e5": LIBRARY.tested},
        "batch",
        mistake=(
            "accept_uniforms[:, :num_proposals] < ratios",
            "accept_uniforms[:, :num_proposals] > ratios",
        ),
        settings={"mixes": (), "stand_ins": STAND_INS},
    )
}

"""DeepSpec: token verification of one path."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from audits.forms.one_path import one_request
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject

LIBRARY = Library(
    "deepspec",
    "deepspec",
    "afdfa7c9382a3341a3e6f17756dd816da79f132c",
    repository="deepseek-ai/DeepSpec",
)
FUNCTION = Function(
    "verify_draft_tokens",
    ("deepspec.eval.base_evaluator",),
    frozenset(
        {
            "target_model", "proposal", "position_ids", "start", "past_key_values_target", "temperature",
            "max_proposal_tokens",
        }
    ),
)  # fmt: skip


def deepspec(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler"."""

    def call(drafted: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, _: Any) -> tuple[Any, Any]:
        length = drafted.shape[1]
        found = code.call(
            target_model=lambda **_: SimpleNamespace(logits=target.log()),
            proposal=SimpleNamespace(
                draft_token_count=length,
                verify_input_ids=torch.cat([torch.zeros_like(drafted[:, :1]), drafted], dim=1),
                draft_probs=draft,
            ),
            position_ids=torch.arange(length + 1)[None],
            start=0,
            past_key_values_target=None,
            temperature=1.0,
            max_proposal_tokens=length,
        )
        return found.accepted_draft_tokens, found.next_token

    return one_request(call)


SUBJECTS = {
    "deepspec": Subject(
        LIBRARY,
        FUNCTION,
        deepspec,
        {"137098951c15816f79c0ba433132709fabbda5ac2bf081e20461fc08ad753977": LIBRARY.tested},
        "sampler",
        mistake=("torch.rand_like(accept_prob) < accept_prob", "torch.rand_like(accept_prob) > accept_prob"),
        settings={"num_drafts": (1,)},
    )
}

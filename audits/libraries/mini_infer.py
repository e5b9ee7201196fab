"""mini-infer: drafting and token verification."""

from collections.abc import Callable
from typing import Any

import torch

from audits.forms.cached_models import STAND_INS, CachedModel, with_models
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import ROUND

LIBRARY = Library("mini-infer", "mini_infer", "0.2.5")
FUNCTION = Function(
    "speculative_step",
    ("mini_infer.speculative.verifier",),
    frozenset({"target_model", "draft_model", "prefix_ids", "k_draft", "temperature"}),
)


def mini_infer(code: Code) -> Callable[..., Any]:
    """A round."""

    def step(target: CachedModel, draft: CachedModel, ids: torch.Tensor, length: int) -> list[int]:
        tokens, _ = code.call(
            target_model=lambda ids: (target(ids), None),
            draft_model=lambda ids: (draft(ids), None),
            prefix_ids=ids,
            k_draft=length,
            temperature=1.0,
        )
        return list(tokens)

    return with_models(step)


SUBJECTS = {
    "mini-infer": Subject(
        LIBRARY,
        FUNCTION,
        mini_infer,
        {"229377245c25f02057fdb19d75999b693d6367c5a4674a037a9cff2fec642dfd": LIBRARY.tested},
        ROUND,
        mistake=("torch.rand(1).item() < accept_prob", "torch.rand(1).item() > accept_prob"),
        settings={"stand_ins": STAND_INS},
    )
}

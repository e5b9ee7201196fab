"""LitGPT: drafting and token verification."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from audits.forms.cached_models import STAND_INS, CachedModel, with_models
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import ROUND
from spectheory.foundation.results import NOT_LOSSLESS

LIBRARY = Library("litgpt", "litgpt", "0.5.13")
FUNCTION = Function(
    "speculative_decoding",
    ("litgpt.generate.speculative_decoding",),
    frozenset({"draft_model", "target_model", "token", "input_pos", "input_pos_maxp1", "speculative_k"}),
)


def litgpt(code: Code) -> Callable[..., Any]:
    """A round."""

    def step(target: CachedModel, draft: CachedModel, ids: torch.Tensor, length: int) -> Sequence[int]:
        last = ids.shape[1] - 1
        return code.call(
            target_model=lambda idx, input_pos, **_: target(idx, input_pos),
            draft_model=lambda idx, input_pos, **_: draft(idx, input_pos),
            token=ids[0, -1:],
            input_pos=torch.tensor([last]),
            input_pos_maxp1=last + 1,
            speculative_k=length,
        )

    return with_models(step)


SUBJECTS = {
    "litgpt": Subject(
        LIBRARY,
        FUNCTION,
        litgpt,
        {"06d52bea1000dd0873ed19494faafb737d80934e2ce6dbb99ebb42724120b044": LIBRARY.tested},
        ROUND,
        mistake=(
            "device=discard_prob.device) <= discard_prob",
            "device=discard_prob.device) >= discard_prob",
        ),
        settings={"stand_ins": STAND_INS},
    )
}
# On pairs whose rows top_p leaves as they are.
SUBJECTS["litgpt-top-p"] = SUBJECTS["litgpt"]._replace(
    verdict=NOT_LOSSLESS, mistake=None, options={"top_p": 0.7}, in_all=False
)

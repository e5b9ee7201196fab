"""gpt-fast: drafting and token verification, at the last commit whose speculative decoding runs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from audits.forms.cached_models import STAND_INS, CachedModel, with_models
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import ROUND

LIBRARY = Library(
    "gpt-fast",
    "generate",
    "bc04265df30c7b927d38f34198e0e33a63cb893e",
    repository="meta-pytorch/gpt-fast",
)
FUNCTION = Function(
    "speculative_decode",
    ("generate",),
    frozenset({"model", "draft_model", "cur_token", "input_pos", "speculate_k"}),
)


def gpt_fast(code: Code) -> Callable[..., Any]:
    """A round."""

    def step(target: CachedModel, draft: CachedModel, ids: torch.Tensor, length: int) -> Sequence[int]:
        return code.call(
            model=target,
            draft_model=draft,
            cur_token=ids[0, -1:].int(),
            input_pos=ids.shape[1] - 1,
            speculate_k=length,
        )

    return with_models(step)


SUBJECTS = {
    "gpt-fast": Subject(
        LIBRARY,
        FUNCTION,
        gpt_fast,
        {"ac3603db88518ff8f987d73922f5410efb14bf7ab3996e28053bdda86e88a924": LIBRARY.tested},
        ROUND,
        mistake=("rand_like(accept_draft_prob) > accept", "rand_like(accept_draft_prob) < accept"),
        settings={"stand_ins": STAND_INS},
    )
}

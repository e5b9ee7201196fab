"""specdec: drafting and token verification of a class that is made without its models."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from audits.forms.cached_models import STAND_INS, CachedModel, with_models
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import ROUND

LIBRARY = Library("specdec", "specdec", "0.2.0")
FUNCTION = Function("SpecDecoder", ("specdec.decoder",))


def specdec(code: Code) -> Callable[..., Any]:
    """A round."""

    def step(target: CachedModel, draft: CachedModel, ids: torch.Tensor, length: int) -> list[int]:
        decoder = object.__new__(code.function)  # without loading models
        decoder.device = "cpu"
        decoder.small_model = lambda ids, **_: SimpleNamespace(logits=draft(ids))
        decoder.big_model = lambda ids: SimpleNamespace(logits=target(ids))
        return list(decoder.verify(ids, *decoder.generate_small(ids, length)))

    return with_models(step)


SUBJECTS = {
    "specdec": Subject(
        LIBRARY,
        FUNCTION,
        specdec,
        {"7d00965d0a5f6f84158eef9f2d891070bc6c82dc736f37433288ca01c47e97b9": LIBRARY.tested},
        ROUND,
        mistake=("accept_mask=rand_vals<ratio", "accept_mask=rand_vals>ratio"),
        settings={"stand_ins": STAND_INS},
    )
}

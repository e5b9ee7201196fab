"""DFlash: token verification of one path."""

from collections.abc import Callable
from typing import Any

from audits.forms.one_path import one_request
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject

LIBRARY = Library("dflash", "dflash", "0.1.0")
FUNCTION = Function(
    "_rejection_sample",
    ("dflash.model",),
    frozenset({"draft_tokens", "target_probs", "draft_probs"}),
)


def dflash(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler"."""
    return one_request(
        lambda drafted, target, draft, _: code.call(
            draft_tokens=drafted, target_probs=target, draft_probs=draft
        )
    )


SUBJECTS = {
    "dflash": Subject(
        LIBRARY,
        FUNCTION,
        dflash,
        {"f55b7fe0a4c0b3073e0f9cdce547cce29f4b8e2168c4d2818760007c43b7651e": LIBRARY.tested},
        "sampler",
        mistake=("torch.rand_like(q) * q < p", "torch.rand_like(q) * q > p"),
        settings={"num_drafts": (1,)},
    )
}

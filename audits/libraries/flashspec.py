"""FlashSpec: one step of token verification of a batch."""

from collections.abc import Callable
from typing import Any

from audits.forms.one_path import batches
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject

LIBRARY = Library("flashspec", "flashspec", "0.3.1")
FUNCTION = Function(
    "rejection_step",
    ("flashspec.sampling.rejection",),
    frozenset({"draft_token_ids", "draft_logprobs", "target_logprobs", "generator"}),
)


def flashspec(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    return batches(
        lambda drafted, target, draft, generator: (
            code.call(
                draft_token_ids=drafted,
                draft_logprobs=draft.log(),
                target_logprobs=target.log(),
                generator=generator,
            ).T
        )
    )


SUBJECTS = {
    "flashspec": Subject(
        LIBRARY,
        FUNCTION,
        flashspec,
        {"dab01aeb469530ffbf76c5bdb557111d55ab3ef39641a07f2e52de4b93eab068": LIBRARY.tested},
        "batch",
        mistake=("rejected = ~(u < accept_prob)", "rejected = u < accept_prob"),
        settings={"mixes": ()},
    )
}

"""EAGLE: deterministic children are tried in turn, and a rejected one leaves the row."""

from collections.abc import Callable
from typing import Any

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject

LIBRARY = Library("eagle", "eagle", "cb7e0841fe0c206c6ed74a197ad5e2a1f13f5a2b", repository="SafeAILab/EAGLE")
FUNCTION = Function(
    "evaluate_posterior",
    ("eagle.model.utils",),
    frozenset({"logits", "candidates", "logits_processor"}),
)


def evaluate_posterior(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "evaluate_posterior"."""

    def sampler(logits: Any, candidates: Any, logits_processor: Any) -> Any:
        return code.call(logits=logits, candidates=candidates, logits_processor=logits_processor)

    return sampler


SUBJECTS = {
    "eagle": Subject(
        LIBRARY,
        FUNCTION,
        evaluate_posterior,
        {"68dadf1977dd76624f87d0dc5ce9f840783ccaeb7554861f1206daa664367fe9": LIBRARY.tested},
        "evaluate_posterior",
        mistake=("if r <= acp:", "if r >= acp:"),
    )
}

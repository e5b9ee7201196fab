"""Medusa and REST: drafted trees against tokens that are drawn for every node of every path."""

from collections.abc import Callable
from typing import Any

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.relaxations import typical_acceptance
from spectheory.auditing.subjects.signatures import TEMPERATURE
from spectheory.auditing.verdicts.audit_certificate import RELAXATION
from spectheory.foundation.results import NOT_LOSSLESS

MEDUSA = Library(
    "medusa", "medusa", "e2a5d20c048a9b0a4092e6933c34313687422518", repository="FasterDecoding/Medusa"
)
REST = Library("rest", "rest", "50a5fc197382ed8df5b3e946dad2f8337511b541", repository="FasterDecoding/REST")
PARAMETERS = frozenset({"logits", "candidates", "temperature"})
NEXT = "the draw of the token after the accepted ones: from the softmax of the row that is kept"
_MASK = "posterior_mask = get_nucleus_posterior_mask(logits, candidates, temperature, top_p)"
MEND = (
    _MASK,
    """probs = F.softmax(logits[:, :-1] / temperature, dim=-1)
        sampled = torch.multinomial(probs.flatten(0, 1), 1).view(len(probs), -1)
        alike = (candidates[:, None, :-1] == candidates[None, :, :-1]).int().cumprod(-1)
        sampled = sampled.gather(0, alike.argmax(1))  # of the first path with this prefix
        posterior_mask = (candidates[:, 1:] == sampled).int()
        logits[:, :-1] = F.one_hot(sampled, logits.shape[-1]).log()""",
)
"""One token per node; where no child has it, it is the next token.  Without a cut."""


def evaluate_posterior(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "evaluate_posterior"."""

    def sampler(logits: Any, candidates: Any, _: Any) -> Any:
        logits = logits.clone()  # the engine's own
        best, accepted = code.call(logits=logits, candidates=candidates, temperature=TEMPERATURE)
        return best, accepted, (logits[best, accepted] / TEMPERATURE).softmax(-1)

    return sampler


_MEDUSA = Subject(
    MEDUSA,
    Function("evaluate_posterior", ("medusa.model.utils",), PARAMETERS),
    evaluate_posterior,
    {"f62632ce0892cec19f3280ce02695c08e0ef84f2a2a8342040e7c75d22bfe4b7": MEDUSA.tested},
    "evaluate_posterior",
    settings={"stand_ins": (NEXT,)},
)
SUBJECTS = {
    "medusa-typical": _MEDUSA._replace(
        verdict=RELAXATION,
        mistake=(
            "posterior_mask = candidates_prob > threshold",
            "posterior_mask = candidates_prob < threshold",
        ),
        settings={"stand_ins": (NEXT,), "relaxation": typical_acceptance(0.3, 0.09)},
    ),
    "medusa-nucleus": _MEDUSA._replace(
        verdict=NOT_LOSSLESS, mend=(MEND,), options={"sampling": "nucleus", "top_p": 1.0}
    ),
    # REST refuses to keep all tokens; so it cuts only a tail of less than 10^-7.
    "rest": _MEDUSA._replace(
        library=REST,
        function=Function("evaluate_posterior", ("rest.model.utils",), PARAMETERS),
        tested={"4b149fe61f9b729d304b381c954bb645544c51acc864a6e96d85b2d1b2170af1": REST.tested},
        verdict=NOT_LOSSLESS,
        mend=(MEND,),
        options={"top_p": 0.9999999},
    ),
}

"""transformers: token verification in assisted generation."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.relaxations import mixture
from spectheory.auditing.verdicts.audit_certificate import RELAXATION

LIBRARY = Library("transformers", "transformers", "5.24.0")
ENSEMBLE_WEIGHT = Fraction(1, 2)
FUNCTION = Function(
    "_speculative_sampling",
    ("transformers.generation.utils",),
    frozenset(
        {"candidate_input_ids", "candidate_logits", "candidate_length", "new_logits", "is_done_candidate"}
    ),
)


def assisted(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "speculative_sampling"."""

    def sampler(candidate_input_ids: Any, candidate_logits: Any, length: int, new_logits: Any) -> Any:
        """As assisted generation calls it, before a stopping criterion holds."""
        tokens, accepted, *_ = code.call(
            candidate_input_ids=candidate_input_ids,
            candidate_logits=candidate_logits,
            candidate_length=length,
            new_logits=new_logits,
            is_done_candidate=torch.zeros(1, dtype=torch.bool),
            stop=lambda *_, **__: False,
        )
        return tokens, accepted

    return sampler


_TOKEN = Subject(
    LIBRARY,
    FUNCTION,
    assisted,
    {
        "d8f22301fc9ba6ff469ba9d56fa908dc48eed557fa60358e382e4beedd3ff3bd": "5.24.0",
        "01f7d1d68c9fd501ae12d516df408f3c098215ef53d8d8cbbe8104cab79e94b7": "5.23.0",
    },
    "speculative_sampling",
    mistake=("is_accepted = r_i <= probability_ratio", "is_accepted = r_i >= probability_ratio"),
)
SUBJECTS = {
    "transformers": _TOKEN,
    "transformers-ensemble": _TOKEN._replace(
        verdict=RELAXATION,
        options={"assistant_ensemble_weight": float(ENSEMBLE_WEIGHT)},
        settings={"relaxation": mixture(ENSEMBLE_WEIGHT)},
    ),
}

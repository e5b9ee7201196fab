"""transformers and its relatives: verification in assisted generation, and draft generators."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch

from spectheory.auditing.subjects.library_code import Code
from spectheory.auditing.subjects.reached_code import Function

ENSEMBLE_WEIGHT = Fraction(1, 2)
FUNCTION = Function(
    "_speculative_sampling",
    ("transformers.generation.utils",),
    frozenset(
        {"candidate_input_ids", "candidate_logits", "candidate_length", "new_logits", "is_done_candidate"}
    ),
)
POSTERIOR = Function(
    "evaluate_posterior",
    ("eagle.model.utils",),
    frozenset({"logits", "candidates", "logits_processor"}),
)
GENERATOR = Function(
    "SinglePositionMultiTokenCandidateGenerator",
    ("transformers.generation.candidate_generator",),
    frozenset(
        {
            "input_ids", "assistant_model", "target_model_input_embeddings", "generation_config",
            "model_kwargs",
        }
    ),
)  # fmt: skip


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


def evaluate_posterior(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "evaluate_posterior"."""

    def sampler(logits: Any, candidates: Any, logits_processor: Any) -> Any:
        """As EAGLE calls it."""
        return code.call(logits=logits, candidates=candidates, logits_processor=logits_processor)

    return sampler

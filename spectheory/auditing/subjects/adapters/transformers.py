"""transformers: token verification of assisted generation, and its draft generators."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial, update_wrapper
from typing import Any

from spectheory.auditing.subjects.draft_generators import Drafted, gemma4_assistant
from spectheory.auditing.subjects.relaxations import mixture
from spectheory.auditing.subjects.shipped import Provenance, Shipped
from spectheory.foundation.extras import installed

ENSEMBLE_WEIGHT = Fraction(1, 2)


def _shipped() -> Callable[..., Any]:
    with installed():
        from transformers.generation.utils import _speculative_sampling

    return _speculative_sampling


def assisted(name: str) -> Shipped:
    """Token verification."""
    return Shipped(_shipped(), "speculative_sampling", name)


def ensemble(name: str) -> Shipped:
    """Token verification with a weight of the assistant."""
    weighted = partial(_shipped(), assistant_ensemble_weight=float(ENSEMBLE_WEIGHT))
    function = update_wrapper(weighted, _shipped())
    return Shipped(function, "speculative_sampling", name, relaxation=mixture(ENSEMBLE_WEIGHT))


def gemma4(name: str) -> Shipped:
    """Token verification with drafts of the candidate generator for assistants at one position."""
    sampler = Drafted(assisted(name), gemma4_assistant)
    from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator

    generator = Provenance.of(SinglePositionMultiTokenCandidateGenerator)
    sampler.stand_ins = ("the assistant and its embeddings: the draft rows of the pair",)
    sampler.note = f"drafted by {generator.file}, sha256 {generator.sha256}"
    return sampler

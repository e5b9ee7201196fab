"""Language models as target and draft: load a pair, draft and score paths, enumerate a restriction.

This is the only part of the package that uses transformers (``pip install "spectheory[models]"``);
importing ``spectheory`` alone imports neither torch nor transformers.
"""

from spectheory.models.drafting import (
    DraftedBatch,
    PrefilledPrompts,
    draft_and_score,
    most_likely_at_prompts,
    prefill,
)
from spectheory.models.language_model import LanguageModelPair
from spectheory.models.prompts import bundled_prompts, read_prompts
from spectheory.models.restrict import Restriction, restrict, restricted_pair
from spectheory.models.sampling import SamplingOptions, logits_to_probs

__all__ = [
    "DraftedBatch",
    "LanguageModelPair",
    "PrefilledPrompts",
    "Restriction",
    "SamplingOptions",
    "bundled_prompts",
    "draft_and_score",
    "logits_to_probs",
    "most_likely_at_prompts",
    "prefill",
    "read_prompts",
    "restrict",
    "restricted_pair",
]

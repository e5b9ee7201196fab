"""Both models restricted to m tokens and enumerated: a small pair made of real conditionals.

Conditioned on the next token being one of m, a pair of language models becomes a pair that can
be enumerated: its exact law, its optimum and a Monte Carlo estimate must then agree (theory.md
§7).
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.foundation.validation import check_count, check_draft_length
from spectheory.models.language_model import LanguageModelPair, UnloadedPair
from spectheory.models.prompts import Prompt
from spectheory.models.reading import run_model
from spectheory.models.restriction import Restriction, restrict_rows
from spectheory.models.sampling import PLAIN_SAMPLING, SamplingOptions, scaled_logits
from spectheory.pairs.pair import ModelPair

MAX_CONTEXTS = 20_000


def restrict(
    pair: LanguageModelPair,
    prompt: Prompt,
    tokens: int | Restriction,
    draft_length: int,
    options: SamplingOptions = PLAIN_SAMPLING,
    *,
    max_contexts: int = MAX_CONTEXTS,
    batch_size: int = 64,
) -> ModelPair:
    """The enumerated pair of the models' real conditionals on m tokens after a prompt.

    All contexts are scored from their full text, without a cache: a route independent of drafting.

    Args:
        prompt: a text or its token ids; the root context of the result.
        tokens: m, to keep the m most likely tokens of the *target* at the prompt, everywhere; or the
            restriction that paths were drafted with.
        options: temperature, top-k and top-p, applied before the restriction to both models.
        max_contexts: the largest m^L that is enumerated.
        batch_size: contexts per forward call.

    Returns:
        A float64 ``ModelPair`` with V = m.  Its vocabulary is the texts of the tokens, or
        "rank 1" .. "rank m" per context.

    Raises:
        EnumerationTooLargeError: m^L is above ``max_contexts``.
        InvalidInputError: an argument is out of range, or top-k/top-p leaves a set without mass.
    """
    batch_size = check_count("batch_size", batch_size)
    restriction, draft_length = check_sizes(pair, tokens, draft_length, max_contexts)
    root = pair.encode(prompt)
    pair.check_length(len(root), draft_length)
    texts = torch.tensor([root], device=pair.device)
    if not isinstance(tokens, Restriction):
        restriction = Restriction.at_prompts(pair, [root], restriction.num_tokens)
    target_levels, draft_levels = [], []
    for depth in range(draft_length + 1):
        # Per context the set at depth L too is the draft's choice, though nothing is drafted there.
        draft_logits = _last_logits(pair, pair.draft_model, texts, batch_size)
        target_logits = _last_logits(pair, pair.target_model, texts, batch_size)
        candidates = restriction.candidates(draft_logits)
        target_levels.append(_level(target_logits, candidates, options, "target"))
        if depth < draft_length:
            draft_levels.append(_level(draft_logits, candidates, options, "draft"))
            parents = texts.repeat_interleave(restriction.num_tokens, dim=0)
            texts = torch.cat([parents, candidates.reshape(-1, 1)], dim=1)
    return ModelPair(tuple(target_levels), tuple(draft_levels), _names(pair, restriction))


def check_sizes(
    pair: LanguageModelPair | UnloadedPair,
    tokens: int | Restriction,
    draft_length: int,
    max_contexts: int = MAX_CONTEXTS,
) -> tuple[Restriction, int]:
    """A restriction of that size and the draft length, if the tree is small enough; needs no weights.

    Raises:
        EnumerationTooLargeError, InvalidInputError: as ``restrict``.
    """
    draft_length = check_draft_length("draft_length", draft_length)
    restriction = tokens if isinstance(tokens, Restriction) else Restriction.per_context(tokens)
    restriction.check(pair.vocab_size, num_prompts=1)
    if restriction.num_tokens**draft_length > check_count("max_contexts", max_contexts):
        raise EnumerationTooLargeError(
            f"{restriction.num_tokens} tokens and draft_length {draft_length} have "
            f"{restriction.num_tokens}^{draft_length} contexts, more than max_contexts={max_contexts}; use "
            "fewer tokens, a shorter draft, or raise max_contexts"
        )
    return restriction, draft_length


def _last_logits(pair: LanguageModelPair, model: Any, texts: Tensor, batch_size: int) -> Tensor:
    """Logits after each text, from a full forward pass.  [N, n] -> [N, V]"""
    parts = [run_model(model, part, keep=1)[:, 0, : pair.vocab_size] for part in texts.split(batch_size)]
    return pair.logits(torch.cat(parts))


def _level(logits: Tensor, candidates: Tensor, options: SamplingOptions, side: str) -> np.ndarray:
    """All rows of one depth in float64, whatever the pair computes in.  [N, V], [N, m] -> [N, m]"""
    return restrict_rows(scaled_logits(logits, options), candidates, side).cpu().numpy()


def _names(pair: LanguageModelPair, restriction: Restriction) -> tuple[str, ...]:
    """Texts of the tokens; the id is added where texts repeat (pieces of one character often do)."""
    if restriction.token_sets is None:
        return tuple(f"rank {rank}" for rank in range(1, restriction.num_tokens + 1))
    ids = restriction.token_sets[0]
    texts = [pair.decode([token]) for token in ids]
    names = [f"{t}#{token}" if texts.count(t) > 1 else t for token, t in zip(ids, texts, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{text}#{token}" for token, text in zip(ids, texts, strict=True)]
    return tuple(names)

"""Restrict language models to m tokens and enumerate them: a small pair with real conditionals.

If every row is conditioned on the next token being one of m, a pair of language models can be enumerated.
Its exact law, its optimum and a Monte Carlo estimate must then agree (theory.md §7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.validation import check_count, check_draft_length
from spectheory.models.language_model import LanguageModelPair
from spectheory.models.prompts import Prompt
from spectheory.models.reading import run_model
from spectheory.models.sampling import PLAIN_SAMPLING, SamplingOptions, most_likely, scaled_logits
from spectheory.pairs.pair import ModelPair

MAX_CONTEXTS = 20_000
"""The largest number of contexts, m^L.  Each needs a forward pass of both models over its whole text."""
BATCH_SIZE = 64
"""Number of contexts per forward call."""


@dataclass(frozen=True)
class Restriction:
    """The tokens that are kept at every context, numbered 0..m-1 in this order.

    Attributes:
        token_ids: m different ids.

    Raises:
        InvalidInputError: there is no token, or an id is repeated.

    Example:
        >>> Restriction([7, 3, 5])
        Restriction(token_ids=(7, 3, 5))
    """

    token_ids: Sequence[int]

    def __post_init__(self) -> None:
        ids = tuple(int(token) for token in self.token_ids)
        object.__setattr__(self, "token_ids", ids)
        if not ids or len(set(ids)) < len(ids):
            raise InvalidInputError(f"a restriction got the tokens {list(ids)}; expected distinct ids")

    @staticmethod
    def at_prompt(pair: LanguageModelPair, prompt: Prompt, num_tokens: int) -> Restriction:
        """Keep the ``num_tokens`` most likely tokens of the target after a prompt.

        Raises:
            InvalidInputError: the prompt is invalid, or the vocabulary is smaller than ``num_tokens``.
        """
        num_tokens = _check_size(check_count("num_tokens", num_tokens), pair.vocab_size)
        text = torch.tensor([pair.encode(prompt)], device=pair.device)
        logits = pair.logits(run_model(pair.readers[0], text, keep=1)[0, 0])
        return Restriction(most_likely(logits, num_tokens).tolist())

    def check(self, vocab_size: int) -> None:
        """Refuse a restriction that does not fit the models.

        Raises:
            InvalidInputError: an id is not below ``vocab_size``.
        """
        unknown = [token for token in self.token_ids if not 0 <= token < vocab_size]
        if unknown:
            raise InvalidInputError(
                f"cannot restrict to token id {unknown[0]}; expected ids in 0..{vocab_size - 1}"
            )


def _check_size(num_tokens: int, vocab_size: int) -> int:
    if num_tokens > vocab_size:
        raise InvalidInputError(
            f"cannot keep {num_tokens} tokens of a vocabulary of {vocab_size}; keep fewer"
        )
    return num_tokens


def restrict(
    pair: LanguageModelPair,
    prompt: Prompt,
    tokens: int | Restriction,
    draft_length: int,
    options: SamplingOptions = PLAIN_SAMPLING,
) -> ModelPair:
    """Enumerate both models on m tokens after a prompt, with their real conditionals.

    All contexts are scored from their full text, without a cache, so that the result does not depend on the
    code that drafts.

    Args:
        prompt: a text or its token ids; the root context of the result.
        tokens: m or a Restriction.  m keeps, at every context, the m most likely tokens of the *target* after
            the prompt.
        options: temperature, top-k and top-p, applied before the restriction to both models.

    Returns:
        A float64 ``ModelPair`` with V = m, whose vocabulary holds the texts of the tokens.

    Raises:
        EnumerationTooLargeError: m^L is above ``MAX_CONTEXTS``.
        InvalidInputError: an argument is out of range, or top-k/top-p leaves no mass on the kept tokens.
    """
    draft_length = check_sizes(pair, tokens, draft_length)
    root = pair.encode(prompt)
    pair.check_length(len(root), draft_length)
    texts = torch.tensor([root], device=pair.device)
    restriction = tokens if isinstance(tokens, Restriction) else Restriction.at_prompt(pair, root, tokens)
    kept = torch.tensor(restriction.token_ids, device=pair.device)
    target_levels, draft_levels = [], []
    for depth in range(draft_length + 1):
        target_levels.append(_level(pair, pair.readers[0], texts, kept, options, "target"))
        if depth < draft_length:
            draft_levels.append(_level(pair, pair.readers[1], texts, kept, options, "draft"))
            parents = texts.repeat_interleave(len(kept), dim=0)
            texts = torch.cat([parents, kept.repeat(len(texts))[:, None]], dim=1)
    return ModelPair(tuple(target_levels), tuple(draft_levels), _names(pair, restriction))


def restrict_rows(logits: Tensor, token_ids: Tensor, side: str) -> Tensor:
    """Compute rows conditioned on the next token being one of ``token_ids``.  [..., V], [m] -> [..., m]

    Raises:
        InvalidInputError: in some row top-k, top-p or a tiny temperature removes all of these tokens.
    """
    kept = logits[..., token_ids]
    if (kept.amax(dim=-1) == -math.inf).any():
        raise InvalidInputError(
            f"at some context the {side} gives tokens {token_ids.tolist()} no mass; "
            "keep more tokens, or use no top_k and top_p with a restriction"
        )
    return torch.softmax(kept, dim=-1)


def check_sizes(
    pair: LanguageModelPair,
    tokens: int | Restriction,
    draft_length: int,
) -> int:
    """Check that m^L contexts are few enough, and return the draft length.  This needs no weights.

    Raises:
        EnumerationTooLargeError, InvalidInputError: as in ``restrict``.
    """
    draft_length = check_draft_length("draft_length", draft_length)
    if isinstance(tokens, Restriction):
        tokens.check(pair.vocab_size)
        tokens = len(tokens.token_ids)
    tokens = _check_size(check_count("num_tokens", tokens), pair.vocab_size)
    if tokens**draft_length > MAX_CONTEXTS:
        raise EnumerationTooLargeError(
            f"{tokens} tokens and draft_length {draft_length} have {tokens}^{draft_length} contexts, more "
            f"than {MAX_CONTEXTS}; use fewer tokens or a shorter draft"
        )
    return draft_length


def _level(
    pair: LanguageModelPair,
    model: Any,
    texts: Tensor,
    token_ids: Tensor,
    options: SamplingOptions,
    side: str,
) -> np.ndarray:
    """Compute all rows of one depth, in float64 for any ``probs_dtype``.  [N, n], [m] -> [N, m]"""
    parts = [run_model(model, part, keep=1)[:, 0, : pair.vocab_size] for part in texts.split(BATCH_SIZE)]
    logits = scaled_logits(pair.logits(torch.cat(parts)), options)
    return restrict_rows(logits, token_ids, side).cpu().numpy()


def _names(pair: LanguageModelPair, restriction: Restriction) -> tuple[str, ...]:
    """Return the texts of the tokens.

    If two texts are equal, as for pieces of one character, we add the id.
    """
    ids = restriction.token_ids
    texts = [pair.decode([token]) for token in ids]
    names = [f"{t}#{token}" if texts.count(t) > 1 else t for token, t in zip(ids, texts, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{text}#{token}" for token, text in zip(ids, texts, strict=True)]
    return tuple(names)

"""Restriction to m tokens, and both models enumerated on them: a small pair made of real conditionals.

Conditioned on the next token being one of m, a pair of language models becomes a pair that can
be enumerated: its exact law, its optimum and a Monte Carlo estimate must then agree (theory.md
§7).
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
from spectheory.models.language_model import LanguageModelPair, UnloadedPair
from spectheory.models.prompts import Prompt
from spectheory.models.reading import run_model
from spectheory.models.sampling import PLAIN_SAMPLING, SamplingOptions, most_likely, scaled_logits
from spectheory.pairs.pair import ModelPair

MAX_CONTEXTS = 20_000


@dataclass(frozen=True)
class Restriction:
    """The tokens that are left: fixed sets, or the m most likely at every context.

    "Per context" means most likely under the *draft* model, because the set must be known
    before the target is called.  Tokens are numbered 0..m-1 in the order of their set; per context
    that is the order of draft probability, equals by lower id.

    Attributes:
        num_tokens: m.
        token_sets: one tuple of m ids for all prompts, or one for each; None: per context.

    Raises:
        InvalidInputError: m is below 1, or a set is empty, repeats an id or has another size.

    Example:
        >>> Restriction.fixed([7, 3, 5])
        Restriction(num_tokens=3, token_sets=((7, 3, 5),))
        >>> Restriction.per_context(4).is_per_context
        True
    """

    num_tokens: int
    token_sets: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_tokens", check_count("num_tokens", self.num_tokens))
        if self.token_sets is not None and not self.token_sets:
            raise InvalidInputError("a restriction got no set of tokens; give one, or one per prompt")
        for ids in self.token_sets or ():
            if len(ids) != self.num_tokens or len(set(ids)) != len(ids):
                raise InvalidInputError(
                    f"a restriction to {self.num_tokens} tokens got the set {list(ids)}; "
                    f"expected {self.num_tokens} distinct ids"
                )

    @staticmethod
    def fixed(*token_sets: Sequence[int]) -> Restriction:
        """To one set of token ids for all prompts, or to one set for each prompt of a batch."""
        sets = tuple(tuple(int(token) for token in ids) for ids in token_sets)
        return Restriction(len(sets[0]) if sets else 1, sets)

    @staticmethod
    def per_context(num_tokens: int) -> Restriction:
        """To the ``num_tokens`` most likely tokens of the draft model at every context."""
        return Restriction(num_tokens)

    @staticmethod
    def at_prompts(pair: LanguageModelPair, prompts: Sequence[Prompt], num_tokens: int) -> Restriction:
        """To the ``num_tokens`` most likely tokens of the target after each prompt, one set per prompt.

        Raises:
            InvalidInputError: a prompt cannot be read on from, or there are fewer tokens.
        """
        Restriction.per_context(num_tokens).check(pair.vocab_size, len(prompts))
        sets = []
        for prompt in prompts:
            text = torch.tensor([pair.encode(prompt)], device=pair.device)
            logits = pair.logits(run_model(pair.target_model, text, keep=1)[0, 0])
            sets.append(most_likely(logits, num_tokens).tolist())
        return Restriction.fixed(*sets)

    @property
    def is_per_context(self) -> bool:
        """Whether the set depends on the context."""
        return self.token_sets is None

    def check(self, vocab_size: int, num_prompts: int) -> None:
        """Refuse a restriction that does not fit the models or the batch.

        Raises:
            InvalidInputError: too many tokens, unknown ids, or another number of sets than prompts.
        """
        if self.num_tokens > vocab_size:
            raise InvalidInputError(
                f"cannot keep {self.num_tokens} tokens of a vocabulary of {vocab_size}; keep fewer"
            )
        unknown = [t for ids in self.token_sets or () for t in ids if not 0 <= t < vocab_size]
        if unknown:
            raise InvalidInputError(
                f"cannot restrict to token id {unknown[0]}; expected ids in 0..{vocab_size - 1}"
            )
        if self.token_sets is not None and len(self.token_sets) not in (1, num_prompts):
            raise InvalidInputError(
                f"the restriction has {len(self.token_sets)} sets of tokens for {num_prompts} prompts; "
                "give one set for all, or one per prompt"
            )

    def candidates(self, draft_logits: Tensor) -> Tensor:
        """Token ids that numbers 0..m-1 stand for.  [B, ..., V] -> [B, ..., m]

        Logits, not probabilities, decide per context: below top-k all probabilities are equal (0).
        """
        if self.token_sets is None:
            return most_likely(draft_logits, self.num_tokens)
        sets = torch.tensor(self.token_sets, device=draft_logits.device)
        middle = [1] * (draft_logits.ndim - 2)
        shape = (*draft_logits.shape[:-1], self.num_tokens)
        return sets.reshape(len(sets), *middle, self.num_tokens).expand(shape)


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


def restrict_rows(logits: Tensor, candidates: Tensor, side: str) -> Tensor:
    """Rows conditioned on the next token being a candidate.  [..., V], [..., m] -> [..., m]

    Raises:
        InvalidInputError: top-k, top-p or a tiny temperature leaves all candidates of a row out.
    """
    kept = logits.gather(-1, candidates)
    empty = kept.amax(dim=-1) == -math.inf
    if empty.any():
        ids = candidates[empty][0].tolist()
        raise InvalidInputError(
            f"at some context the {side} gives tokens {ids} no mass; "
            "keep more tokens, or use no top_k and top_p with a restriction"
        )
    return torch.softmax(kept, dim=-1)


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

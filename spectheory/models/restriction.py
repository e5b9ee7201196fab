"""Restriction: which m tokens are left of the vocabulary, at every context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.models.language_model import LanguageModelPair
from spectheory.models.prompts import Prompt
from spectheory.models.reading import run_model
from spectheory.models.sampling import most_likely


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

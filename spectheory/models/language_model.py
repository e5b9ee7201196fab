"""LanguageModelPair: a target and a draft language model with their one tokenizer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spectheory.errors import InvalidInputError
from spectheory.models.device import random_generator, resolve_device, resolve_dtype
from spectheory.models.loading import check_same_tokenizer, load_model, load_tokenizer, shared_vocab_size

Prompt = str | Sequence[int]
"""A text, or the token ids of one."""


@dataclass(frozen=True, eq=False)
class LanguageModelPair:
    """Two causal language models over one vocabulary.

    Attributes:
        target_model: the model to be reproduced (the paper's p), in evaluation mode.
        draft_model: the model that drafts (the paper's q), in evaluation mode.
        tokenizer: the one tokenizer of both.
        device: where both models are.
        vocab_size: V, the number of token ids both models score.
        probs_dtype: the number type of all probabilities, float64 or float32.
    """

    target_model: Any
    draft_model: Any
    tokenizer: Any
    device: torch.device
    vocab_size: int
    probs_dtype: torch.dtype = torch.float64

    def __post_init__(self) -> None:
        if self.probs_dtype not in (torch.float64, torch.float32):
            raise InvalidInputError(
                f"probs_dtype must be torch.float64 or torch.float32, got {self.probs_dtype!r}"
            )

    @staticmethod
    def load(
        target: str | Path,
        draft: str | Path,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype | None = None,
        probs_dtype: torch.dtype = torch.float64,
    ) -> LanguageModelPair:
        """Load a pair in Hugging Face format.

        Args:
            target: a local folder, a hub name, or ``"bundled"`` for the model shipped here.
            draft: likewise; it must have the target's tokenizer.
            device: ``auto`` (CUDA when there is one), ``cpu``, ``cuda`` or ``cuda:N``.
            dtype: number type of the weights; by default float32 on a CPU, as stored on CUDA.
            probs_dtype: number type of the probabilities; float32 saves memory on a GPU.

        Raises:
            InvalidInputError: a model is not there or cannot be loaded, or there is no such device.
            TokenizerMismatchError: the two do not share one tokenizer.

        Example:
            ``pair = LanguageModelPair.load("bundled", "bundled", device="cpu")``
        """
        where = resolve_device(device)
        weights = resolve_dtype(dtype, where)
        # Tokenizers first: a mismatch is found before gigabytes of weights are read.
        tokenizer = load_tokenizer("target", target)
        check_same_tokenizer(tokenizer, load_tokenizer("draft", draft))
        target_model = load_model("target", target, where, weights)
        draft_model = load_model("draft", draft, where, weights)
        size = shared_vocab_size(tokenizer, target_model, draft_model)
        return LanguageModelPair(target_model, draft_model, tokenizer, where, size, probs_dtype)

    @property
    def max_positions(self) -> int | None:
        """The longest text both models take, in tokens; None when neither states a limit."""
        limits = (
            getattr(model.config, "max_position_embeddings", None)
            for model in (self.target_model, self.draft_model)
        )
        return min((limit for limit in limits if limit is not None), default=None)

    def generator(self, seed: int) -> torch.Generator:
        """A random generator on the models' device; the same seed gives the same drafts there."""
        return random_generator(seed, self.device)

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; an empty text becomes the beginning-of-text token.

        Raises:
            InvalidInputError: the prompt is empty, or an id is no token of both models.
        """
        ids = self.tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else [int(t) for t in prompt]
        if not ids and isinstance(prompt, str) and self.tokenizer.bos_token_id is not None:
            ids = [self.tokenizer.bos_token_id]
        if not ids:
            raise InvalidInputError("a prompt is empty; give at least one token to continue from")
        wrong = [token for token in ids if not 0 <= token < self.vocab_size]
        if wrong:
            raise InvalidInputError(
                f"a prompt has token id {wrong[0]}; expected ids in 0..{self.vocab_size - 1}"
            )
        return list(ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of these token ids."""
        return self.tokenizer.decode(list(token_ids))

    def check_length(self, prompt_length: int, draft_length: int) -> None:
        """Refuse texts beyond what the models were built for, where they would score garbage.

        Raises:
            InvalidInputError: prompt and draft together are longer than ``max_positions``.
        """
        limit = self.max_positions
        if limit is not None and prompt_length + draft_length > limit:
            raise InvalidInputError(
                f"a prompt of {prompt_length} tokens and a draft of {draft_length} exceed the models' "
                f"{limit} positions; use a shorter prompt or draft"
            )


@torch.no_grad()
def run_model(
    model: Any,
    input_ids: Tensor,
    *,
    keep: int,
    attention_mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    cache: Any = None,
    use_cache: bool = False,
) -> tuple[Tensor, Any]:
    """One forward call; the logits of the last ``keep`` positions, and the cache if asked for.

    Args:
        model: a causal language model in Hugging Face format.
        input_ids: [N, n] new tokens.
        keep: how many of the n positions are wanted; others need not be computed.
        attention_mask: [N, past + n], 0 where a position is padding.
        position_ids: [N, n].
        cache: keys and values of the past, extended in place.

    Returns:
        Logits [N, keep, model vocabulary] in the model's own number type, and the cache or None.
    """
    optional = {
        "attention_mask": attention_mask,
        "position_ids": position_ids,
        "past_key_values": cache,
        "logits_to_keep": keep,
    }
    # Families differ: models without absolute positions, for one, take no position_ids.
    known = inspect.signature(model.forward).parameters
    given = {name: value for name, value in optional.items() if value is not None and name in known}
    output = model(input_ids=input_ids, use_cache=use_cache, **given)
    return output.logits[:, -keep:], output.past_key_values if use_cache else None

"""A model that reads on from prompts: with a cache of keys and values, or everything anew at each call."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Protocol

import torch
from torch import Tensor


class Reading(Protocol):
    """One model that has read some texts, one per row; reading on never changes what it was copied from."""

    def copies(self, count: int) -> Reading:
        """Every row ``count`` times in a row, to be read on from independently."""

    def feed(self, token_ids: Tensor) -> Tensor:
        """Read n more tokens per row; the logits after each of them.  [N, n] -> [N, n, vocabulary]"""


class CachedReading:
    """Reading with a cache that is extended in place.

    Args:
        model: a causal language model in Hugging Face format.
        cache: of what was read.
        attention_mask: [N, W], 0 on the padding at the left, 1 on tokens that were read.
    """

    def __init__(self, model: Any, cache: Any, attention_mask: Tensor) -> None:
        self._model, self._cache, self._mask = model, cache, attention_mask

    @staticmethod
    def of(model: Any, token_ids: Tensor, attention_mask: Tensor) -> CachedReading:
        """Read texts that are padded at the left, both [N, W]."""
        positions = (attention_mask.cumsum(dim=1) - 1).clamp(min=0)
        _, cache = run_model(
            model, token_ids, keep=1, attention_mask=attention_mask, position_ids=positions, use_cache=True
        )
        return CachedReading(model, cache, attention_mask)

    def copies(self, count: int) -> CachedReading:
        cache = copy.deepcopy(self._cache)
        cache.batch_repeat_interleave(count)
        return CachedReading(self._model, cache, self._mask.repeat_interleave(count, dim=0))

    def feed(self, token_ids: Tensor) -> Tensor:
        count = token_ids.shape[1]
        lengths = self._mask.sum(dim=1)
        self._mask = torch.cat([self._mask, torch.ones_like(token_ids)], dim=1)
        logits, self._cache = run_model(
            self._model,
            token_ids,
            keep=count,
            attention_mask=self._mask,
            position_ids=lengths[:, None] + torch.arange(count, device=token_ids.device),
            cache=self._cache,
            use_cache=True,
        )
        return logits


class RecomputedReading:
    """Reading without a cache: rows of one length are read together from their first token, unpadded.

    Slower, and right for every causal model, whatever it keeps between tokens.

    Args:
        model: a causal language model in Hugging Face format.
        token_ids: [N, W], texts at the right.
        lengths: [N], of the texts.
    """

    def __init__(self, model: Any, token_ids: Tensor, lengths: Tensor) -> None:
        self._model, self._token_ids, self._lengths = model, token_ids, lengths

    @staticmethod
    def of(model: Any, token_ids: Tensor, attention_mask: Tensor) -> RecomputedReading:
        """As ``CachedReading.of``."""
        return RecomputedReading(model, token_ids, attention_mask.sum(dim=1))

    def copies(self, count: int) -> RecomputedReading:
        rows = (array.repeat_interleave(count, dim=0) for array in (self._token_ids, self._lengths))
        return RecomputedReading(self._model, *rows)

    def feed(self, token_ids: Tensor) -> Tensor:
        count = token_ids.shape[1]
        self._token_ids = torch.cat([self._token_ids, token_ids], dim=1)
        self._lengths = self._lengths + count
        numbers, logits = [], []
        for length in self._lengths.unique().tolist():
            numbers.append((self._lengths == length).nonzero()[:, 0])
            texts = self._token_ids[numbers[-1], -length:]
            logits.append(run_model(self._model, texts, keep=count)[0])
        return torch.cat(logits)[torch.cat(numbers).argsort()]


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

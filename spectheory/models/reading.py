"""A model that reads texts and drafted paths behind them: with a cache, or everything anew at each call.

    reading = CachedReading.of(model, texts)      the texts without their last tokens
    logits = reading.follow(texts, paths, first)  behind the drafted prefixes of ``first`` and more tokens
    reading.accept(texts, path_index, L)          before an accepted prefix of one path is appended

The K paths of a text are a comb: they grow out of its last token side by side.  One call of the model reads
all of them in one row.  A mask lets a drafted token see the text and its own path alone, so that the past
of a text is neither repeated nor copied for its paths.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any, Protocol

import torch
from torch import Tensor

from spectheory.errors import Notice
from spectheory.models.texts import Texts


class Reading(Protocol):
    """One model on the texts of a batch."""

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        """The logits behind the first i drafted tokens of every path, for i = ``first``..d.

        The texts are those that the reading was opened with, lengthened by what was accepted since.  Calls
        between two acceptances may start anew (``first`` = 0) any number of times, or go on with
        longer paths (``first`` = d): the tokens read before are then those of this call's paths.

        Args:
            texts: B texts.
            paths: [B, K, d] token ids.
            first: 0 or d.

        Returns:
            [B, K, d - first + 1, vocabulary of the model].
        """

    def accept(self, texts: Texts, path_index: Tensor, draft_length: int) -> None:
        """Keep of the drafted paths of L tokens the one that the texts are lengthened along, [B].

        To be called before the texts are lengthened, by at most L accepted tokens and one more.
        """

    def select(self, rows: Tensor) -> None:
        """Go on with these texts alone."""


class CachedReading:
    """Reading with a cache.  A drafted token is read once, and stays if it is accepted.

    A layer that attends to a sliding window is read like any other while all of a text lies in the window.
    Beyond it the texts are read anew at every call.

    Args:
        model: a causal language model in Hugging Face format.
    """

    def __init__(self, model: Any) -> None:
        from spectheory.models.caches import SlotCache, narrowest_window  # brings transformers

        self._model, self._window = model, narrowest_window(model)
        self._cache: SlotCache | None = SlotCache()
        # How many of the last tokens of a text are not yet read; how many paths were, and how deep.
        self._unread, self._num_drafts, self._depth = 1, 1, 0

    @staticmethod
    def of(model: Any, texts: Texts) -> CachedReading:
        """Read the texts without their last tokens."""
        reading = CachedReading(model)
        if texts.width > 1 and reading._reaches(texts.width):
            reading._read(texts, texts.token_ids[:, : texts.width - 1], 1 - texts.width, -1, keep=1)
        return reading

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        if not self._reaches(texts.width + paths.shape[2]):
            return RecomputedReading(self._model).follow(texts, paths, first)
        self._num_drafts, self._depth = paths.shape[1:]
        drafted = paths[:, :, max(first - 1, 0) :].transpose(1, 2)  # [B, depths, K]
        if first > 0:
            logits = self._read(texts, drafted.flatten(1), first, self._depth, keep=drafted[0].numel())
            return logits.unflatten(1, drafted.shape[1:]).transpose(1, 2)
        tokens = torch.cat([texts.last(self._unread), drafted.flatten(1)], dim=1)
        keep = 1 + drafted[0].numel()
        logits = self._read(texts, tokens, 1 - self._unread, self._depth, keep)
        root = logits[:, :1, None].expand(-1, -1, self._num_drafts, -1)
        return torch.cat([root, logits[:, 1:].unflatten(1, drafted.shape[1:])], dim=1).transpose(1, 2)

    def accept(self, texts: Texts, path_index: Tensor, draft_length: int) -> None:
        if self._cache is None:
            return
        # The correction token is unread in any case, an accepted one if none of its depth was read.
        self._unread = 1 + draft_length - self._depth
        if self._num_drafts > 1 and self._depth > 0:
            ends, depths = texts.ends[:, None], torch.arange(self._depth, device=texts.ends.device)
            drafted = ends + depths * self._num_drafts + path_index[:, None]
            self._cache.move(drafted, ends + depths)

    def select(self, rows: Tensor) -> None:
        if self._cache is not None:
            self._cache.select(rows)

    def _reaches(self, length: int) -> bool:
        """Whether texts of this length can be read with the cache; it is given up when they cannot."""
        if length > self._window and self._cache is not None:
            self._cache = None
            warnings.warn(
                f"texts of {length} tokens are longer than the attention window of {self._window} of "
                f"{type(self._model).__name__}; it reads the whole text for every token from here on, which "
                "gives the same numbers and takes longer",
                Notice,
                stacklevel=2,
            )
        return self._cache is not None

    def _read(self, texts: Texts, tokens: Tensor, first: int, last: int, keep: int) -> Tensor:
        """Read the tokens at depths ``first``..``last``, [B, n]; a token of a text has a depth up to 0.

        Depth 0 is the last token of a text.  At each depth above it there are K tokens.
        """
        assert self._cache is not None
        ends, starts, device = texts.ends[:, None], texts.starts[:, None], tokens.device
        drafted = torch.arange(max(first, 1), max(last, 0) + 1, device=device)
        depth = torch.cat(
            [
                torch.arange(min(first, 1), min(last, 0) + 1, device=device),
                drafted.repeat_interleave(self._num_drafts),
            ]
        )
        path = torch.arange(self._num_drafts, device=device).repeat(len(drafted))
        path = torch.cat([path.new_zeros(len(depth) - len(path)), path])
        behind = torch.where(depth > 0, (depth - 1) * self._num_drafts + path, depth - 1)
        slots = (ends + behind).clamp(min=0)
        self._cache.slots, self._cache.width = slots, texts.width + max(last, 0) * self._num_drafts
        # [B, n, width]: a token sees its text up to itself, and its own path up to itself.
        slot = torch.arange(self._cache.width, device=device)
        number = (slot - ends)[:, None]  # of a drafted token, from 0; below 0 in the text
        in_text = (slot >= starts)[:, None] & (number <= behind.clamp(max=-1)[:, None])
        on_path = (number >= 0) & (number <= behind[:, None])
        on_path = on_path & (number % self._num_drafts == path[:, None])
        # Padding sees itself, so that its softmax is no 0/0; it is seen by no token.
        sees = in_text | on_path | (slot == slots[..., None])
        dtype = self._model.dtype
        mask = torch.zeros(sees.shape, dtype=dtype, device=device).masked_fill(~sees, torch.finfo(dtype).min)
        return run_model(
            self._model,
            tokens,
            keep=keep,
            attention_mask=mask[:, None],
            position_ids=(ends - starts - 1 + depth).clamp(min=0),
            cache=self._cache,
            use_cache=True,
        )[0]


class RecomputedReading:
    """Reading without a cache: texts of one length are read together from their first token, unpadded.

    Slower, and right for every causal model, whatever it keeps between tokens.

    Args:
        model: a causal language model in Hugging Face format.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    @staticmethod
    def of(model: Any, texts: Texts) -> RecomputedReading:
        """As ``CachedReading.of``; nothing is read yet."""
        return RecomputedReading(model)

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        num_drafts, depth = paths.shape[1:]
        lengths, logits, rows = texts.lengths, [], []
        for length in lengths.unique().tolist():
            rows.append((lengths == length).nonzero()[:, 0])
            columns = texts.ends[rows[-1], None] + torch.arange(-length, 0, device=paths.device)
            ids = texts.token_ids[rows[-1]].gather(1, columns)[:, None].expand(-1, num_drafts, -1)
            ids = torch.cat([ids, paths[rows[-1]]], dim=-1).flatten(0, 1)
            found, _ = run_model(self._model, ids, keep=depth - first + 1)
            logits.append(found.unflatten(0, (-1, num_drafts)))
        return torch.cat(logits)[torch.cat(rows).argsort()]

    def accept(self, texts: Texts, path_index: Tensor, draft_length: int) -> None:
        """Nothing is kept."""

    def select(self, rows: Tensor) -> None:
        """Nothing is kept."""


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
        attention_mask: [N, 1, n, width], what is added to the scores of attention.
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

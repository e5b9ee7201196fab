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
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from spectheory.foundation.errors import SlowReadingNotice
from spectheory.models.growing_texts import Texts


class Reading(Protocol):
    """One model on the texts of a batch."""

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        """The logits behind the first i drafted tokens of every path, for i = ``first``..d.

        The texts are those that the reading was opened with, with the tokens accepted since.  Calls
        between two acceptances may start anew (``first`` = 0) any number of times, or go on with
        longer paths (``first`` = d): the tokens read before are then those of this call's paths.

        Args:
            texts: B texts.
            paths: [B, K, d] token ids.
            first: 0 or d.

        Returns:
            [B, K, d - first + 1, vocabulary of the model].
        """

    def accept(self, texts: Texts, path_index: Tensor | None, draft_length: int) -> None:
        """Keep of the drafted paths of L tokens the one that the texts are lengthened along, [B].

        To be called before the texts are lengthened, by at most L accepted tokens and one more.  ``None``:
        they are lengthened along paths that this model may not have read.
        """

    def forget_drafts(self) -> None:
        """Take no accepted path from what was read since the last acceptance; it may hold other paths."""

    def select(self, rows: Tensor) -> None:
        """Go on with these texts alone."""


class CachedReading:
    """Reading with a cache.  A drafted token is read once, and stays if it is accepted.

    A layer that attends to a sliding window is read like any other while all of a text lies in the window.
    Beyond it the texts are read anew at every call.
    """

    def __init__(self, model: Any) -> None:
        from spectheory.models.caches import SlotCache, narrowest_window  # brings transformers

        self._model, self._window = model, narrowest_window(model)
        self._cache: SlotCache | None = SlotCache()
        # How many of the last tokens of a text are not yet read; how many paths were, and how deep.
        self._unread, self._num_drafts, self._depth = 1, 1, 0
        self._combs: dict[tuple[int, int, int], _Comb] = {}

    @staticmethod
    def of(model: Any, texts: Texts) -> CachedReading:
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
        if self._num_drafts == 1:
            return logits[:, None]
        places = 1 + torch.arange(keep - 1, device=tokens.device).reshape(drafted.shape[1:])
        places = torch.nn.functional.pad(places, (0, 0, 1, 0)).T  # [K, d+1], 0 is that of the last token
        return logits.index_select(1, places.flatten()).unflatten(1, places.shape)

    def accept(self, texts: Texts, path_index: Tensor | None, draft_length: int) -> None:
        if self._cache is None:
            return
        if path_index is None:
            self._unread = 1 + draft_length
            return
        # The correction token is unread in any case, an accepted one if none of its depth was read.
        self._unread = 1 + draft_length - self._depth
        if self._num_drafts > 1 and self._depth > 0:
            ends, depths = texts.ends[:, None], torch.arange(self._depth, device=texts.ends.device)
            drafted = ends + depths * self._num_drafts + path_index[:, None]
            self._cache.move(drafted, ends + depths)

    def forget_drafts(self) -> None:
        self._depth = 0

    def select(self, rows: Tensor) -> None:
        if self._cache is not None:
            self._cache.select(rows)

    def _reaches(self, length: int) -> bool:
        """Whether texts of this length can be read with the cache; it is given up when they cannot."""
        if length > self._window and self._cache is not None:
            self._cache = None
            warnings.warn(
                f"a text is longer than the attention window of {self._window} tokens of "
                f"{type(self._model).__name__}; it is read whole for every token from there on, which "
                "gives the same numbers and takes longer",
                SlowReadingNotice,
                stacklevel=2,
            )
        return self._cache is not None

    def _read(self, texts: Texts, tokens: Tensor, first: int, last: int, keep: int) -> Tensor:
        """Read the tokens at depths ``first``..``last``, [B, n]; a token of a text has a depth up to 0.

        Depth 0 is the last token of a text.  At each depth above it there are K tokens.
        """
        assert self._cache is not None
        wanted = first, last, self._num_drafts
        if wanted not in self._combs:
            self._combs[wanted] = _Comb.of(*wanted, tokens.device)
        comb = self._combs[wanted]
        ends, starts = texts.ends[:, None], texts.starts[:, None]
        slots = (ends + comb.behind).clamp(min=0)
        self._cache.slots, self._cache.width = slots, texts.width + max(last, 0) * self._num_drafts
        # [B, n, width]: a token sees its text up to itself, and its own path up to itself.  Padding sees
        # itself, so that its softmax is not 0/0; it is seen by no token.
        slot = torch.arange(self._cache.width, device=tokens.device)
        sees = (slot >= torch.minimum(starts, slots)[..., None]) & (slot <= slots[..., None])
        if self._num_drafts > 1 and last > 0:
            path = torch.where(slot < ends, -1, (slot - ends) % self._num_drafts)[:, None]
            sees &= (path < 0) | (path == comb.path[:, None])
        dtype = self._model.dtype
        nothing = torch.zeros((), dtype=dtype, device=tokens.device)
        mask = torch.where(sees, nothing, torch.finfo(dtype).min)
        return run_model(
            self._model,
            tokens,
            keep=keep,
            attention_mask=mask[:, None],
            position_ids=(ends - starts - 1 + comb.depth).clamp(min=0),
            cache=self._cache,
        )


class _Comb(NamedTuple):
    """The tokens that one call of the model reads, [n] each, whatever the texts are.

    Attributes:
        depth: 0 is the last token of a text; at each depth above it there are K tokens.
        path: of a drafted token.
        behind: its slot, counted from the end of its text; the last token of a text has -1.
    """

    depth: Tensor
    path: Tensor
    behind: Tensor

    @staticmethod
    def of(first: int, last: int, num_drafts: int, device: torch.device) -> _Comb:
        """The tokens at depths ``first``..``last``."""
        text = torch.arange(min(first, 1), min(last, 0) + 1, device=device)
        drafted = torch.arange(max(first, 1), max(last, 0) + 1, device=device)
        depth = torch.cat([text, drafted.repeat_interleave(num_drafts)])
        path = torch.arange(num_drafts, device=device).repeat(len(drafted))
        path = torch.cat([torch.zeros_like(text), path])
        return _Comb(depth, path, torch.where(depth > 0, (depth - 1) * num_drafts + path, depth - 1))


class RecomputedReading:
    """Reading without a cache: texts of one length are read together from their first token, unpadded.

    Slower, and right for every causal model, whatever it keeps between tokens.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    @staticmethod
    def of(model: Any, texts: Texts) -> RecomputedReading:
        return RecomputedReading(model)

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        num_drafts, depth = paths.shape[1:]
        lengths, logits, rows = texts.lengths, [], []
        for length in lengths.unique().tolist():
            rows.append((lengths == length).nonzero()[:, 0])
            columns = texts.ends[rows[-1], None] + torch.arange(-length, 0, device=paths.device)
            ids = texts.token_ids[rows[-1]].gather(1, columns)[:, None].expand(-1, num_drafts, -1)
            ids = torch.cat([ids, paths[rows[-1]]], dim=-1).flatten(0, 1)
            found = run_model(self._model, ids, keep=depth - first + 1)
            logits.append(found.unflatten(0, (-1, num_drafts)))
        return torch.cat(logits)[torch.cat(rows).argsort()]

    def accept(self, texts: Texts, path_index: Tensor | None, draft_length: int) -> None:
        """Nothing is kept."""

    def forget_drafts(self) -> None:
        """Nothing is kept."""

    def select(self, rows: Tensor) -> None:
        """Nothing is kept."""


class ReadingPerPath:
    """One model per path: model k reads the texts and path k alone."""

    def __init__(self, readings: Sequence[Reading], vocab_size: int) -> None:
        self._readings, self._vocab_size = readings, vocab_size

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        logits = [
            reading.follow(texts, path[:, None], first)[..., : self._vocab_size]
            for reading, path in zip(self._readings, paths.unbind(1), strict=False)
        ]
        return torch.cat(logits, dim=1)

    def accept(self, texts: Texts, path_index: Tensor | None, draft_length: int) -> None:
        """A model has read its own path, and the accepted one may be another's: it reads that anew."""
        for reading in self._readings:
            reading.accept(texts, None, draft_length)

    def forget_drafts(self) -> None:
        """No model's drafted path is kept in any case."""

    def select(self, rows: Tensor) -> None:
        for reading in self._readings:
            reading.select(rows)


@torch.no_grad()
def run_model(
    model: Any,
    input_ids: Tensor,
    *,
    keep: int,
    attention_mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    cache: Any = None,
) -> Tensor:
    """One forward call; the logits of the last ``keep`` positions.

    Args:
        input_ids: [N, n] new tokens.
        keep: how many of the n positions are wanted; others need not be computed.
        attention_mask: [N, 1, n, width], added to the scores of attention.
        position_ids: [N, n].
        cache: keys and values of the past, extended in place.

    Returns:
        Logits [N, keep, model vocabulary] in the model's own number type.
    """
    optional = {
        "attention_mask": attention_mask,
        "position_ids": position_ids,
        "cache": cache,
        "past_key_values": cache,
        "logits_to_keep": keep,
    }
    # Families differ: models without absolute positions, for one, take no position_ids.  The cache has
    # another name before transformers 5.24, and in code of people that is older.
    known = _parameters(getattr(model.forward, "__func__", model.forward))
    given = {name: value for name, value in optional.items() if value is not None and name in known}
    return model(input_ids=input_ids, use_cache=cache is not None, **given).logits[:, -keep:]


@lru_cache(maxsize=16)
def _parameters(forward: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(forward).parameters)

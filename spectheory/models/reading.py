"""Run a model on texts and on drafted paths after them, with a cache or from the first token at each call.

    reading = CachedReading(model, texts)         the texts without their last tokens
    logits = reading.follow(texts, paths, first)  after the drafted prefixes of ``first`` and more tokens
    reading.accept(texts, path_index, L)          before an accepted prefix of one path is appended

The K paths of a text form a comb: they start side by side from its last token.  One call of the model reads
all of them in one batch row.  A mask lets a drafted token attend only to the text and to its own path.  The
cache of a text is therefore not copied for its paths.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from spectheory.foundation.errors import SlowReadingNotice
from spectheory.models.growing_texts import Texts


class Reading(Protocol):
    """Runs one model on a batch of texts."""

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        """Compute the logits after the first i drafted tokens of every path, for i = ``first``..d.

        A call with ``first`` = 0 starts new paths, and may be repeated.  A call with ``first`` = d continues
        the paths of the previous call, whose tokens must be a prefix of ``paths``.

        Args:
            texts: the B texts that this object was made with, plus the tokens accepted since.
            paths: [B, K, d] token ids.
            first: 0 or d.

        Returns:
            [B, K, d - first + 1, vocabulary of the model].
        """

    def accept(self, texts: Texts, path_index: Tensor, draft_length: int) -> None:
        """Keep the cached tokens of one drafted path of L tokens per text, and drop the other paths.

        Call this before up to L accepted tokens and one more are appended to the texts.

        Args:
            texts: the B texts, not yet lengthened.
            path_index: [B], the path to keep.
            draft_length: L.
        """

    def forget_drafts(self) -> None:
        """Drop drafted tokens read since the last ``accept``, because they may belong to other paths."""

    def select(self, rows: Tensor) -> None:
        """Keep only the texts of these rows."""


class CachedReading:
    """Read texts and drafts with the KV cache of transformers.

    A drafted token is read once and stays cached if it is accepted.  A cached token of a text sits in the
    slot of its position.  After these slots a call appends the unread last tokens of the texts and then the
    drafted tokens, depth by depth.  ``accept`` moves the accepted tokens to the slots of their positions.
    Slots after the end of a shorter text are masked.

    Models with a sliding attention window are read with the cache while texts fit into the window.  Longer
    texts are read from their first token at every call.
    """

    def __init__(self, model: Any, texts: Texts) -> None:
        self._model, self._window = model, narrowest_window(model)
        # Without the configuration, because a sliding layer would drop tokens that are needed after a
        # rejection.
        self._cache = _new_cache(model)
        # _slots: number of slots of cached text tokens.  _unread: number of unread last tokens of a text.
        # _num_drafts, _depth: shape of the paths read since the last ``accept``; _depth is -1 if there are
        # none.
        self._slots, self._unread, self._num_drafts, self._depth = texts.width - 1, 1, 1, -1
        self._combs: dict[tuple[int, ...], _Comb] = {}
        if self._slots > 0 and self._reaches(texts.width):
            run_model(model, texts.first(self._slots), keep=1, cache=self._cache)

    def follow(self, texts: Texts, paths: Tensor, first: int) -> Tensor:
        if not self._reaches(texts.width + paths.shape[2]):
            return RecomputedReading(self._model, texts).follow(texts, paths, first)
        drafted = paths[:, :, max(first - 1, 0) :].transpose(1, 2)  # [B, depths, K]
        self._num_drafts, self._depth = paths.shape[1:]
        if first > 0:
            logits = self._read(texts, drafted.flatten(1), keep=drafted[0].numel())
            return logits.unflatten(1, drafted.shape[1:]).transpose(1, 2)
        self._slots = max(min(self._slots, texts.width - self._unread), 0)
        self._change(lambda array: array[:, :, : self._slots])
        tokens, keep = (
            torch.cat([texts.last(self._unread), drafted.flatten(1)], dim=1),
            1 + drafted[0].numel(),
        )
        logits = self._read(texts, tokens, keep)
        if self._num_drafts == 1:
            return logits[:, None]
        places = 1 + torch.arange(keep - 1, device=paths.device).reshape(drafted.shape[1:])
        places = torch.nn.functional.pad(places, (0, 0, 1, 0)).T  # [K, d+1], 0: the last text token
        return logits.index_select(1, places.flatten()).unflatten(1, places.shape)

    def accept(self, texts: Texts, path_index: Tensor, draft_length: int) -> None:
        if self._cache is None:
            return
        if self._depth < 0:
            self._unread += draft_length + 1
            return
        lengths = texts.lengths[:, None]
        kept, read = self._depth, self._slots + self._unread
        position = torch.arange(read + kept, device=lengths.device)
        slots = torch.where(position < lengths - self._unread, position, position - lengths + read)
        drafted = read + (position - lengths) * self._num_drafts + path_index[:, None]
        slots = torch.where(position < lengths, slots, drafted)
        slots = slots.clamp(max=read + self._depth * self._num_drafts - 1)
        self._change(lambda array: at_slots(array, slots))
        # The correction token is always unread.  Accepted tokens deeper than ``kept`` are unread too.
        self._slots, self._unread, self._depth = read + kept, 1 + draft_length - kept, -1

    def forget_drafts(self) -> None:
        self._depth = min(self._depth, 0)

    def select(self, rows: Tensor) -> None:
        if self._cache is not None:
            self._cache.batch_select_indices(rows)

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        """Apply ``change`` to the keys and values of every layer, [B, heads, slots, size of a head]."""
        for layer in self._cache.layers:
            if layer.is_initialized:
                layer.keys, layer.values = change(layer.keys), change(layer.values)

    def _reaches(self, length: int) -> bool:
        """Whether texts of this length can be read with the cache.  If not, the cache is dropped."""
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

    def _read(self, texts: Texts, tokens: Tensor, keep: int) -> Tensor:
        """Read n tokens per text, [B, n], and return the logits after the last ``keep`` of them."""
        new, lengths = tokens.shape[1], texts.lengths[:, None]
        wanted = new, self._unread, self._num_drafts, self._depth
        if wanted not in self._combs:
            self._combs[wanted] = _Comb.of(*wanted, tokens.device)
        comb = self._combs[wanted]
        positions = lengths - 1 + comb.depth  # negative if the text is shorter than the unread tokens
        is_token = positions >= 0
        # [B, n, slots].  Entries that are not text tokens attend to each other, so that no softmax is 0/0.
        cached = torch.arange(self._slots, device=tokens.device) < lengths - self._unread
        sees = comb.sees & (is_token[:, None] | ~is_token[:, -new:, None])
        sees = torch.cat([cached[:, None].expand(-1, new, -1), sees], dim=2)
        dtype = self._model.dtype
        nothing = torch.zeros((), dtype=dtype, device=tokens.device)
        return run_model(
            self._model,
            tokens,
            keep=keep,
            attention_mask=torch.where(sees, nothing, torch.finfo(dtype).min)[:, None],
            position_ids=positions[:, -new:].clamp(min=0),
            cache=self._cache,
        )


class _Comb(NamedTuple):
    """Layout of the unread tokens of a text and of the drafted tokens after it; a call reads the last n.

    Attributes:
        depth: [unread + drafted], depth of each token.  The last text token has depth 0, and K tokens share
            each depth above.
        sees: [n, unread + drafted], True where a token that is read attends to another: text or own path.
    """

    depth: Tensor
    sees: Tensor

    @staticmethod
    def of(new: int, unread: int, num_drafts: int, depth: int, device: torch.device) -> _Comb:
        drafted = torch.arange(1, depth + 1, device=device).repeat_interleave(num_drafts)
        depths = torch.cat([torch.arange(1 - unread, 1, device=device), drafted])
        path = torch.arange(num_drafts, device=device).repeat(depth)
        path = torch.cat([torch.full((unread,), -1, device=device), path])
        own = (path < 0) | (path == path[-new:, None])
        return _Comb(depths, own & (depths <= depths[-new:, None]))


class RecomputedReading:
    """Read texts without a cache: texts of equal length are read together from the first token, unpadded.

    This is slower, but correct for every causal model.
    """

    def __init__(self, model: Any, texts: Texts) -> None:
        self._model = model

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

    def accept(self, texts: Texts, path_index: Tensor, draft_length: int) -> None:
        """Do nothing, as nothing is cached."""

    def forget_drafts(self) -> None:
        """Do nothing, as nothing is cached."""

    def select(self, rows: Tensor) -> None:
        """Do nothing, as nothing is cached."""


def at_slots(array: Tensor, slots: Tensor) -> Tensor:
    """Gather the entries in the given slots.  [B, heads, n, size of a head], [B, m] -> [B, heads, m, size]"""
    # index_select copies whole entries: on a CPU it takes a twentieth of the time of a gather.
    starts = torch.arange(array.shape[0] * array.shape[1], device=array.device) * array.shape[2]
    places = starts.reshape(*array.shape[:2], 1) + slots[:, None]
    return array.flatten(0, 2).index_select(0, places.flatten()).unflatten(0, places.shape)


def narrowest_window(model: Any) -> float:
    """Length of the longest text that every layer attends to as a whole; infinity without a limit."""
    layers = _new_cache(model, config=model.config).layers
    return min((layer.sliding_window for layer in layers if layer.is_sliding), default=math.inf)


def _new_cache(model: Any, **options: Any) -> Any:
    """Make an empty cache for a model: the model's own, or that of transformers."""
    if hasattr(model, "new_cache"):
        return model.new_cache()
    from transformers import DynamicCache

    return DynamicCache(**options)


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
    """Run one forward call and return the logits of the last ``keep`` positions.

    Args:
        input_ids: [N, n] new tokens.
        keep: number of last positions whose logits are wanted.
        attention_mask: [N, 1, n, width], added to the scores of attention.
        position_ids: [N, n].
        cache: keys and values of the past, extended in place.

    Returns:
        Logits [N, keep, model vocabulary] in the dtype of the model.
    """
    optional = {
        "attention_mask": attention_mask,
        "position_ids": position_ids,
        "cache": cache,
        "past_key_values": cache,
        "logits_to_keep": keep,
    }
    # We pass only arguments that the model takes: models without absolute positions, for example, take no
    # position_ids.  The cache has another name before transformers 5.24 and in older user code.
    known = _parameters(getattr(model.forward, "__func__", model.forward))
    given = {name: value for name, value in optional.items() if value is not None and name in known}
    return model(input_ids=input_ids, use_cache=cache is not None, **given).logits[:, -keep:]


@lru_cache(maxsize=16)
def _parameters(forward: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(forward).parameters)

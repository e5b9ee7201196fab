"""A cache of keys and values whose rows are written and rolled back by themselves, in place.

A text's token has the slot of its column (``Texts``).  Drafted tokens are written behind the end of their
row, whatever the ends of the other rows are.  A rejected token needs no removal: its slot lies beyond the
end of the text, is not seen and is written over.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache

FIRST_CAPACITY = 64
"""Slots per row that room is made for at first."""


def narrowest_window(model: Any) -> float:
    """How many tokens a text may have for every layer to attend to all of it; infinity without a limit."""
    layers: Any = DynamicCache(config=model.config).layers
    return min((layer.sliding_window for layer in layers if layer.is_sliding), default=math.inf)


class SlotCache(Cache):
    """Keys and values by slot, for models in Hugging Face format.

    Attributes:
        slots: [B, n], where the next call of the model writes the n tokens it reads.
        width: how many slots that call can see.
    """

    layers: Any

    def __init__(self) -> None:
        layer: Any = partial(_SlotLayer, self)
        super().__init__(layer_class_to_replicate=layer)
        self.slots: Tensor
        self.width = 0

    def move(self, source: Tensor, destination: Tensor) -> None:
        """Copy slots to other slots of the same row, both [B, n]."""
        for layer in self.layers:
            layer.write(*layer.read(source), destination)

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        for layer in self.layers:
            layer.keys, layer.values = (array.index_select(0, rows) for array in (layer.keys, layer.values))


class _SlotLayer(CacheLayerMixin):
    """One layer's keys and values, [B, heads, capacity, size of a head]."""

    is_sliding = False
    keys: Tensor
    values: Tensor

    def __init__(self, cache: SlotCache) -> None:
        super().__init__()
        self._cache = cache

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        # Zeros and not whatever memory holds: a slot that is seen with weight 0 must not be NaN.
        self.keys, self.values = (
            states.new_zeros((*states.shape[:2], FIRST_CAPACITY, states.shape[3]))
            for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        width = self._cache.width
        if width > self.keys.shape[2]:  # a quarter more than asked for, so that the past is copied seldom
            more = width + width // 4 - self.keys.shape[2]
            self.keys, self.values = (
                torch.nn.functional.pad(array, (0, 0, 0, more)) for array in (self.keys, self.values)
            )
        self.write(key_states, value_states, self._cache.slots)
        return self.keys[:, :, :width], self.values[:, :, :width]

    def read(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(slots), device=slots.device)[:, None]
        keys, values = (array[rows, :, slots].transpose(1, 2) for array in (self.keys, self.values))
        return keys, values

    def write(self, keys: Tensor, values: Tensor, slots: Tensor) -> None:
        rows = torch.arange(len(slots), device=slots.device)[:, None]
        self.keys[rows, :, slots] = keys.transpose(1, 2)
        self.values[rows, :, slots] = values.transpose(1, 2)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.width, 0

    def get_seq_length(self) -> int:
        return self._cache.width

    def get_max_length(self) -> int:
        return -1

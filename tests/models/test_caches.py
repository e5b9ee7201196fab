"""Slots of a cache: written, moved and grown row by row."""

import math

import pytest
import torch

from later import Later
from spectheory.models.caches import FIRST_CAPACITY, SlotCache, narrowest_window

transformers = Later("transformers")


class Holder:
    def __init__(self, config: object) -> None:
        self.config = config


def test_slots_are_written_moved_and_selected_row_by_row() -> None:
    """Against one dictionary per row, beyond the first capacity; what is not written is 0."""
    cache, generator = SlotCache(), torch.Generator().manual_seed(0)
    known: list[dict[int, torch.Tensor]] = [{}, {}, {}]
    for step in range(3):
        first = torch.tensor([[0], [5], [9]]) + step * FIRST_CAPACITY // 2
        cache.slots, cache.width = first + torch.arange(4), int(first.max()) + 4
        new = torch.rand((3, 2, 4, 6), generator=generator)
        keys, values = cache.update(new, -new, 0)
        for row, slots in enumerate(cache.slots.tolist()):
            known[row].update({slot: new[row, :, n] for n, slot in enumerate(slots)})
        assert keys.shape == (3, 2, cache.width, 6)
        assert torch.equal(keys, -values)
    assert cache.width > FIRST_CAPACITY
    source, destination = torch.tensor([[1, 2], [6, 5], [9, 10]]), torch.tensor([[0, 1], [7, 8], [0, 9]])
    cache.move(source, destination)
    for row in range(3):
        before = dict(known[row])
        for old, new_slot in zip(source[row].tolist(), destination[row].tolist(), strict=True):
            known[row][new_slot] = before[old]
    cache.select(torch.tensor([2, 0]))
    (layer,) = cache.layers
    for row, slots in enumerate((known[2], known[0])):
        expected = torch.zeros((2, layer.keys.shape[2], 6))
        for slot, entry in slots.items():
            expected[:, slot] = entry
        assert torch.equal(layer.keys[row], expected)
        assert torch.equal(layer.values[row], -expected)


@pytest.mark.parametrize(
    ("kind", "settings", "window"),
    [
        ("LlamaConfig", {"num_hidden_layers": 2}, math.inf),
        ("MistralConfig", {"num_hidden_layers": 2, "sliding_window": 7}, 7),
        ("Qwen2Config", {"num_hidden_layers": 2, "sliding_window": 7}, math.inf),
        ("Gemma3TextConfig", {"num_hidden_layers": 6, "sliding_window": 5}, 5),
    ],
)
def test_the_narrowest_window_of_a_model(kind: str, settings: dict[str, int], window: float) -> None:
    """Qwen2 has a window in its configuration that it does not use."""
    assert narrowest_window(Holder(getattr(transformers, kind)(**settings))) == window

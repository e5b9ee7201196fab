"""Bytes that torch reads and writes and kernels it starts for one round of every runnable verifier.

One round is ``outcome()`` and one ``sample()``.  Bytes are counted where torch dispatches, from shapes alone:
they are exact, the same on every machine, and need neither a quiet machine nor a GPU.  The unit is one
reading of all rows.

What counts:

- an operator reads every distinct element of its tensors once and writes its outputs once;
- a gather reads as many elements as it returns, and its index; a view costs nothing;
- a sort counts as one reading and one writing, whatever it moves on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GATHERS = frozenset({"gather", "index", "index_select", "take", "take_along_dim", "embedding"})
"""Operators that read of their first argument as many elements as they return."""
PRINTED = ("token", "block", "greedy_block", "multi_round", "spectr_gbv", "greedy_multipath", "spectr")


class Traffic(NamedTuple):
    """What one run moved.

    Attributes:
        read, written: bytes.
        launches: operators that read or wrote something, one kernel or a few each.
        by_operator: bytes read and written, by the operator's name.
    """

    read: int
    written: int
    launches: int
    by_operator: Counter[str]

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.read + self.written


class CountBytes(TorchDispatchMode):
    """Counts bytes and launches of everything torch does inside the ``with`` block."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = self.launches = 0
        self.by_operator: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            self._count(func.overloadpacket.__name__, args, kwargs or {}, out)
        return out

    def _count(self, name: str, args: Any, kwargs: Any, out: Any) -> None:
        written = sum(_distinct_bytes(tensor) for tensor in _tensors(out))
        given = _tensors((args, kwargs))
        if name in GATHERS:
            source, *indices = given
            read = out.numel() * source.element_size() + sum(map(_distinct_bytes, indices))
        else:
            read = sum(map(_distinct_bytes, given))
        if name in ("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_full"):
            read = 0
        if name.startswith("empty") or not read + written:
            return
        self.read += read
        self.written += written
        self.launches += 1
        self.by_operator[name] += read + written

    @property
    def traffic(self) -> Traffic:
        """What was counted."""
        return Traffic(self.read, self.written, self.launches, self.by_operator)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _distinct_bytes(tensor: torch.Tensor) -> int:
    """Bytes of the elements, each counted once where a dimension is expanded."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride != 0 or size == 0 else 1
    return count * tensor.element_size()


def counted(run: Callable[[], Any]) -> Traffic:
    """The traffic of one run."""
    with CountBytes() as counter:
        run()
    return counter.traffic

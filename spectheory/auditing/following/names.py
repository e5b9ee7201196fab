"""Names of random numbers, which stand in memory in the place of their values.

A number that is not drawn has no value to store.  We store its *name*: in memory of floats a NaN whose
payload is an index, in memory of integers an unlikely integer plus an index.  So code that only moves
entries, such as views, joins, indices and the memory of a kernel, moves the numbers with them, and we
replace nothing of it.  Names of an earlier run are recognised, so that no run takes the numbers of another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from spectheory.auditing.tape.decisions import HiddenRandomnessError, NotEnumerableError

SMALL = 2**10
"""Memory of 16 bits has so few names that every run uses the same ones."""


class Names:
    """The random numbers of a run in memory of one type.

    Numbers come in blocks, and each is made when it is first read: most entries of a kernel's block are
    masked, and never read.

    Args:
        integers: the type of integers that has the size of the entries.
        base: the bit pattern that an index is added to.
        capacity: the number of names.
        is_float: whether the names are NaN.
    """

    def __init__(self, integers: type[Any], base: int, capacity: int, is_float: bool) -> None:
        self.integers, self.base, self.capacity, self.is_float = integers, base, capacity, is_float
        self._first = self._free = 1  # the NaN of ordinary arithmetic has the index 0
        self.begin()

    def begin(self) -> None:
        """Forget the numbers of the run before."""
        restarts = self.capacity <= SMALL or self._free > self.capacity // 2
        self._first = self._free = 1 if restarts else self._free
        self._starts: list[int] = []
        self._blocks: list[Callable[[int], Any]] = []
        self._made: dict[int, Any] = {}

    def new(self, count: int, make: Callable[[int], Any]) -> np.ndarray:
        """Name ``count`` new numbers, and return their bit patterns.  ``make(place)`` makes one of them."""
        start = self._free
        if start + count > self.capacity:
            raise NotEnumerableError(
                f"the sampler has more than {self.capacity - 1} random numbers of a type"
            )
        self._free += count
        self._starts.append(start)
        self._blocks.append(make)
        return (np.arange(start, start + count) + self.base).astype(self.integers)

    def indices(self, memory: np.ndarray) -> np.ndarray:
        """The indices of the names in memory, given as integers; 0 for an ordinary entry."""
        found = memory.astype(np.int64) - self.base
        is_named = (found >= self._first) & (found < self._free)
        if self.is_float and ((found > 0) & (found < self.capacity) & ~is_named).any():
            raise HiddenRandomnessError(
                "the function keeps random numbers, or a generator, from one run to the next; draw them anew"
            )
        return np.where(is_named, found, 0)

    def __getitem__(self, index: int) -> Any:
        if index not in self._made:
            block = bisect_right(self._starts, index) - 1
            self._made[index] = self._blocks[block](index - self._starts[block])
        return self._made[index]


NAMES = {
    "float64": Names(np.int64, 0x7FF8 << 48, 2**50, is_float=True),
    "float32": Names(np.int32, 0x7FC0 << 16, 2**22, is_float=True),
    "float16": Names(np.int16, 0x7E00, 2**9, is_float=True),
    "bfloat16": Names(np.int16, 0x7FC0, 2**6, is_float=True),
    "int64": Names(np.int64, 0x5A5A << 48, 2**40, is_float=False),
    "int32": Names(np.int32, 0x5A5A << 16, 2**16, is_float=False),
    "int16": Names(np.int16, 0x5A00, 2**8, is_float=False),
}
"""Type -> the names in memory of this type."""


@cache
def names_of(kind: Any) -> Names | None:
    """The names in memory of a type of torch or numpy.  ``None`` for a type that holds no random numbers."""
    return NAMES.get(str(kind).removeprefix("torch."))


def begin() -> None:
    """Forget all random numbers, before another run."""
    for names in NAMES.values():
        names.begin()

"""Graphs of torch operations on the host, in the place of those of a CUDA device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from spectheory.verification.captured_rounds import Memory


class _Recorded(TorchDispatchMode):
    """Keeps every operation with its arguments and its results."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = function(*args, **(kwargs or {}))
        self.operations.append((function, args, kwargs or {}, results))
        return results


class RecordedMemory(Memory):
    """A replay does the recorded operations again, into the memory where their results were.

    Args:
        replays: whether it does; a partner for what a test must see.
    """

    def __init__(self, replays: bool = True) -> None:
        super().__init__()
        self.replays, self.replayed = replays, 0

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        yield

    def capture(self, function: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        with _Recorded() as recorded:
            results = function()

        def replay() -> None:
            self.replayed += 1
            for operation, args, kwargs, before in recorded.operations if self.replays else ():
                after = operation(*args, **kwargs)
                for kept, new in zip(tree_leaves(before), tree_leaves(after), strict=True):
                    if isinstance(kept, torch.Tensor) and kept.data_ptr() != new.data_ptr():
                        kept.copy_(new)

        return replay, results

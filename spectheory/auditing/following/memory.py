"""The memory of random tensors in one run: nothing reads it as numbers, and nobody had it before.

A ``RandomTensor`` has numbers of its own; what torch stores for it means nothing.  So its memory must be new
in the run, numpy must not share it, and a tensor that torch takes for an ordinary one must not be read if it
has the same memory: an older view, or another name of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from spectheory.auditing.tape.decisions import NotEnumerableError

SHARING = ("numpy", "__array__", "__dlpack__", "untyped_storage", "storage")
"""Functions of a tensor after which others can read its memory without torch."""


class _Memory:
    def __init__(self) -> None:
        self.is_watched = self.is_ours = False
        self.forget()

    def forget(self) -> None:
        self.new: set[int] = set()
        self.shared: set[int] = set()
        self.random: dict[int, Any] = {}  # kept, so that no other tensor gets the place within the run


_MEMORY = _Memory()


@contextmanager
def watched() -> Iterator[None]:
    """Within, memory is new if an operator of torch made it; see ``note``."""
    _MEMORY.forget()
    _MEMORY.is_watched = True
    try:
        yield
    finally:
        _MEMORY.is_watched = False
        _MEMORY.forget()


@contextmanager
def read_by_us() -> Iterator[None]:
    """Within, this package knows which memory is random, as while it follows a kernel."""
    _MEMORY.is_ours = True
    try:
        yield
    finally:
        _MEMORY.is_ours = False


def claim(tensor: torch.Tensor) -> None:
    """The memory of a tensor becomes that of random numbers.

    Raises:
        NotEnumerableError: something else can read it.
    """
    if not _MEMORY.is_watched or not (place := _place_of(tensor)):
        return
    if place not in _MEMORY.new or place in _MEMORY.shared:
        raise NotEnumerableError(
            "the sampler fills memory with random numbers that was there before the call or that numpy can "
            "read; make the tensor in the call"
        )
    _MEMORY.random[place] = _storage(tensor)


def release(tensor: torch.Tensor) -> None:
    """The memory holds the tensor's numbers from now on."""
    _MEMORY.random.pop(_place_of(tensor), None)


def share(tensor: Any) -> None:
    """Others may read the memory of a tensor from now on."""
    if isinstance(tensor, torch.Tensor) and not _MEMORY.is_ours:
        _MEMORY.shared.add(_place_of(tensor))


def note(func: Any, arguments: Any, run: Any) -> Any:
    """Run an operator of torch; what it makes is new.

    Args:
        func: the operator.
        arguments: of it, by position and by name.
        run: () -> its result.

    Raises:
        NotEnumerableError: an ordinary tensor among the arguments has the memory of random numbers.
    """
    old = {check_name(tensor, func) for tensor in _tensors(arguments)}
    result = run()
    _MEMORY.new.update({_place_of(tensor) for tensor in _tensors(result)} - old)
    return result


def check_name(tensor: torch.Tensor, reader: Any) -> int:
    """The address of the memory of a tensor that is read; see ``note``."""
    place = _place_of(tensor)
    if place in _MEMORY.random and type(tensor).__name__ != "RandomTensor" and not _MEMORY.is_ours:
        raise NotEnumerableError(
            f"the sampler reads random numbers under an older name of their memory ({reader}); "
            "take the part after they are drawn"
        )
    return place


def _tensors(part: Any) -> Iterator[torch.Tensor]:
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, (tuple, list)):
        for each in part:
            yield from _tensors(each)
    elif isinstance(part, dict):
        yield from _tensors(tuple(part.values()))


def _storage(tensor: torch.Tensor) -> Any:
    with torch._C.DisableTorchFunction():
        return tensor.untyped_storage()


def _place_of(tensor: torch.Tensor) -> int:
    """The address of the memory of a tensor; 0 if it has none."""
    try:
        return int(_storage(tensor).data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0

"""The memory of random tensors in one run, which nothing may read as numbers.

A ``RandomTensor`` keeps its numbers in an attribute, and its memory is meaningless.  So this memory must be
new in the run, and numpy must not share it.  We refuse to read an ordinary tensor that has the same memory,
such as an older view.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from spectheory.auditing.tape.decisions import NotEnumerableError

SHARING = ("numpy", "__array__", "__dlpack__", "untyped_storage", "storage")
"""Functions of a tensor after which others can read its memory without torch."""

COPYING = (torch.tensor, torch.Tensor.new_tensor)
"""Functions that make a tensor of numbers that are given, which torch's operators do not show."""


class _Memory:
    def __init__(self) -> None:
        self.is_watched = self.is_ours = False
        self.forget()

    def forget(self) -> None:
        self.new: set[int] = set()
        # Place -> the memory, kept so that no other tensor gets the place within the run.
        self.shared: dict[int, Any] = {}
        self.random: dict[int, Any] = {}


_MEMORY = _Memory()


@contextmanager
def watched() -> Iterator[None]:
    """Inside this context, memory counts as new if an operator of torch made it; see ``note``."""
    _MEMORY.forget()
    _MEMORY.is_watched = True
    try:
        yield
    finally:
        _MEMORY.is_watched = False
        _MEMORY.forget()


@contextmanager
def read_by_us() -> Iterator[None]:
    """Inside this context, allow reads of random memory, because this package follows the reading kernel."""
    _MEMORY.is_ours = True
    try:
        yield
    finally:
        _MEMORY.is_ours = False


def claim(tensor: torch.Tensor) -> None:
    """Mark the memory of a tensor as memory of random numbers.

    Raises:
        NotEnumerableError: other code can read this memory.
    """
    if not _MEMORY.is_watched or not (place := _place_of(tensor)):
        return
    memory = _storage(tensor)
    # torch does not resize memory that is numpy's: its place can be that of a tensor that is gone.
    if place not in _MEMORY.new or place in _MEMORY.shared or not memory.resizable():
        raise NotEnumerableError(
            "the sampler fills memory with random numbers that was there before the call or that numpy can "
            "read; make the tensor in the call"
        )
    _MEMORY.random[place] = memory


def release(tensor: torch.Tensor) -> None:
    """Mark the memory as ordinary: from now on it holds the tensor's numbers."""
    _MEMORY.random.pop(_place_of(tensor), None)


def share(tensor: Any) -> None:
    """Mark the memory of a tensor as shared: from now on other code may read it."""
    if isinstance(tensor, torch.Tensor) and not _MEMORY.is_ours and (place := _place_of(tensor)):
        _MEMORY.shared[place] = _storage(tensor)


def note(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], random: type) -> Any:
    """Run an operator of torch.  The memory of its result is new unless an argument shares it.

    Args:
        func, args, kwargs: the operator and its arguments.
        random: the class of random tensors.  We compare the class itself, because a sampler may use its name.

    Raises:
        NotEnumerableError: an ordinary tensor among the arguments has the memory of random numbers.
    """
    with torch._C.DisableTorchFunction():  # entered once, not for every tensor: most of the time goes here
        if _MEMORY.random and not _MEMORY.is_ours:
            for tensor in _tensors((*args, *kwargs.values()) if kwargs else args):
                if type(tensor) is not random:
                    _check_place(_open_place_of(tensor), func)
        result = func(*args, **kwargs) if kwargs else func(*args)
        if func.overloadpacket in _UNFILLED:
            _fill(result)
        if not _shares(func):
            if type(result) is torch.Tensor:  # nearly all results
                _MEMORY.new.add(_open_place_of(result))
            else:
                made((result,))
    return result


_UNFILLED = {
    getattr(torch.ops.aten, name)
    for name in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
}


def _fill(tensor: torch.Tensor) -> None:
    """Fill new memory as in torch's deterministic mode, so that code that reads it is wrong in every run."""
    dtype = tensor.dtype
    if dtype.is_floating_point or dtype.is_complex:
        tensor.fill_(math.nan)
    else:
        tensor.fill_(True if dtype == torch.bool else torch.iinfo(dtype).max)


def made(parts: Sequence[Any]) -> None:
    """Mark the memory of these tensors as new."""
    _MEMORY.new.update(map(_place_of, _tensors(parts)))


@cache
def _shares(func: Any) -> bool:
    """Whether an operator may return the memory of an argument."""
    return bool(func.is_view or func._schema.is_mutable)


def check_name(tensor: torch.Tensor, reader: Any) -> None:
    """Refuse to read an ordinary tensor that has the memory of random numbers."""
    _check_place(_place_of(tensor), reader)


def _check_place(place: int, reader: Any) -> None:
    if place in _MEMORY.random:
        raise NotEnumerableError(
            f"the sampler reads random numbers under an older name of their memory ({reader}); "
            "take the part after they are drawn"
        )


def _tensors(parts: Sequence[Any]) -> list[torch.Tensor]:
    found = []
    for part in parts:
        if isinstance(part, torch.Tensor):
            found.append(part)
        elif isinstance(part, (tuple, list)) and part and not isinstance(part[0], int):  # no shape
            found += _tensors(part)
    return found


def _storage(tensor: torch.Tensor) -> Any:
    with torch._C.DisableTorchFunction():
        return tensor.untyped_storage()


def _place_of(tensor: torch.Tensor) -> int:
    """The address of the memory of a tensor.  0 if it has no memory."""
    with torch._C.DisableTorchFunction():
        return _open_place_of(tensor)


def _open_place_of(tensor: torch.Tensor) -> int:
    """As ``_place_of``, for callers that have disabled torch functions."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0

"""Tensors of random numbers that are not drawn: torch functions act on their laws.

A ``RandomTensor`` may be reshaped, indexed, put through monotone elementwise functions and compared; every
comparison is decided by ``Number.decide``.  Any other torch function is refused by its name.  The winners of
races are whole numbers.  A race is run as soon as more than the position of its winner is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from spectheory.auditing.tape.atoms import Number
from spectheory.auditing.tape.decisions import JUDGE_BY_SAMPLES, NotEnumerableError
from spectheory.auditing.tape.races import Clock, Pick, Race, clock_after, only_a_race

PART_OF_A_TENSOR = "random numbers in part of a tensor; use a separate tensor"


class RandomTensor(torch.Tensor):
    """A tensor of random numbers that are not drawn; the memory of a random entry is meaningless.

    Attributes:
        numbers: an object array of the tensor's shape: ``Number``, ``Clock``, ``Pick`` or Python number.
        is_python: whether the tensor represents a Python number, which does not change the dtype of others.
    """

    numbers: np.ndarray
    is_python: bool = False
    __array_ufunc__ = None  # a numpy number leaves the comparison to this class

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _apply(func, args, kwargs or {})


def random_tensor(numbers: np.ndarray, dtype: torch.dtype, is_python: bool = False) -> RandomTensor:
    return become_random(torch.ones(numbers.shape, dtype=dtype), numbers, is_python)


def become_random(tensor: torch.Tensor, numbers: np.ndarray, is_python: bool = False) -> RandomTensor:
    """Turn a tensor that the sampler fills in place into a tensor of these numbers.

    Raises:
        NotEnumerableError: it is part of another tensor.
    """
    if tensor._is_view():
        raise NotEnumerableError(
            "the sampler fills part of a tensor with random numbers; draw them as a tensor"
        )
    tensor.fill_(1)
    random: Any = tensor
    random.__class__ = RandomTensor
    random.numbers, random.is_python = numbers, is_python
    return random


# ------------------------------------------------------------------------- torch functions on random tensors

_METADATA = (
    "size dim numel nelement stride is_floating_point is_contiguous is_complex element_size get_device "
    "__len__ result_type can_cast storage_offset _is_view "
    "new_full new_empty new_zeros new_ones full_like empty_like zeros_like ones_like "
    "shape dtype device ndim is_cuda layout requires_grad is_leaf grad_fn is_sparse"
)
_STRUCTURE = (
    "__getitem__ view reshape squeeze unsqueeze flatten expand expand_as permute transpose t contiguous "
    "clone detach cpu repeat split chunk unbind select narrow flip index_select gather ravel view_as "
    "reshape_as movedim swapaxes broadcast_to T mT tile unflatten"
)
_COMPARISONS = "lt le gt ge less less_equal greater greater_equal"
_CLOCK_OPERATIONS = {
    name: operation
    for operation, names in {
        "divide": "div divide true_divide __rdiv__ __rtruediv__",
        "multiply": "mul multiply __rmul__",
        "add": "add __radd__",
        "subtract": "sub subtract __rsub__",
        "negative": "neg negative",
        "log": "log",
        "reciprocal": "reciprocal",
    }.items()
    for name in names.split()
}
"""torch's name -> the operation of ``clock_after``."""
_OTHER_MONOTONE = (
    "rsub log2 log10 log1p exp expm1 sqrt clamp clip clamp_min clamp_max minimum maximum "
    "to type float double half bfloat16"
)


def _apply(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = func.__name__
    if name == "__get__":
        name = func.__self__.__name__
    if name in _METADATA.split():
        return unwrapped(func, args, kwargs)
    if name == "__repr__":
        return "<random numbers that are not drawn>"
    if name in _STRUCTURE.split():
        return _rearranged(func, args, kwargs)
    if name == "where" and len(args) == 3 and not isinstance(args[0], RandomTensor):
        return _chosen(*args)
    if name == "__setitem__":
        return _stored(*args)
    if picks := [random for random in _random([*args, *kwargs.values()]) if _is_picked(random)]:
        for random in picks:
            settle(random)
        return func(*args, **kwargs)
    if name in ("item", "tolist") and len(args) == 1:
        return _python_numbers(args[0])
    if any(isinstance(number, Clock) for random in _random(args) for number in random.numbers.flat):
        return _on_clocks(name, func, args, kwargs)
    if name in _CLOCK_OPERATIONS or name in _OTHER_MONOTONE.split():
        return random_tensor(*_entrywise(func, args, kwargs, _combining(func, args, kwargs)))
    if name in _COMPARISONS.split():
        return _decisions(_entrywise(func, args, kwargs, _combining(func, args, kwargs))[0])
    if name in ("eq", "ne", "__eq__", "__ne__"):
        equal = _apply(torch.le, args, kwargs) & ~_apply(torch.lt, args, kwargs)
        return equal if "eq" in name else ~equal
    if name in ("cumprod", "cumsum"):
        return _cumulative(torch.mul if name == "cumprod" else torch.add, *args, **kwargs)
    if name in ("searchsorted", "bucketize"):
        edges, values = args if name == "searchsorted" else args[::-1]
        return _searchsorted(edges, values, **kwargs)
    raise NotEnumerableError(
        f"the sampler applies {name} to random numbers, which is not followed; compare them, or "
        f"{JUDGE_BY_SAMPLES}"
    )


def unwrapped(func: Any, args: Any, kwargs: Any) -> Any:
    """A torch function on the memory of random tensors: right in shape and dtype, meaningless in value."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _random(args: Sequence[Any]) -> list[RandomTensor]:
    return [arg for arg in args if isinstance(arg, RandomTensor)]


def _is_picked(random: RandomTensor) -> bool:
    return any(isinstance(number, Pick) for number in random.numbers.flat)


def settle(random: RandomTensor) -> None:
    """Run the races of a tensor of picks, which becomes an ordinary tensor."""
    values = [number.decide() if isinstance(number, Pick) else number for number in random.numbers.flat]
    plain: Any = random
    plain.__class__ = torch.Tensor
    plain.copy_(torch.tensor(values, dtype=plain.dtype).reshape(plain.shape))


def _chosen(condition: torch.Tensor, first: Any, second: Any) -> torch.Tensor:
    """``torch.where``, entry by entry; no race is run."""
    parts = [_entries(part) for part in (first, second)]
    stand_ins = [
        torch.ones((), dtype=_dtype(part)) if isinstance(part, RandomTensor) else part
        for part in (first, second)
    ]
    dtype = torch.where(torch.ones((), dtype=torch.bool), stand_ins[0], stand_ins[1]).dtype
    return _settled_if_known(random_tensor(np.where(condition.numpy(), *parts), dtype))


def _stored(target: torch.Tensor, key: Any, value: Any) -> None:
    """``target[key] = value``; the target becomes random where the value is."""
    if isinstance(key, RandomTensor) or target._is_view():
        raise NotEnumerableError(f"the sampler stores {PART_OF_A_TENSOR}")
    numbers = _entries(target)
    places = torch.arange(target.numel()).reshape(target.shape)[key]
    values = np.broadcast_to(_entries(value), tuple(places.shape))
    for place, entry in zip(places.flatten().tolist(), values.flat, strict=True):
        numbers.flat[place] = entry
    random: Any = target
    random.__class__ = RandomTensor
    random.numbers = numbers
    _settled_if_known(random)


def _entries(part: Any) -> np.ndarray:
    """The entries of a tensor or a number, as objects."""
    if isinstance(part, RandomTensor):
        return part.numbers.copy()
    entries = np.empty(torch.as_tensor(part).shape, dtype=object)
    entries[...] = np.array(torch.as_tensor(part).numpy(), dtype=object)
    return entries


def _settled_if_known(random: RandomTensor) -> torch.Tensor:
    """An ordinary tensor where no entry is random."""
    if not any(isinstance(number, (Number, Clock, Pick)) for number in random.numbers.flat):
        settle(random)
    return random


def _rearranged(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Move the numbers as the function moves the entries of a tensor of their positions."""
    random = args[0]
    if not isinstance(random, RandomTensor) or _random(args[1:]):
        raise NotEnumerableError(f"the sampler uses random numbers as an index of {func.__name__}")
    places = torch.arange(random.numbers.size).reshape(random.numbers.shape)
    moved = func(places, *args[1:], **kwargs)
    dtype = unwrapped(torch.result_type, (random, random), {})

    def at(chosen: torch.Tensor) -> torch.Tensor:
        numbers = np.empty(chosen.shape, dtype=object)
        numbers[...] = random.numbers.ravel()[chosen.numpy()]
        return _settled_if_known(random_tensor(numbers, dtype, random.is_python))

    return at(moved) if isinstance(moved, torch.Tensor) else tuple(at(part) for part in moved)


def _python_numbers(random: RandomTensor) -> Any:
    if random.numbers.ndim == 0:
        return random_tensor(random.numbers, torch.float64, is_python=True)
    return [_python_numbers(part) for part in _rearranged(torch.unbind, (random,), {})]


def _entrywise(
    func: Any, args: Any, kwargs: Any, combine: Callable[[Sequence[Any], torch.dtype], Any]
) -> tuple[np.ndarray, torch.dtype, bool]:
    """The numbers of ``func(*args)``, their dtype, and whether they are Python numbers.

    The shape and the dtype are those that torch computes for ordinary tensors.

    Args:
        combine: (one entry of every argument, dtype of the result) -> the entry of the result.
    """
    if any(isinstance(arg, torch.Tensor) for arg in kwargs.values()):
        raise NotEnumerableError(f"the sampler hands {func.__name__} a tensor by name; hand it by position")

    def stand_in(arg: Any) -> Any:
        if isinstance(arg, RandomTensor):
            return 0.5 if arg.is_python else torch.ones(arg.numbers.shape, dtype=_dtype(arg))
        return arg

    python = _all_python(args)
    like = torch.tensor(0.5).double() if python else func(*map(stand_in, args), **kwargs)
    numbers = np.empty(like.shape, dtype=object)
    spread = [
        np.broadcast_to(arg.numbers, like.shape)
        if isinstance(arg, RandomTensor)
        else torch.broadcast_to(arg, like.shape)
        if isinstance(arg, torch.Tensor)
        else arg
        for arg in args
    ]
    for place in np.ndindex(numbers.shape):
        entries = [part[place] if isinstance(part, (np.ndarray, torch.Tensor)) else part for part in spread]
        numbers[place] = combine(entries, like.dtype)
    return numbers, like.dtype, python


def _dtype(random: RandomTensor) -> torch.dtype:
    return unwrapped(torch.Tensor.dtype.__get__, (random,), {})  # type: ignore[attr-defined]


def _all_python(args: Sequence[Any]) -> bool:
    """Whether no argument is a tensor to torch: then Python computes, in float64."""
    return all(not isinstance(arg, torch.Tensor) or getattr(arg, "is_python", False) for arg in args)


def _combining(func: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Sequence[Any], Any], Number]:
    """``func`` of one entry of every argument, with torch's own conversions of types."""
    python = _all_python(args)
    kinds = [_kind_of(arg, python) for arg in args]

    def function(*values: Any) -> Any:
        return func(*values, **kwargs).reshape(())

    def combine(entries: Sequence[Any], dtype: torch.dtype) -> Number:
        # A constant is converted once, not at every one of the many evaluations.
        parts = [
            entry.mapped(kind) if isinstance(entry, Number) else kind(entry)
            for entry, kind in zip(entries, kinds, strict=True)
        ]
        return Number.combined(func.__name__, parts, function)

    return combine


def _kind_of(arg: Any, python: bool) -> Callable[[Any], Any]:
    """The conversion of a value to the kind of argument that ``arg`` is.

    Scalars stay scalars and tensors become tensors of one entry, so that torch converts types as usual.
    """
    if not isinstance(arg, torch.Tensor):
        return lambda value: _float64(value) if python and isinstance(value, float) else value
    if getattr(arg, "is_python", False):
        return lambda value: _float64(float(value)) if python else float(value)
    dtype = _dtype(arg) if isinstance(arg, RandomTensor) else arg.dtype
    shape = () if unwrapped(torch.Tensor.dim, (arg,), {}) == 0 else (1,)
    return lambda value: torch.as_tensor(value, dtype=dtype).reshape(shape)


def _float64(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def _decisions(numbers: np.ndarray) -> torch.Tensor:
    truths = [number.decide() for number in numbers.ravel()]
    return torch.tensor(truths, dtype=torch.bool).reshape(numbers.shape)


def _cumulative(combine: Any, random: RandomTensor, dim: int) -> RandomTensor:
    """One entry after the other along an axis, as torch's loop on a CPU does."""
    parts = list(_rearranged(torch.unbind, (random, dim), {}))
    for number in range(1, len(parts)):
        parts[number] = combine(parts[number - 1], parts[number])
    stacked = np.stack([part.numbers for part in parts], axis=dim)
    return random_tensor(stacked, _dtype(random))


def _searchsorted(
    edges: torch.Tensor, values: RandomTensor, *, right: bool = False, side: str = "left", **options: Any
) -> torch.Tensor:
    """How many edges are below each value (at most it, from the right)."""
    if isinstance(edges, RandomTensor) or options:
        raise NotEnumerableError("the sampler calls searchsorted in a form that is not followed")
    compare = torch.ge if right or side == "right" else torch.gt
    rows = edges.expand(*values.numbers.shape[:-1], edges.shape[-1])
    found = torch.zeros(values.numbers.shape, dtype=torch.long)
    for place in np.ndindex(values.numbers.shape):
        number = random_tensor(np.array(values.numbers[place], dtype=object), _dtype(values))
        for edge in rows[place[:-1]]:
            if not bool(compare(number, edge)):
                break
            found[place] += 1
    return found


def _on_clocks(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Exponential numbers, scaled by weights, or their logarithms, shifted by logits; and their races."""
    if name in ("isinf", "isnan", "eq", "ne", "__eq__", "__ne__"):  # of a real number: almost never
        return torch.full(args[0].numbers.shape, name in ("ne", "__ne__"))
    if name in ("argmax", "argmin") and len(args) + len(kwargs) <= 3:
        return _winners(name == "argmax", *args, **kwargs)
    if kwargs or name not in _CLOCK_OPERATIONS:
        raise only_a_race(name)

    def combine(entries: Sequence[Any], dtype: torch.dtype) -> Clock:
        operands = [
            float(torch.tensor(entry, dtype=dtype)) if isinstance(entry, (int, float)) else entry
            for entry in entries
        ]
        in_order = operands[::-1] if name.startswith("__r") else operands
        return clock_after(_CLOCK_OPERATIONS[name], *in_order)

    return random_tensor(*_entrywise(func, args, kwargs, combine))


def _winners(largest: bool, random: RandomTensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The winner of every race along an axis."""
    rows = np.moveaxis(random.numbers, dim, -1) if dim is not None else random.numbers.ravel()
    found = np.empty(rows.shape[:-1], dtype=object)
    for place in np.ndindex(found.shape):
        found[place] = Pick(Race(list(rows[place]), largest))
    chosen = random_tensor(found, torch.int64)
    return chosen.unsqueeze(dim) if keepdim and dim is not None else chosen

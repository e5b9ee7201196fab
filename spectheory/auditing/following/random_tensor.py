"""Tensors of random numbers that we follow without drawing: torch functions act on their laws.

A sampler may reshape, join, index and compare a ``RandomTensor``, and apply monotone elementwise functions.
``Number.decide`` decides every comparison.  We refuse any other torch function, and name it.  The winners of
races are integers.  We run a race when the sampler needs more than the position of its winner.  A run
branches on an integer when the sampler needs more than a comparison or a remainder.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided

from spectheory.auditing.tape.atoms import WHOLE, Number, as_clock, clocks_of_row, followed_on
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.races import (
    ArgmaxWinner,
    ExponentialDraw,
    Race,
    are_equal,
    clock_after,
    only_a_race,
    value_of,
)

PART_OF_A_TENSOR = "random numbers in part of a tensor; use a separate tensor"


class RandomTensor(torch.Tensor):
    """A tensor of random numbers that are not drawn.  The memory of a random entry is meaningless.

    Attributes:
        numbers: an object array of the tensor's shape: ``Number``, ``ExponentialDraw``, ``ArgmaxWinner`` or
            Python number.  Where torch would share the memory of two tensors, both have views of one array.
        is_python: whether the tensor represents a Python number, which does not change the dtype of others.
        relatives: the tensors that share the numbers, by their ids.  ``None`` if there is no other tensor.
    """

    numbers: np.ndarray
    is_python: bool = False
    relatives: WeakValueDictionary[int, torch.Tensor] | None = None
    __array_ufunc__ = None  # a numpy number leaves the comparison to this class

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _apply(func, args, kwargs or {})


def random_tensor(numbers: np.ndarray, dtype: torch.dtype, is_python: bool = False) -> RandomTensor:
    return _random_from(numbers.shape, dtype, np.asarray(numbers, order="C"), is_python)


def _random_from(shape: Any, dtype: torch.dtype, numbers: np.ndarray, is_python: bool) -> RandomTensor:
    random: Any = torch.ones(shape, dtype=dtype)
    random.__class__ = RandomTensor
    random.numbers, random.is_python = numbers, is_python
    return random


def become_random(tensor: torch.Tensor, numbers: np.ndarray) -> Any:
    """Give a tensor these numbers in place, and so every tensor that shares its memory."""
    _numbers_to_change(tensor)[...] = numbers
    for relative in list((vars(tensor).get("relatives") or {0: tensor}).values()):
        if not _has_random(relative):
            branch_on_values(relative)
        elif type(relative) is not RandomTensor:
            relative.__class__ = RandomTensor
    return tensor


_CHANGED: list[tuple[Any, Callable[[], None]]] = []
"""The sampler's tensors that were changed in this run, and how their memory becomes what it was."""


def made_ordinary() -> None:
    """Make the sampler's tensors ordinary after a run, because it may keep them for the next one."""
    for tensor, restore in _CHANGED:
        tensor.__class__ = torch.Tensor
        for name in ("numbers", "relatives"):
            vars(tensor).pop(name, None)
        restore()
    _CHANGED.clear()


def _numbers_to_change(tensor: Any) -> np.ndarray:
    """The numbers of a tensor.  An ordinary view gets its part of the numbers of the whole tensor."""
    if type(tensor) is RandomTensor:
        return tensor.numbers
    with torch._C.DisableTorchFunction():
        if "numbers" in vars(tensor) or not tensor._is_view():
            if "numbers" not in vars(tensor):
                _CHANGED.append((tensor, lambda: None))
            known = vars(tensor).setdefault("numbers", np.empty(tuple(tensor.shape), dtype=object))
            known[...] = _entries(tensor)
            return known
        whole, start = tensor._base, tensor.storage_offset()
        numbers = _numbers_to_change(whole)
        if not (whole.is_contiguous() and whole.storage_offset() == 0 and numbers.flags.c_contiguous):
            raise NotEnumerableError(f"the sampler stores {PART_OF_A_TENSOR}")
        strides = [stride * numbers.itemsize for stride in tensor.stride()]
        tensor.numbers = as_strided(numbers.reshape(-1)[start:], tuple(tensor.shape), strides)
        _CHANGED.append((tensor, partial(setattr, tensor, "data", tensor.data)))
        tensor.data = torch.ones_like(tensor)  # its own memory, as any random tensor
        _relate(whole, tensor)
        return tensor.numbers


def _relate(whole: Any, part: Any) -> None:
    if vars(whole).get("relatives") is None:
        whole.relatives = WeakValueDictionary({id(whole): whole})
    part.relatives = whole.relatives
    part.relatives[id(part)] = part


def changed_in_place(tensor: Any) -> None:
    """Copy a change of an ordinary tensor to its relatives."""
    if type(tensor) is torch.Tensor and len(vars(tensor).get("relatives") or ()) > 1:
        become_random(tensor, _entries(tensor))


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
_JOINS = "cat concat concatenate stack hstack vstack dstack column_stack"
_EQUALITIES = "eq ne __eq__ __ne__"
_SINGLE_VALUES = "isinf isnan isfinite isposinf isneginf"
_COMPARISONS = "lt le gt ge less less_equal greater greater_equal"
_CLOCK_OPERATIONS = {
    name: operation
    for operation, names in {
        "divide": "div divide true_divide __truediv__ __rdiv__ __rtruediv__",
        "multiply": "mul multiply __mul__ __rmul__",
        "add": "add __add__ __radd__",
        "subtract": "sub subtract __sub__ rsub __rsub__",
        "negative": "neg negative __neg__",
        "log": "log",
        "reciprocal": "reciprocal",
    }.items()
    for name in names.split()
}
"""torch's name -> the operation of ``clock_after``."""
_REVERSED = "rsub __rsub__ __rdiv__ __rtruediv__ __rmul__ __radd__"
"""Operations whose second operand comes first."""
_CONVERSIONS = "to type float double"
_OTHER_MONOTONE = (
    "log2 log10 log1p exp expm1 sqrt clamp clip clamp_min clamp_max minimum maximum half bfloat16 "
    "long int short floor ceil trunc round floor_divide __floordiv__ " + _CONVERSIONS
)
REAL = (torch.float32, torch.float64)
"""The types in which a uniform number is still one, and a race is one of real numbers."""
_REMAINDERS = "remainder fmod __mod__"
_DIVISIONS = "divide reciprocal floor_divide __floordiv__"
_WITHIN_A_DOMAIN = "sqrt log log2 log10 log1p"
_CASTS = "to type long int short"
_WHOLE = (torch.int16, torch.int32, torch.int64)
"""The types in which every token of an audit's vocabularies is itself."""


def _apply(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = func.__name__
    if name == "__get__":
        name = func.__self__.__name__
    if name in _METADATA.split():
        return unwrapped(func, args, kwargs)
    if name == "__repr__":
        raise NotEnumerableError("the sampler writes random numbers as text, which is not followed")
    if name in _STRUCTURE.split():
        _branch_on_those(_flat(args[1:]), lambda index: _is_picked(index) or _is_whole(index))
        is_random = isinstance(args[0], RandomTensor) or _random(_flat(args[1:]))
        return _rearranged(func, args, kwargs) if is_random else func(*args, **kwargs)
    if name in _JOINS.split():
        return _joined(func, *args, **kwargs)
    if name == "where" and len(args) == 3:
        condition, first, second = args if func is torch.where else (args[1], args[0], args[2])
        return _chosen(condition, first, second)
    if name == "masked_fill" and not isinstance(args[2], RandomTensor):
        return _chosen(args[1], torch.as_tensor(args[2]).type(_dtype(args[0])), args[0])
    if name in ("__eq__", "__ne__") and args[1] is None:
        return name == "__ne__"
    if name == "__setitem__":
        return _stored(*args)
    if name.endswith("_") and not name.startswith("_") and callable(getattr(torch.Tensor, name[:-1], None)):
        return _in_place(args[0], getattr(torch.Tensor, name[:-1])(*args, **kwargs))
    if name in _CASTS.split() and _is_picked(args[0]) and not _random(_flat(args[1:])):
        dtype = unwrapped(func, args, kwargs).dtype
        if dtype in _WHOLE:  # the winner of a race stays undecided: a kernel may never read it
            return args[0] if dtype == _dtype(args[0]) else random_tensor(args[0].numbers.copy(), dtype)
    if _branch_on_those([*args, *kwargs.values()], _is_picked):
        return func(*args, **kwargs)
    if name in ("item", "tolist") and len(args) == 1:
        return _python_numbers(args[0].reshape(()) if name == "item" else args[0])
    if any(isinstance(number, ExponentialDraw) for random in _random(args) for number in random.numbers.flat):
        return _on_clocks(name, func, args, kwargs)
    if name in _CLOCK_OPERATIONS or name in _OTHER_MONOTONE.split():
        return random_tensor(*_entrywise(func, args, kwargs, _combining(func, args, kwargs)))
    if name in _COMPARISONS.split():
        return _decisions(_entrywise(func, args, kwargs, _combining(func, args, kwargs))[0])
    if name in _EQUALITIES.split():
        equal = _apply(torch.le, args, kwargs) & ~_apply(torch.lt, args, kwargs)
        return equal if "eq" in name else ~equal
    if name in ("cumprod", "cumsum"):
        return _cumulative(torch.mul if name == "cumprod" else torch.add, *args, **kwargs)
    if name in ("searchsorted", "bucketize") and len(args) == 2:
        func(*map(_stand_in, args), **kwargs)  # torch's own errors
        return _searchsorted(*(args if name == "searchsorted" else args[::-1]), **kwargs)
    if name in ("argmax", "argmin") and (_is_race(args[0]) or _is_alone(*args, **kwargs)):
        return _winners(name == "argmax", *args, **kwargs)
    if name in _REMAINDERS.split() and len(args) == 2:
        return _remainders(func, *args)
    if name == "__int__" and args[0].numel() == 1:
        return args[0].numbers.flat[0].mapped(int).value()
    if _branch_on_those([*args, *kwargs.values()], _is_whole):
        return func(*args, **kwargs)
    if name in ("argmax", "argmin"):
        raise only_a_race(name, "random")
    if name == "__float__":
        raise NotEnumerableError(
            "the sampler turns a random number into a float, which is not followed here; use its item()"
        )
    raise NotEnumerableError(
        f"the sampler applies {name} to random numbers, which is not followed; compare them"
    )


def unwrapped(func: Any, args: Any, kwargs: Any) -> Any:
    """Run a torch function on the memory of random tensors.  Only shape and dtype of the result are right."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _random(args: Sequence[Any]) -> list[RandomTensor]:
    return [arg for arg in args if isinstance(arg, RandomTensor)]


def _flat(args: Sequence[Any]) -> list[Any]:
    return [part for arg in args for part in (arg if isinstance(arg, (tuple, list)) else [arg])]


def _is_picked(random: RandomTensor) -> bool:
    return any(isinstance(number, ArgmaxWinner) for number in random.numbers.flat)


def _is_whole(random: RandomTensor) -> bool:
    return not _dtype(random).is_floating_point or _all_whole(random)


def _all_whole(random: RandomTensor) -> bool:
    return all(isinstance(number, Number) and number.form == WHOLE for number in random.numbers.flat)


def branch_on_values(random: RandomTensor) -> None:
    """Run the races of a tensor and branch on its integers.  The tensor becomes an ordinary one."""
    values = [
        number.decide()
        if isinstance(number, ArgmaxWinner)
        else number.value()
        if isinstance(number, Number)
        else number
        for number in random.numbers.flat
    ]
    plain: Any = random
    plain.__class__ = torch.Tensor
    plain.copy_(torch.tensor(values, dtype=plain.dtype).reshape(plain.shape))


def _branch_on_those(args: Sequence[Any], which: Callable[[RandomTensor], bool]) -> bool:
    found = [random for random in _random(args) if which(random)]
    for random in found:
        branch_on_values(random)
    return bool(found)


def _chosen(condition: torch.Tensor, first: Any, second: Any) -> torch.Tensor:
    """``torch.where``, entry by entry.  We run only the races of the condition."""
    if isinstance(condition, RandomTensor):
        branch_on_values(condition)
    dtype = torch.where(condition, _stand_in(first), _stand_in(second)).dtype
    parts = [_entries(part, dtype) for part in (first, second)]
    return _settled_if_known(random_tensor(np.where(condition.numpy(), *parts), dtype))


def _joined(func: Any, tensors: Sequence[torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
    """Join the entries as the function joins tensors of their positions."""
    dtype = func([torch.ones(1, dtype=_dtype(tensor)) for tensor in tensors]).dtype
    entries = [_entries(tensor, dtype) for tensor in tensors]
    starts = np.cumsum([0, *(part.size for part in entries)])
    places = [
        torch.arange(start, start + part.size).reshape(part.shape)
        for start, part in zip(starts.tolist(), entries, strict=False)
    ]
    joined = func(places, *args, **kwargs)
    numbers = np.empty(tuple(joined.shape), dtype=object)
    numbers[...] = np.concatenate([part.ravel() for part in entries])[joined.numpy()]
    return _settled_if_known(random_tensor(numbers, dtype))


def _in_place(target: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Write a result into the target of an operation in place, and return the target."""
    if not isinstance(target, RandomTensor) and not isinstance(result, RandomTensor):
        return target.copy_(result)
    if result.shape != target.shape or _dtype(result) != _dtype(target):
        raise NotEnumerableError("the sampler computes in place with random numbers of another shape or type")
    return become_random(target, _entries(result))


def _remainders(func: Any, random: Any, divisor: Any) -> torch.Tensor:
    """The remainders of integers.  A run branches on them."""
    if not isinstance(random, RandomTensor) or not _all_whole(random) or isinstance(divisor, RandomTensor):
        raise NotEnumerableError(
            f"the sampler applies {func.__name__} to random numbers, which is not followed"
        )
    if func.__name__ == "fmod" and any(number.sources[0].grid.value(0) < 0 for number in random.numbers.flat):
        raise NotEnumerableError("the sampler applies fmod to negative random numbers, which is not followed")
    divisors = _entries(divisor)
    shape = torch.broadcast_shapes(random.numbers.shape, divisors.shape)
    numbers, divisors = (np.broadcast_to(part, shape) for part in (random.numbers, divisors))
    rests = [
        number.sources[0].remainder(int(by)) for number, by in zip(numbers.flat, divisors.flat, strict=True)
    ]
    if random.is_python:
        return rests[0]
    return torch.tensor(rests, dtype=_dtype(random)).reshape(shape)


def _stored(target: torch.Tensor, key: Any, value: Any) -> None:
    """``target[key] = value``.  Entries of the target become random if the value's entries are random."""
    _branch_on_those(_flat([key]), lambda index: _is_picked(index) or _is_whole(index))
    if _random(_flat([key])):
        raise NotEnumerableError("the sampler uses random numbers as an index of __setitem__")
    numbers, values = _entries(target), _entries(value, _dtype(target))
    stored = torch.full(tuple(target.shape), -1)
    stored[key] = torch.arange(values.size).reshape(values.shape)  # torch says which value goes where
    is_new = (stored >= 0).numpy()
    numbers[is_new] = values.ravel()[stored.numpy()[is_new]]
    become_random(target, numbers)


def _entries(part: Any, dtype: torch.dtype | None = None) -> np.ndarray:
    """The entries of a tensor or number, converted to a dtype."""
    if isinstance(part, RandomTensor):
        held = dtype in (None, _dtype(part)) or (dtype in REAL and _dtype(part) in REAL)
        if held or _is_picked(part):
            return part.numbers.copy()
        return _entries(random_tensor(part.numbers, _dtype(part)).to(dtype))
    tensor = torch.as_tensor(part)
    return np.array(tensor.tolist(), dtype=object).reshape(tensor.shape)


def _settled_if_known(random: RandomTensor) -> torch.Tensor:
    """Make a tensor ordinary if none of its entries is random, and return it."""
    if not _has_random(random):
        branch_on_values(random)
    return random


def _has_random(tensor: Any) -> bool:
    # Kernels leave more kinds in memory than this module knows.
    return not all(isinstance(number, (int, float, complex)) for number in tensor.numbers.flat)


def _rearranged(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Move the numbers as the function moves the entries of a tensor of their positions."""
    random = args[0]
    if _random(_flat(args[1:])):
        raise NotEnumerableError(f"the sampler uses random numbers as an index of {func.__name__}")
    if any(isinstance(arg, torch.dtype) for arg in [*args[1:], *kwargs.values()]):
        raise NotEnumerableError(f"the sampler takes the bits of random numbers by {func.__name__}")
    whole, step = random.numbers, random.numbers.itemsize
    strides = [stride // step for stride in whole.strides]
    last = sum((size - 1) * stride for size, stride in zip(whole.shape, strides, strict=True))
    memory = as_strided(whole, (last + 1 if whole.size else 0,), (step,))
    places = torch.arange(len(memory)).as_strided(whole.shape, strides)
    moved = func(places, *args[1:], **kwargs)
    dtype = unwrapped(torch.result_type, (random, random), {})

    def at(chosen: torch.Tensor) -> torch.Tensor:
        is_shared = chosen.untyped_storage().data_ptr() == places.untyped_storage().data_ptr()
        numbers = np.empty(tuple(chosen.shape), dtype=object)
        if is_shared:
            in_memory = [stride * step for stride in chosen.stride()]
            numbers = as_strided(memory[chosen.storage_offset() :], tuple(chosen.shape), in_memory)
        else:
            numbers[...] = memory[chosen.numpy()]
        part = _random_from(tuple(chosen.shape), dtype, numbers, random.is_python)
        if is_shared:
            _relate(random, part)
        return _settled_if_known(part)

    return at(moved) if isinstance(moved, torch.Tensor) else tuple(at(part) for part in moved)


def _python_numbers(random: RandomTensor) -> Any:
    if not isinstance(random, RandomTensor):
        return random.tolist()
    if random.numbers.ndim == 0:
        return random_tensor(random.numbers.copy(), torch.float64, is_python=True)
    return [_python_numbers(part) for part in _rearranged(torch.unbind, (random,), {})]


def _entrywise(
    func: Any, args: Any, kwargs: Any, combine: Callable[[Sequence[Any], torch.dtype], Any]
) -> tuple[np.ndarray, torch.dtype, bool]:
    """Return the numbers of ``func(*args)``, their dtype, and whether they are Python numbers.

    The shape and the dtype are as torch computes them for ordinary tensors.

    Args:
        combine: (one entry of every argument, dtype of the result) -> the entry of the result.
    """
    if any(isinstance(arg, torch.Tensor) for arg in kwargs.values()):
        raise NotEnumerableError(f"the sampler hands {func.__name__} a tensor by name; hand it by position")

    python = _all_python(args)
    like = torch.tensor(0.5).double() if python else func(*map(_stand_in, args), **kwargs)
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


def _stand_in(arg: Any) -> Any:
    if not isinstance(arg, RandomTensor):
        return arg
    return 0.5 if arg.is_python else torch.ones(arg.numbers.shape, dtype=_dtype(arg))


def _dtype(tensor: torch.Tensor) -> torch.dtype:
    return unwrapped(torch.Tensor.dtype.__get__, (tensor,), {})  # type: ignore[attr-defined]


def _all_python(args: Sequence[Any]) -> bool:
    """Whether torch sees no argument as a tensor.  Then Python computes, in float64."""
    return all(not isinstance(arg, torch.Tensor) or getattr(arg, "is_python", False) for arg in args)


def _combining(func: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Sequence[Any], Any], Number]:
    """Build ``func`` of one entry of every argument, with torch's own type conversions."""
    python = _all_python(args)
    kinds = [_kind_of(arg, python) for arg in args]
    name = func.__name__
    clamps = name.startswith("cl")
    operation = "clamp" if clamps else _CLOCK_OPERATIONS.get(name, name)

    def function(*values: Any) -> Any:
        return func(*values, **kwargs).reshape(())

    def combine(entries: Sequence[Any], dtype: torch.dtype) -> Number:
        # A constant is converted once, not at every one of the many evaluations.
        parts = [
            entry.mapped(kind) if isinstance(entry, Number) else kind(entry)
            for entry, kind in zip(entries, kinds, strict=True)
        ]
        if name in _CONVERSIONS.split() and _holds(entries[0], dtype):
            return replace(entries[0], function=Number.combined(name, parts, function).function)
        number = Number.combined(name, parts, function)
        _check_monotone(operation, parts[::-1] if name in _REVERSED.split() else parts, number, dtype)
        if dtype not in REAL or (kwargs and not clamps):
            return followed_on(f"{name} {' '.join(kwargs) or f'in {dtype}'}", entries, number)
        if clamps:
            return followed_on(operation, entries, number, _bounds(name, entries, kwargs))
        return followed_on(operation, entries[::-1] if name in _REVERSED.split() else entries, number)

    return combine


def _holds(number: Any, dtype: torch.dtype) -> bool:
    """Whether a dtype holds an integer exactly, or any other number as a real number."""
    if isinstance(number, Number) and number.form == WHOLE:
        source = number.sources[0].grid
        limit = 2**63 if dtype == torch.int64 else 2 / torch.finfo(dtype).eps if dtype in REAL else 0
        return max(abs(source.value(0)), abs(source.value(source.atoms - 1))) <= limit
    return isinstance(number, Number) and dtype in REAL


def _check_monotone(operation: str, parts: Sequence[Any], number: Number, dtype: torch.dtype) -> None:
    """Refuse a quotient whose divisor can change its sign, NaN, and casts that wrap around."""
    divisor = parts[-1]
    divides = isinstance(divisor, Number) and operation in _DIVISIONS.split()
    if divides and len({math.copysign(1, value) for value in divisor.ends()}) > 1:
        raise NotEnumerableError(
            "the sampler divides by a random number that may be positive or negative, which is not followed"
        )
    if operation in _WITHIN_A_DOMAIN.split() and any(map(math.isnan, number.ends())):
        raise NotEnumerableError(
            f"the sampler takes {operation} of random numbers for some of which it is not a number, which is "
            "not followed"
        )
    if operation in _CASTS.split() and not dtype.is_floating_point:
        limits = torch.iinfo(dtype) if dtype != torch.bool else None
        ends = parts[0].ends() if isinstance(parts[0], Number) else []
        if limits is None or not all(limits.min - 1 < value < limits.max + 1 for value in ends):
            raise NotEnumerableError(
                f"the sampler turns random numbers into {dtype}, which does not hold all of their values"
            )


def _bounds(name: str, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any]:
    if name == "clamp_max":
        return None, args[1] if len(args) > 1 else kwargs["max"]
    low = args[1] if len(args) > 1 else kwargs.get("min")
    return low, args[2] if len(args) > 2 else kwargs.get("max")


def _kind_of(arg: Any, python: bool) -> Callable[[Any], Any]:
    """Build the conversion of a value to the kind of the argument ``arg``.

    A scalar stays a scalar, and a tensor becomes a tensor of one entry, so torch converts types as usual.
    """
    if not isinstance(arg, torch.Tensor):
        return lambda value: _float64(value) if python and isinstance(value, float) else value
    if getattr(arg, "is_python", False):
        return lambda value: _float64(float(value)) if python else float(value)
    dtype = _dtype(arg)
    shape = () if unwrapped(torch.Tensor.dim, (arg,), {}) == 0 else (1,)
    return lambda value: torch.as_tensor(value, dtype=dtype).reshape(shape)


def _float64(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def _decisions(numbers: np.ndarray) -> torch.Tensor:
    truths = [number.decide() for number in numbers.ravel()]
    return torch.tensor(truths, dtype=torch.bool).reshape(numbers.shape)


def _cumulative(combine: Any, random: RandomTensor, dim: int) -> RandomTensor:
    """Combine one entry after the other along an axis, as torch's loop on a CPU does."""
    parts = list(_rearranged(torch.unbind, (random, dim), {}))
    for number in range(1, len(parts)):
        parts[number] = combine(parts[number - 1], parts[number])
    stacked = np.stack([part.numbers for part in parts], axis=dim)
    return random_tensor(stacked, _dtype(random))


def _searchsorted(
    edges: torch.Tensor, values: Any, *, right: bool = False, side: str = "left", **options: Any
) -> torch.Tensor:
    """Count the edges below each value, or with ``right`` those at most equal to it.  Edges are sorted."""
    if isinstance(edges, RandomTensor) or options:
        raise NotEnumerableError("the sampler calls searchsorted in a form that is not followed")
    if not bool((edges[..., 1:] >= edges[..., :-1]).all()):
        raise NotEnumerableError("the sampler calls searchsorted with edges that are not sorted")
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
    """Apply a function to clocks (exponential numbers divided by weights, or their logarithms) and races."""
    if name in ("argmax", "argmin") and len(args) + len(kwargs) <= 3:
        return _winners(name == "argmax", *args, **kwargs)
    if not kwargs and name in (*_SINGLE_VALUES.split(), *_EQUALITIES.split()):
        return _about_single_values(name, func, args)
    if kwargs or name not in _CLOCK_OPERATIONS:
        raise only_a_race(name)

    kinds = [_kind_of(arg, _all_python(args)) for arg in args]

    def combine(entries: Sequence[Any], dtype: torch.dtype) -> Any:
        if not any(isinstance(entry, (Number, ExponentialDraw)) for entry in entries):  # an ordinary row
            known = func(*(kind(entry) for kind, entry in zip(kinds, entries, strict=True)))
            return known.reshape(()).item()
        if any(isinstance(entry, Number) for entry in entries):
            raise NotEnumerableError(
                f"the sampler applies {name} to an exponential and another random number"
            )
        operands = [
            float(torch.tensor(entry, dtype=dtype)) if isinstance(entry, (int, float)) else entry
            for entry in entries
        ]
        in_order = operands[::-1] if name in _REVERSED.split() else operands
        return clock_after(_CLOCK_OPERATIONS[name], *in_order)

    return random_tensor(*_entrywise(func, args, kwargs, combine))


def _about_single_values(name: str, func: Any, args: tuple[Any, ...]) -> torch.Tensor:
    """Decide which clocks are infinite, NaN, or equal to other entries."""
    kinds = [_kind_of(arg, python=False) for arg in args]

    def answer(entries: Sequence[Any], dtype: torch.dtype) -> bool:
        clocks = list(map(as_clock, entries))
        if any(isinstance(clock, Number) for clock in clocks):
            raise only_a_race(name)
        values = [value_of(clock) for clock in clocks]
        if None in values and len(values) == 2:
            return are_equal(*clocks) is ("eq" in name)
        return bool(func(*(kind(1.0 if x is None else x) for kind, x in zip(kinds, values, strict=True))))

    return torch.tensor(_entrywise(func, args, {}, answer)[0].tolist(), dtype=torch.bool)


def _is_alone(random: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> bool:
    """Whether a reduction has only one entry, so that nothing is compared."""
    return (random.numel() if dim is None else random.shape[dim]) == 1


def _winner(row: list[Any], largest: bool) -> Any:
    if len(row) == 1:
        return 0
    if not any(isinstance(entry, (ExponentialDraw, Number, ArgmaxWinner)) for entry in row):
        known = torch.tensor(row, dtype=torch.float64)
        return int(known.argmax() if largest else known.argmin())
    return ArgmaxWinner(Race(clocks_of_row(row, largest), largest))


def _is_race(random: Any) -> bool:
    return isinstance(random, RandomTensor) and any(
        isinstance(number, Number) and number.clock is not None for number in random.numbers.flat
    )


def _winners(largest: bool, random: RandomTensor, dim: int | None = None, keepdim: bool = False) -> Any:
    rows = np.moveaxis(random.numbers, dim, -1) if dim is not None else random.numbers.ravel()
    found = np.empty(rows.shape[:-1], dtype=object)
    for place in np.ndindex(found.shape):
        found[place] = _winner(list(rows[place]), largest)
    chosen = _settled_if_known(random_tensor(found, torch.int64))
    return chosen.unsqueeze(dim) if keepdim and dim is not None else chosen

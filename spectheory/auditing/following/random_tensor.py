"""Tensors of random numbers that we follow without drawing: torch functions act on their laws.

A sampler may reshape, join, index and compare a ``RandomTensor``, and apply monotone elementwise functions.
``Number.decide`` decides every comparison.  We refuse any other torch function, and name it.  The winners of
races are integers.  We run a race when the sampler needs more than the position of its winner.  A run
branches on an integer when the sampler needs more than a comparison.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from spectheory.auditing.following.names import Names, names_of
from spectheory.auditing.following.operations import (
    COMPARISONS,
    RANDOM,
    applied,
    compared,
    converted,
    value_at_once,
    winner,
)
from spectheory.auditing.following.torch_functions import (
    CASTS,
    DRAWS,
    JOINS,
    METADATA,
    MOVES,
    OPERATIONS,
    QUESTIONS,
    REAL,
    REVERSED,
    STORES,
    TOKENS,
    all_python,
    bounds_of,
    cumulative,
    dtype_of,
    kind_of,
    searchsorted,
    unwrapped,
)
from spectheory.auditing.tape.atoms import Number, quietly
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.races import ArgmaxWinner, ExponentialDraw, only_a_race


class RandomTensor(torch.Tensor):
    """A tensor with random numbers that are not drawn.  Its memory has their ``names``.

    Attributes:
        is_python: whether the tensor represents a Python number, which does not change the dtype of others.
    """

    is_python: bool = False
    __array_ufunc__ = None  # a numpy number leaves the comparison to this class

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in DRAWS:
            return unwrapped(func, args, kwargs or {})
        with _disable_current_modes():
            return _apply(func, args, kwargs or {})


def random_tensor(numbers: Any, dtype: torch.dtype, is_python: bool = False) -> Any:
    """Make a tensor of entries, or of one entry.  It is an ordinary one if no entry is random."""
    numbers = np.asarray(numbers, dtype=object)
    with quietly():
        made: Any = torch.empty(numbers.shape, dtype=dtype)
    write(made, numbers)
    if is_python and isinstance(made, RandomTensor):
        made.is_python = True
    return made


def write(tensor: torch.Tensor, numbers: np.ndarray) -> torch.Tensor:
    """Write entries into a tensor, in place, and return it."""
    flat = list(np.broadcast_to(numbers, tuple(tensor.shape)).flat)
    random = [place for place, entry in enumerate(flat) if isinstance(entry, RANDOM)]
    with quietly():
        values = [0 if isinstance(entry, RANDOM) else entry for entry in flat]
        tensor.detach().copy_(torch.tensor(values, dtype=tensor.dtype).reshape(tensor.shape))
        if random:
            names, memory = _memory(tensor)
            is_random = np.zeros(memory.shape, dtype=bool)
            is_random.flat[random] = True
            memory[is_random] = names.new(len(random), lambda place: flat[random[place]])
    return follow(tensor) if random else tensor


_CHANGED: list[torch.Tensor] = []
"""The sampler's tensors that became random in this run."""


def follow(tensor: Any) -> Any:
    """Make a tensor with random numbers, and the tensor that it is a part of, of this class."""
    with quietly():
        for each in (tensor, tensor._base):
            if type(each) is torch.Tensor and _indices(tensor).any():
                each.__class__ = RandomTensor
                _CHANGED.append(each)
    return tensor


def made_ordinary() -> None:
    """Make the sampler's tensors ordinary after a run, because it may keep them for the next one."""
    for tensor in _CHANGED:
        tensor.__class__ = torch.Tensor
    _CHANGED.clear()


def plain(arg: Any) -> Any:
    """A random tensor as an ordinary one with the same memory; other arguments unchanged."""
    if type(arg) in (tuple, list):
        return type(arg)(map(plain, arg))
    if not isinstance(arg, RandomTensor):
        return arg
    with quietly():
        return arg.as_subclass(torch.Tensor)


def _memory(tensor: torch.Tensor) -> tuple[Names, np.ndarray]:
    """The names in the memory of a tensor's type, and the memory as integers."""
    names = names_of(tensor.dtype)
    if names is None:
        raise NotEnumerableError(f"random numbers of {tensor.dtype} are not followed")
    return names, tensor.detach().view(getattr(torch, names.integers.__name__)).numpy()


def _indices(tensor: torch.Tensor) -> np.ndarray:
    """The indices of the names of a tensor's entries, 0 for ordinary ones.  Without torch's functions."""
    if names_of(tensor.dtype) is None or not tensor.numel():
        return np.zeros(tuple(tensor.shape), dtype=np.int64)
    names, memory = _memory(tensor)
    return names.indices(memory)


def entries(part: Any) -> np.ndarray:
    """The entries of a tensor or number, as an object array."""
    with quietly():
        tensor = torch.as_tensor(part)
        found = np.array(tensor.tolist(), dtype=object).reshape(tuple(tensor.shape))
        indices, names = _indices(tensor), names_of(tensor.dtype)
    for place in map(tuple, np.argwhere(indices)):
        assert names is not None
        found[place] = names[int(indices[place])]
    return found


def _apply(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__
    if name in METADATA:
        return unwrapped(func, args, kwargs)
    if name in ("__eq__", "__ne__") and args[1] is None:
        return name == "__ne__"
    random = [part for part in _flat([*args, *kwargs.values()]) if _is_random(part)]
    if not random:
        return func(*args, **kwargs)
    if name in MOVES or name in JOINS or name in STORES or (name == "where" and len(args) == 3):
        return _moved(name, func, args, kwargs)
    if name.endswith("_") and not name.startswith("_") and callable(getattr(torch.Tensor, name[:-1], None)):
        return _in_place(args[0], getattr(torch.Tensor, name[:-1])(*args, **kwargs))
    if name in CASTS and len(random) == 1 and random[0] is args[0]:
        return _cast(func, args, kwargs)
    if _branch_on_those(random, _is_winner):
        return func(*args, **kwargs)
    if name in ("item", "tolist") and len(args) == 1:
        return _python_numbers(entries(args[0]).reshape(()) if name == "item" else entries(args[0]))
    if name in OPERATIONS:
        return _entrywise(name, func, args, kwargs)
    if name in ("cumprod", "cumsum"):
        return cumulative(torch.mul if name == "cumprod" else torch.add, *args, **kwargs)
    if name in ("searchsorted", "bucketize") and len(args) == 2:
        func(*map(_stand_in, args), **kwargs)  # torch's own errors
        return searchsorted(*(args if name == "searchsorted" else args[::-1]), **kwargs)
    if name == "__int__" and isinstance(number := entries(args[0]).item(), Number):
        return number.mapped(int).value()
    if _branch_on_those(random, _is_whole):
        return func(*args, **kwargs)
    if name in ("argmax", "argmin") and len(args) + len(kwargs) <= 3:
        return _winners(name == "argmax", *args, **kwargs)
    if any(_has(part, ExponentialDraw) for part in random):
        raise only_a_race(name)
    raise NotEnumerableError(
        f"the sampler applies {name} to random numbers, which is not followed; compare them"
    )


def _flat(args: Sequence[Any]) -> list[Any]:
    return [part for arg in args for part in (arg if isinstance(arg, (tuple, list)) else [arg])]


def _is_random(part: Any) -> bool:
    """Whether a tensor has random numbers.  If it has none any more, it becomes an ordinary one."""
    if not isinstance(part, RandomTensor):
        return False
    with quietly():
        if not _indices(part).any():
            part.__class__ = torch.Tensor  # type: ignore[assignment]
    return isinstance(part, RandomTensor)


def _has(random: RandomTensor, kind: type[Any]) -> bool:
    return any(isinstance(entry, kind) for entry in entries(random).flat)


def _is_winner(random: RandomTensor) -> bool:
    return _has(random, ArgmaxWinner)


def _is_whole(random: RandomTensor) -> bool:
    return not dtype_of(random).is_floating_point


def _branch_on_those(parts: Sequence[Any], which: Callable[[RandomTensor], bool]) -> bool:
    """Run the races of tensors and branch on their integers.  The tensors become ordinary ones."""
    found = [part for part in parts if _is_random(part) and which(part)]
    for random in found:
        values = [value_at_once(entry) for entry in entries(random).flat]
        write(random, np.array(values, dtype=object).reshape(tuple(random.shape)))
        random.__class__ = torch.Tensor
    return bool(found)


def _moved(name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Move names, as the function moves the entries of any tensor."""
    if name in JOINS:
        dtype = func([torch.ones(1, dtype=dtype_of(part)) for part in args[0]]).dtype
        places, args = args[1:], ([_of_type(part, dtype) for part in args[0]], *args[1:])
    elif name == "where":
        condition, *data = args if func is torch.where else (args[1], args[0], args[2])
        _branch_on_those([condition], lambda _: True)
        yes, no = map(_stand_in, data)
        dtype = torch.where(condition, yes, no).dtype
        func, places, args = torch.where, (), (condition, *(_of_type(part, dtype) for part in data))
    elif name in STORES:
        args = (args[0], *args[1:-1], _of_type(args[-1], dtype_of(args[0])))
        places = args[1:-1]
    else:
        places = args[1:]
    _branch_on_those(_flat(places), lambda index: _is_winner(index) or _is_whole(index))
    if any(map(_is_random, _flat([*places, *kwargs.values()]))):
        raise NotEnumerableError(f"the sampler uses random numbers as an index of {name}")
    if any(isinstance(arg, torch.dtype) for arg in [*args[1:], *kwargs.values()]):
        raise NotEnumerableError(f"the sampler takes the bits of random numbers by {name}")
    moved = func(*map(plain, args), **kwargs)
    if moved is None or name == "copy_":
        follow(args[0])
        return args[0] if name == "copy_" else None
    return follow(moved) if isinstance(moved, torch.Tensor) else tuple(map(follow, moved))


def _of_type(part: Any, dtype: torch.dtype) -> Any:
    """A tensor or number that is stored in a tensor of a type."""
    if not _is_random(part) or (dtype_of(part) == dtype and not part.is_python):
        return part
    random = random_tensor(entries(part), dtype_of(part))
    return random if dtype_of(part) == dtype else _cast(torch.Tensor.to, (random, dtype), {})


def _in_place(target: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Write a result into the target of an operation in place, and return the target."""
    if result.shape != target.shape or dtype_of(result) != dtype_of(target):
        raise NotEnumerableError("the sampler computes in place with random numbers of another shape or type")
    with quietly():
        target.copy_(result)
    return follow(target)


def _cast(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Convert a tensor.  The winner of a race stays undecided, because a kernel may never read it."""
    random, dtype = args[0], unwrapped(func, args, kwargs).dtype
    if dtype == dtype_of(random):
        return random
    if dtype not in TOKENS and _branch_on_those([random], _is_winner):
        return func(*args, **kwargs)
    kind, name = kind_of(random, all_python(args)), func.__name__

    def function(value: Any) -> Any:
        return func(value, *args[1:], **kwargs).reshape(())

    def cast(entry: Any) -> Any:
        if isinstance(entry, ArgmaxWinner) or (isinstance(entry, ExponentialDraw) and dtype in REAL):
            return entry
        if not isinstance(entry, RANDOM):
            return function(kind(entry)).item()
        number = applied(f"{name} in {dtype}", [entry], function, [kind])
        if isinstance(entry, Number) and dtype in REAL:
            return replace(entry, function=number.function)
        if isinstance(entry, Number) and not dtype.is_floating_point:
            limits = torch.iinfo(dtype) if dtype != torch.bool else None
            if limits is None or not all(limits.min - 1 < end < limits.max + 1 for end in entry.ends()):
                raise NotEnumerableError(
                    f"the sampler turns random numbers into {dtype}, which does not hold all of their values"
                )
        return number

    return random_tensor(np.frompyfunc(cast, 1, 1)(entries(random)), dtype)


def _python_numbers(found: np.ndarray) -> Any:
    def number(entry: Any) -> Any:
        is_random = isinstance(entry, RANDOM)
        return random_tensor(entry, torch.float64, is_python=True) if is_random else entry

    numbers = np.frompyfunc(number, 1, 1)(found)
    return numbers.tolist() if found.ndim else numbers


def _entrywise(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """Apply an operation entry by entry.  Shape and dtype are as torch computes them for ordinary tensors."""
    if any(isinstance(arg, torch.Tensor) for arg in kwargs.values()):
        raise NotEnumerableError(f"the sampler hands {name} a tensor by name; hand it by position")
    python = all_python(args)
    like = torch.tensor(0.5).double() if python else func(*map(_stand_in, args), **kwargs)
    if like is NotImplemented:
        return like
    kinds = [kind_of(arg, python) for arg in args]
    spread = [
        np.broadcast_to(entries(arg), like.shape) if isinstance(arg, torch.Tensor) else arg for arg in args
    ]
    operation, dtype = OPERATIONS[name], like.dtype
    if operation in COMPARISONS or name in QUESTIONS:
        halves = {"less": torch.lt, "less_equal": torch.le} if "equal" in operation else {}

        def combine(row: Sequence[Any]) -> Any:
            return compared(operation, row, lambda half: func if half == operation else halves[half], kinds)

    else:
        clamps, order = operation == "clamp", -1 if name in REVERSED else 1
        if python is False and (dtype not in REAL or (kwargs and not clamps)):
            operation = f"{name} {' '.join(kwargs) or f'in {dtype}'}"

        def function(*values: Any) -> Any:
            return func(*values[::order], **kwargs).reshape(())

        def combine(row: Sequence[Any]) -> Any:
            if any(isinstance(entry, ExponentialDraw) for entry in row):
                row = [torch.tensor(e, dtype=dtype).item() if isinstance(e, (int, float)) else e for e in row]
            bounds = bounds_of(name, row, kwargs) if clamps else ()
            return applied(operation, row[::order], function, kinds[::order], bounds)

    found = np.empty(tuple(like.shape), dtype=object)
    for place in np.ndindex(found.shape):
        row = [part[place] if isinstance(part, np.ndarray) else part for part in spread]
        if any(isinstance(entry, RANDOM) for entry in row):
            found[place] = combine(row)
        else:
            found[place] = func(*converted(row, kinds), **kwargs).reshape(()).item()
    if operation in COMPARISONS or name in QUESTIONS:
        return torch.tensor(found.tolist(), dtype=torch.bool)
    return random_tensor(found, dtype, python)


def _stand_in(arg: Any) -> Any:
    if not isinstance(arg, RandomTensor):
        return arg
    return 0.5 if arg.is_python else torch.ones(tuple(arg.shape), dtype=dtype_of(arg))


def _winners(largest: bool, random: RandomTensor, dim: int | None = None, keepdim: bool = False) -> Any:
    found = entries(random)
    rows = found.ravel() if dim is None else np.moveaxis(found, dim, -1)
    winners = np.empty(rows.shape[:-1], dtype=object)
    for place in np.ndindex(winners.shape):
        winners[place] = winner(list(rows[place]), largest)
    chosen = random_tensor(winners, torch.int64)
    return chosen.unsqueeze(dim) if keepdim and dim is not None else chosen

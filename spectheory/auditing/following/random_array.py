"""Numpy arrays of random numbers that we follow without drawing, for Triton's interpreter.

A ``RandomArray`` is an array of which some entries (lanes) are names of random numbers.  ``random_tensor``
does the same for torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from spectheory.auditing.following.names import names_of
from spectheory.auditing.following.operations import (
    COMPARISONS,
    RANDOM,
    WinningValue,
    applied,
    compared,
)
from spectheory.auditing.tape.atoms import Number
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.logarithms import clocks_of_row
from spectheory.auditing.tape.races import ArgmaxWinner, ExponentialDraw, Race, lower_end, only_a_race


class RandomArray(np.ndarray):
    """An array with some random lanes."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> np.ndarray:
        if method != "__call__" or kwargs:
            raise NotEnumerableError(f"the sampler applies {ufunc.__name__}.{method} to random numbers")
        return _lanewise(ufunc, inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _REDUCTIONS:
            return _REDUCTIONS[func](*args, **kwargs)
        if func is np.where:
            return _where(*args)
        if func in _MOVES:
            return followed(func(*map(_plain, args), **kwargs))
        raise NotEnumerableError(f"the sampler applies {func.__name__} to random numbers")

    def astype(self, dtype: Any, **options: Any) -> Any:  # type: ignore[override]
        kind = np.dtype(dtype)

        def converted(entry: Any) -> Any:
            if isinstance(entry, ExponentialDraw) and kind not in (np.float32, np.float64):
                raise only_a_race(f"a conversion to {kind}")
            return entry.mapped(kind.type) if isinstance(entry, Number) else entry

        return self if kind == self.dtype else _changed(self, _plain(self).astype(kind), converted)

    def __getitem__(self, key: Any) -> Any:
        return followed(np.asarray(_plain(self)[key]))

    def item(self, *place: Any) -> Any:
        """The value of an entry.  For the winner of a race, run the race first."""
        return settled(self).item(*place)

    def __int__(self) -> int:
        return int(self.item())

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())


def random_array(memory: np.ndarray, is_random: Any, make: Callable[[int], Any]) -> Any:
    """Give entries of an array new random numbers.

    Args:
        memory: the array, whose other entries stay.
        is_random: which entries are random.
        make: flat index of an entry -> its number, made when it is first read.
    """
    names = names_of(memory.dtype)
    lanes = np.flatnonzero(np.broadcast_to(is_random, memory.shape))
    if names is None or not len(lanes):
        if len(lanes):
            raise NotEnumerableError(f"random numbers of {memory.dtype} are not followed")
        return memory
    array = np.array(memory)
    new = names.new(len(lanes), lambda place: make(int(lanes[place])))
    array.view(names.integers).reshape(-1)[lanes] = new
    return array.view(RandomArray)


def followed(array: Any) -> Any:
    """An array as a ``RandomArray`` if it has names."""
    plain = _plain(array)
    return plain.view(RandomArray) if indices(plain).any() else array


def as_scalars(array: np.ndarray) -> Any:
    """Memory that was loaded, whose numbers may be torch's, as numbers of numpy's arithmetic."""
    kind = array.dtype.type

    def converted(entry: Any) -> Any:
        return entry.mapped(lambda value: kind(float(value))) if isinstance(entry, Number) else entry

    return _changed(array, array, converted)


def _changed(array: np.ndarray, memory: np.ndarray, change: Callable[[Any], Any]) -> Any:
    """The array ``memory`` with the random numbers of ``array``, each of them changed when it is read."""
    found, names = indices(array), names_of(array.dtype)

    def made(lane: int) -> Any:
        assert names is not None
        return change(names[int(found.flat[lane])])

    return random_array(memory, found > 0, made)


def indices(array: Any) -> np.ndarray:
    """The indices of the names of an array's lanes; 0 for ordinary ones."""
    plain = np.asarray(array)
    names = names_of(plain.dtype)
    return np.zeros(plain.shape, np.int64) if names is None else names.indices(plain.view(names.integers))


def lanes_of(array: Any) -> Mapping[int, Any]:
    """Flat index -> random number."""
    names, found = names_of(np.asarray(array).dtype), indices(array).ravel()
    return {lane: names[int(found[lane])] for lane in np.flatnonzero(found).tolist()}  # type: ignore[index]


def settled(array: np.ndarray) -> np.ndarray:
    """The array as an ordinary one.  If lanes are winners of races, run these races."""
    memory = _plain(array).copy()
    for lane, entry in lanes_of(array).items() if isinstance(array, RandomArray) else ():
        if not isinstance(entry, ArgmaxWinner):
            raise NotEnumerableError("the sampler uses a random number where a number is needed at once")
        memory.flat[lane] = entry.decide()
    return memory


def _plain(part: Any) -> Any:
    return np.asarray(part) if isinstance(part, RandomArray) else part


_MONOTONE = (
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.log, np.log2, np.exp, np.exp2, np.sqrt,
    np.log1p, np.minimum, np.maximum, np.fmin, np.fmax,
)  # fmt: skip


def _lanewise(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Apply a function in every lane, with numpy's own arithmetic on scalars of the same types."""
    plain = [np.asarray(part) for part in inputs]
    with np.errstate(all="ignore"):  # the memory of a random lane is meaningless
        result = np.asarray(ufunc(*plain))
    spread = [np.broadcast_to(part, result.shape).ravel() for part in plain]
    found = [
        np.broadcast_to(indices(part) if isinstance(part, RandomArray) else 0, result.shape).ravel()
        for part in inputs
    ]
    tables = [names_of(part.dtype) for part in plain]

    def entries(lane: int) -> list[Any]:
        return [
            table[int(index[lane])] if table is not None and index[lane] else part[lane]
            for table, index, part in zip(tables, found, spread, strict=True)
        ]

    def function(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            return ufunc(*values)

    def combined(lane: int) -> Any:
        row, operation, bounds = entries(lane), ufunc.__name__, list[Any]()
        if ufunc in (np.maximum, np.fmax):
            ordinary = [float(entry) for entry in row if not isinstance(entry, RANDOM)]
            operation, bounds = "clamp", [ordinary[0] if ordinary else None, None]
        if ufunc not in _MONOTONE and any(isinstance(entry, Number) for entry in row):
            raise NotEnumerableError(
                f"the sampler applies {operation} to random numbers, which is not followed"
            )
        return applied(operation, row, function, (), bounds)

    if ufunc.__name__ in COMPARISONS:
        _compare_all(ufunc.__name__, result, [*found, *spread], entries)
        return result
    is_random = np.any(np.stack(found), axis=0).reshape(result.shape)
    return random_array(result, is_random, combined)


def _compare_all(
    operation: str, result: np.ndarray, columns: Sequence[np.ndarray], entries: Callable[[int], list[Any]]
) -> None:
    """Decide a comparison in every random lane.  Decide lanes with the same question only once."""

    def functions(name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(np, name)
        return found

    lanes = np.flatnonzero(sum(columns[: len(columns) // 2]))
    bits = [
        part[lanes].astype(float).view(int) if part.dtype.kind == "f" else part[lanes] for part in columns
    ]
    _, firsts, questions = np.unique(np.stack(bits), axis=1, return_index=True, return_inverse=True)
    answers = [compared(operation, entries(int(lanes[first])), functions, ()) for first in firsts]
    result.flat[lanes] = np.array(answers)[questions.ravel()]


def _where(condition: Any, first: Any, second: Any) -> Any:
    if isinstance(condition, RandomArray):
        raise NotEnumerableError("the sampler uses a random number as a condition")
    kind = np.result_type(*(getattr(part, "dtype", part) for part in (first, second)))
    parts = [_plain(part.astype(kind)) if isinstance(part, RandomArray) else part for part in (first, second)]
    return followed(np.where(condition, *parts))


def _race(array: RandomArray, largest: bool, keepdims: bool) -> tuple[Race, Sequence[int]]:
    """Build the race of the lanes, and return it with the lanes that take part.

    NaN does not take part, as in ``nanargmax``.  Of equal ordinary numbers only the first takes part, because
    a block of a kernel has thousands of masked ones.
    """
    if keepdims or array.ndim != 1:
        raise only_a_race("a reduction", "random")
    row = np.nan_to_num(_plain(array), nan=-np.inf if largest else np.inf, posinf=np.inf, neginf=-np.inf)
    random = lanes_of(array)
    plain = np.flatnonzero(indices(array) == 0)
    firsts = plain[np.unique(row[plain], return_index=True)[1]]
    lanes = sorted({*random, *firsts.tolist()})
    entries = [random.get(lane, float(row[lane])) for lane in lanes]
    return Race(clocks_of_row(entries, largest), largest), lanes


def _winning_lane(array: RandomArray, axis: Any = None, keepdims: bool = False, *, largest: bool) -> Any:
    if array.size == 1:
        return np.zeros((), np.int32)
    race, lanes = _race(array, largest, keepdims)
    return random_array(np.zeros((), np.int32), True, lambda _: ArgmaxWinner(race, lanes.__getitem__))


def _winning_value(array: RandomArray, axis: Any = None, keepdims: bool = False, *, largest: bool) -> Any:
    if array.size == 1:
        return array.reshape(())
    race, _ = _race(array, largest, keepdims)
    low = lower_end(race.clocks)
    if not any(clock.rate for clock in race.clocks):
        return np.full((), low, array.dtype)
    return random_array(np.ones((), array.dtype), True, lambda _: WinningValue(race, low))


_REDUCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.nanargmax: partial(_winning_lane, largest=True),
    np.nanargmin: partial(_winning_lane, largest=False),
    np.nanmax: partial(_winning_value, largest=True),
    np.nanmin: partial(_winning_value, largest=False),
}
_MOVES = (np.broadcast_to, np.expand_dims, np.transpose, np.squeeze, np.copy)

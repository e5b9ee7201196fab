"""Numpy arrays of random numbers that we follow without drawing, for Triton's interpreter.

A ``RandomArray`` is an ordinary array with some random entries (lanes).  The memory of a lane is meaningless.
Each lane represents a ``Number``, an ``ExponentialDraw``, an ``ArgmaxWinner``, the ``WinningValue`` of a race
or a ``DerivedSeed``.  The module ``random_tensor`` does the same for torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.auditing.tape.atoms import Number, clocks_of_row, followed_on
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.races import (
    WINNER_EXPECTED,
    ArgmaxWinner,
    ExponentialDraw,
    Race,
    clock_after,
    lower_end,
    only_a_race,
)


@dataclass(frozen=True, eq=False)
class WinningValue:
    """The value that wins a race.  We know only that it exceeds ``low``: 0, or -inf if logarithms race."""

    race: Race
    low: float = 0.0


@dataclass(frozen=True)
class DerivedSeed:
    """A random number whose only permitted use is as the seed of other random numbers.

    Attributes:
        key: the function, its seed and its counter, which identify the number.
    """

    key: tuple[Any, ...]


class LaterLanes(Mapping[int, Any]):
    """Random lanes that are made when read.  Masked lanes, most of a kernel's block, are never read."""

    def __init__(self, lanes: Iterable[int], make: Callable[[int], Any]) -> None:
        self._lanes, self._make, self._made = dict.fromkeys(lanes), make, dict[int, Any]()

    def __getitem__(self, lane: int) -> Any:
        if lane not in self._made and lane in self._lanes:
            self._made[lane] = self._make(lane)
        return self._made[lane]

    def __iter__(self) -> Iterator[int]:
        return iter(self._lanes)

    def __contains__(self, lane: object) -> bool:
        return lane in self._lanes

    def __len__(self) -> int:
        return len(self._lanes)


class RandomArray(np.ndarray):
    """An array with some random lanes."""

    lanes: Mapping[int, Any]
    """Flat index -> the random number."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> np.ndarray:
        if method != "__call__" or kwargs:
            raise NotEnumerableError(f"the sampler applies {ufunc.__name__}.{method} to random numbers")
        return _lanewise(ufunc, inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in _FUNCTIONS:
            raise NotEnumerableError(f"the sampler applies {func.__name__} to random numbers")
        return _FUNCTIONS[func](*args, **kwargs)

    def astype(self, dtype: Any, **options: Any) -> RandomArray:  # type: ignore[override]
        kind, lanes = np.dtype(dtype), self.lanes

        def converted(lane: int) -> Any:
            value = lanes[lane]
            if isinstance(value, ExponentialDraw) and kind not in (np.float32, np.float64):
                raise only_a_race(f"a conversion to {kind}")
            return value.mapped(kind.type) if isinstance(value, Number) else value

        return random_array(_memory(self).astype(kind), LaterLanes(lanes, converted))

    def reshape(self, *shape: Any, **options: Any) -> RandomArray:
        return random_array(_memory(self).reshape(*shape), self.lanes)

    def __getitem__(self, key: Any) -> Any:
        return moved(lambda part: np.asarray(part[key]), self)

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


def random_array(memory: np.ndarray, lanes: Mapping[int, Any]) -> Any:
    """Build an array with these random lanes.  Without random lanes, return an ordinary array."""
    if not lanes:
        return memory
    array = np.array(memory).view(RandomArray)
    array.lanes = lanes
    return array


def settled(array: np.ndarray) -> np.ndarray:
    memory = _memory(array).copy()
    for lane, value in _lanes(array).items():
        if not isinstance(value, ArgmaxWinner):
            raise NotEnumerableError("the sampler uses a random number where a number is needed at once")
        memory.flat[lane] = value.decide()
    return memory


def _memory(array: Any) -> np.ndarray:
    return array.view(np.ndarray) if isinstance(array, RandomArray) else np.asarray(array)


def _lanes(array: Any) -> Mapping[int, Any]:
    return array.lanes if isinstance(array, RandomArray) else {}


def moved(function: Callable[[np.ndarray], np.ndarray], array: RandomArray) -> Any:
    """Apply a function that only moves entries."""
    places = function(np.arange(array.size).reshape(array.shape)).ravel()
    before = array.lanes
    origin = {lane: place for lane, place in enumerate(places.tolist()) if place in before}
    return random_array(function(_memory(array)), LaterLanes(origin, lambda lane: before[origin[lane]]))


_MONOTONE = (
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.log, np.log2, np.exp, np.exp2, np.sqrt,
    np.log1p, np.minimum, np.maximum, np.fmin, np.fmax,
)  # fmt: skip
_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


def _lanewise(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    memories = [_memory(part) for part in inputs]
    with np.errstate(all="ignore"):  # the memory of a random lane is meaningless
        result = np.asarray(ufunc(*memories))
    spread = [np.broadcast_to(memory, result.shape).flatten() for memory in memories]
    lanes = [_spread_lanes(part, result.shape) for part in inputs]
    random = np.array(sorted(set().union(*lanes)))
    if ufunc in _COMPARISONS:
        _compare_all(ufunc, random, lanes, spread, result)
        return result

    def combined(lane: int) -> Any:
        return _combined(ufunc, [at.get(lane, plain[lane]) for at, plain in zip(lanes, spread, strict=True)])

    return random_array(result, LaterLanes(random.tolist(), combined))


def _spread_lanes(part: Any, shape: tuple[int, ...]) -> Mapping[int, Any]:
    if not isinstance(part, RandomArray) or part.shape == shape:
        return _lanes(part)
    return _lanes(moved(lambda entries: np.broadcast_to(entries, shape), part))


def _compare_all(
    ufunc: np.ufunc,
    random: np.ndarray,
    lanes: Sequence[Mapping[int, Any]],
    spread: Sequence[np.ndarray],
    result: np.ndarray,
) -> None:
    """Decide the comparison in every random lane.  Decide lanes with the same question only once."""
    first = [at.get(int(random[0])) for at in lanes]
    side = int(first[0] is None)
    others = spread[1 - side][random]
    if not lanes[1 - side] and all(number is first[side] for number in lanes[side].values()):
        for other in np.unique(others):
            entries = [first[side], other] if side == 0 else [other, first[side]]
            result.flat[random[others == other]] = _compared(ufunc, entries)
        return  # where another entry is nan, the memory gives the answer
    for lane in random:
        entries = [at.get(lane, plain[lane]) for at, plain in zip(lanes, spread, strict=True)]
        result.flat[lane] = _compared(ufunc, entries)


_KINDS = (Number, ExponentialDraw, ArgmaxWinner, WinningValue)


def _compared(ufunc: np.ufunc, entries: Sequence[Any]) -> bool:
    _refuse_seeds(ufunc, entries)
    first, second = entries
    if isinstance(first, WinningValue) and first is second:
        return bool(ufunc(1, 1))
    if (
        isinstance(first, WinningValue)
        and not isinstance(second, _KINDS)
        and (second < first.low or second == -np.inf)
    ):
        return bool(ufunc(1, second))
    if any(isinstance(entry, (ExponentialDraw, WinningValue)) for entry in entries):
        raise NotEnumerableError(f"the sampler compares an exponential random number; {WINNER_EXPECTED}")
    if isinstance(first, ArgmaxWinner):
        return first.fulfils(lambda value: bool(ufunc(value, _known(second))))
    if isinstance(second, ArgmaxWinner):
        return second.fulfils(lambda value: bool(ufunc(_known(first), value)))
    if ufunc in (np.equal, np.not_equal):
        equal = _number(np.less_equal, entries).decide() and not _number(np.less, entries).decide()
        return equal is (ufunc is np.equal)
    return _number(ufunc, entries).decide()


def _known(entry: Any) -> Any:
    return entry.decide() if isinstance(entry, ArgmaxWinner) else entry


def _refuse_seeds(ufunc: np.ufunc, entries: Sequence[Any]) -> None:
    if any(isinstance(entry, DerivedSeed) for entry in entries):
        raise NotEnumerableError(
            f"the sampler applies {ufunc.__name__} to a random number that can only be a seed"
        )


def _combined(ufunc: np.ufunc, entries: Sequence[Any]) -> Any:
    _refuse_seeds(ufunc, entries)
    if any(isinstance(entry, ExponentialDraw) for entry in entries):
        return clock_after(ufunc.__name__, *entries)
    if any(isinstance(entry, ArgmaxWinner) for entry in entries):
        (pick,) = [entry for entry in entries if isinstance(entry, ArgmaxWinner)]

        def function(lane: int) -> int:
            return int(ufunc(*(pick.function(lane) if entry is pick else entry for entry in entries)))

        return ArgmaxWinner(pick.race, function)
    if ufunc in _MONOTONE and not any(isinstance(entry, WinningValue) for entry in entries):
        number = _number(ufunc, entries)
        if ufunc in (np.maximum, np.fmax):
            (*_, low) = [None, *(float(entry) for entry in entries if not isinstance(entry, Number))]
            return followed_on("clamp", entries, number, (low, None))
        return followed_on(ufunc.__name__, [_plain_number(entry) for entry in entries], number)
    raise NotEnumerableError(f"the sampler applies {ufunc.__name__} to random numbers, which is not followed")


def _plain_number(entry: Any) -> Any:
    return entry if isinstance(entry, Number) else float(entry)


def _number(ufunc: np.ufunc, entries: Sequence[Any]) -> Number:
    """Apply a function to random numbers, with numpy's own arithmetic on scalars of the same types."""

    def function(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            return ufunc(*values)

    return Number.combined(ufunc.__name__, entries, function)


def _where(condition: np.ndarray, first: Any, second: Any) -> Any:
    if isinstance(condition, RandomArray):
        raise NotEnumerableError("the sampler uses a random number as a condition")
    plain = np.asarray(np.where(condition, _memory(first), _memory(second)))
    parts = [_spread_lanes(part, plain.shape) for part in (first, second)]
    chosen = np.broadcast_to(condition, plain.shape).ravel().tolist()
    origin = {
        lane: part for part, taken in zip(parts, (True, False), strict=True) for lane in part
        if bool(chosen[lane]) is taken
    }  # fmt: skip
    return random_array(plain, LaterLanes(origin, lambda lane: origin[lane][lane]))


def _race(array: RandomArray, largest: bool, keepdims: bool) -> tuple[Race, Sequence[int]]:
    """Build the race of the lanes, and return it with the lanes that take part.

    NaN does not take part, as in ``nanargmax``.  Of equal ordinary numbers only the first takes part, because
    a block of a kernel has thousands of masked ones.
    """
    if keepdims or array.ndim != 1:
        raise only_a_race("a reduction", "random")
    row = np.nan_to_num(_memory(array), nan=-np.inf if largest else np.inf, posinf=np.inf, neginf=-np.inf)
    is_plain = np.ones(row.size, dtype=bool)
    is_plain[list(array.lanes)] = False
    plain = np.flatnonzero(is_plain)
    firsts = plain[np.unique(row[plain], return_index=True)[1]]
    lanes = sorted({*array.lanes, *firsts.tolist()})
    entries = [array.lanes.get(lane, float(row[lane])) for lane in lanes]
    return Race(clocks_of_row(entries, largest), largest), lanes


def _winning_lane(largest: bool) -> Callable[..., Any]:
    def winning_lane(array: RandomArray, axis: Any = None, keepdims: bool = False) -> Any:
        if array.size == 1:
            return np.zeros((), np.int32)
        race, lanes = _race(array, largest, keepdims)
        return random_array(np.zeros((), np.int32), {0: ArgmaxWinner(race, lanes.__getitem__)})

    return winning_lane


def _winning_value(largest: bool) -> Callable[..., Any]:
    def winning_value(array: RandomArray, axis: Any = None, keepdims: bool = False) -> Any:
        if array.size == 1:
            return array.reshape(())
        race, _ = _race(array, largest, keepdims)
        low = lower_end(race.clocks)
        if not any(clock.rate for clock in race.clocks):
            return np.full((), low, array.dtype)
        return random_array(np.ones((), array.dtype), {0: WinningValue(race, low)})

    return winning_value


def _moving(function: Callable[..., np.ndarray]) -> Callable[..., Any]:
    return lambda array, *args, **kwargs: moved(lambda part: function(part, *args, **kwargs), array)


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.where: _where,
    np.nanargmax: _winning_lane(True),
    np.nanargmin: _winning_lane(False),
    np.nanmax: _winning_value(True),
    np.nanmin: _winning_value(False),
    **{
        function: _moving(function)
        for function in (np.broadcast_to, np.expand_dims, np.transpose, np.squeeze, np.copy)
    },
}

"""Operations on entries of which some are random, as torch tensors and numpy arrays share them.

An entry is a ``Number``, an ``ExponentialDraw``, an ``ArgmaxWinner``, a ``WinningValue``, a ``DerivedSeed``,
or an ordinary number.  Operations have the names of numpy's functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.auditing.tape.atoms import Number
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.logarithms import as_clock, clocks_of_row, followed_on
from spectheory.auditing.tape.races import (
    WINNER_EXPECTED,
    ArgmaxWinner,
    ExponentialDraw,
    Race,
    are_equal,
    clock_after,
    only_a_race,
    value_of,
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


RANDOM = (Number, ExponentialDraw, ArgmaxWinner, WinningValue, DerivedSeed)
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
_DIVISIONS = ("divide", "reciprocal", "floor_divide")
_WITHIN_A_DOMAIN = ("sqrt", "log", "log2", "log10", "log1p")


def compared(
    operation: str,
    entries: Sequence[Any],
    functions: Callable[[str], Callable[..., Any]],
    kinds: Sequence[Callable[[Any], Any]],
) -> bool:
    """The truth of a comparison, or of ``isinf`` and its relatives.  If it is random, the run branches.

    Args:
        operation: one of ``COMPARISONS``, or a question about one entry, such as "isinf".
        entries: the entries.
        functions: name of an operation -> the operation on ordinary numbers.
        kinds: the conversion of a value to the type of each entry; empty if none is needed.
    """
    _refuse_seeds(operation, entries)
    first, second = entries[0], entries[-1]
    if isinstance(first, WinningValue):
        if first is second:
            return bool(functions(operation)(1.0, 1.0))
        if not isinstance(second, RANDOM) and (second < first.low or second == -math.inf):
            return bool(functions(operation)(1.0, second))
    if any(isinstance(entry, WinningValue) for entry in entries):
        raise NotEnumerableError(f"the sampler compares an exponential random number; {WINNER_EXPECTED}")
    if any(isinstance(entry, ExponentialDraw) for entry in entries):
        return _about_clocks(operation, entries, functions(operation), kinds)
    found = _of_a_winner(entries, functions(operation))
    if found is not None:
        winner, function = found
        return winner.fulfils(lambda value: bool(function(value)))
    if operation in ("equal", "not_equal"):  # a monotone function decides each half
        at_most, less = (
            Number.combined(name, converted(entries, kinds), functions(name)).decide
            for name in ("less_equal", "less")
        )
        return (at_most() and not less()) is (operation == "equal")
    return Number.combined(operation, converted(entries, kinds), functions(operation)).decide()


def _about_clocks(
    operation: str,
    entries: Sequence[Any],
    function: Callable[..., Any],
    kinds: Sequence[Callable[[Any], Any]],
) -> bool:
    """Decide whether a clock is infinite, NaN, or equal to another entry."""
    clocks = list(map(as_clock, entries))
    is_one = len(clocks) == 1 or operation in ("equal", "not_equal")
    if not is_one or any(isinstance(clock, (Number, ArgmaxWinner)) for clock in clocks):
        raise only_a_race(operation)
    values = [value_of(clock) for clock in clocks]
    if None in values and len(values) == 2:
        return are_equal(*clocks) is (operation == "equal")
    return bool(function(*converted([1.0 if value is None else value for value in values], kinds)))


def applied(
    operation: str,
    entries: Sequence[Any],
    function: Callable[..., Any],
    kinds: Sequence[Callable[[Any], Any]],
    bounds: Sequence[Any] = (),
) -> Any:
    """The result of a monotone operation.

    Args:
        operation: a name of ``followed_on``.  Under any other name a uniform number is not one any more.
        entries: the operands.
        function: the operation on ordinary numbers.
        kinds: the conversion of a value to the type of each operand.
        bounds: the bounds of "clamp".
    """
    _refuse_seeds(operation, entries)
    numbers = [entry for entry in entries if isinstance(entry, Number)]
    if any(isinstance(entry, WinningValue) for entry in entries):
        raise only_a_race(operation)
    if any(isinstance(entry, ExponentialDraw) for entry in entries):
        if numbers:
            raise NotEnumerableError(
                f"the sampler applies {operation} to an exponential and another random number"
            )
        return clock_after(operation, *entries)
    found = _of_a_winner(entries, function)
    if found is not None:
        winner, of_value = found
        return ArgmaxWinner(winner.race, lambda place: int(of_value(winner.function(place))))
    number = Number.combined(operation, converted(entries, kinds), function)
    _check_monotone(operation, entries[-1], number)
    return followed_on(operation, entries, number, bounds)


def converted(entries: Sequence[Any], kinds: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Entries as they are computed with.  An ordinary entry is converted once, not at every evaluation."""
    if not kinds:
        return list(entries)
    return [
        entry.mapped(kind) if isinstance(entry, Number) else kind(entry)
        for entry, kind in zip(entries, kinds, strict=True)
    ]


def _check_monotone(operation: str, divisor: Any, number: Number) -> None:
    """Refuse a quotient whose divisor can change its sign, and values that are NaN."""
    divides = operation in _DIVISIONS and isinstance(divisor, Number)
    if divides and len({math.copysign(1, value) for value in divisor.ends()}) > 1:
        raise NotEnumerableError(
            "the sampler divides by a random number that may be positive or negative, which is not followed"
        )
    if operation in _WITHIN_A_DOMAIN and any(map(math.isnan, number.ends())):
        raise NotEnumerableError(
            f"the sampler takes {operation} of random numbers for some of which it is not a number, which is "
            "not followed"
        )


def _of_a_winner(
    entries: Sequence[Any], function: Callable[..., Any]
) -> tuple[ArgmaxWinner, Callable[[int], Any]] | None:
    """The first winner of a race, and the function of its value.  The races of other winners are run."""
    winner = next((entry for entry in entries if isinstance(entry, ArgmaxWinner)), None)
    if winner is None:
        return None
    others = [
        each.decide() if isinstance(each, ArgmaxWinner) and each is not winner else each for each in entries
    ]
    return winner, lambda value: function(*(value if each is winner else each for each in others))


def _refuse_seeds(operation: str, entries: Sequence[Any]) -> None:
    if any(isinstance(entry, DerivedSeed) for entry in entries):
        raise NotEnumerableError(
            f"the sampler applies {operation} to a random number that can only be a seed"
        )


def winner(row: list[Any], largest: bool) -> Any:
    """The index of the largest or the least entry of a row: an integer, or the winner of a race."""
    if len(row) == 1:
        return 0
    if not any(isinstance(entry, RANDOM) for entry in row):
        return int(np.argmax(row) if largest else np.argmin(row))
    return ArgmaxWinner(Race(clocks_of_row(row, largest), largest))


def value_at_once(entry: Any) -> Any:
    """The ordinary value of a winner or an integer.  The run branches on it."""
    if isinstance(entry, ArgmaxWinner):
        return entry.decide()
    if isinstance(entry, Number):
        return entry.value()
    if isinstance(entry, RANDOM):
        raise NotEnumerableError("the sampler uses a random number where a number is needed at once")
    return entry

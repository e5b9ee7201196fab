"""Numbers that a verifier computes with in place of probabilities: rational functions of all of them.

A formal number adds, multiplies and divides as a ``Fraction`` does.  A comparison is a question to the region
of pairs that is being walked.  Everything else that Python can ask of a number is refused.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from itertools import count
from pathlib import Path
from traceback import extract_stack
from typing import Any, NoReturn

import numpy as np

from spectheory.exact.proof.rational_functions import (
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    RationalFunction,
    RationalFunctions,
)
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.formal_number import FormalNumber, rational_parts

_SERIALS = count()


class NotFollowedError(BaseException):
    """Code asked a formal number for what it does not have; not an ``Exception``, so that few catch it."""


class FormalRun(ABC):
    """One evaluation of a verifier: it answers the comparisons, and remembers what was refused.

    Attributes:
        field: of the functions.
        refused: what was refused first, with its place; empty if nothing was.
        serial: different for every run.
        with_flint: whether the verifier is given python-flint's rationals where the rows are not formal.
    """

    def __init__(self, field: RationalFunctions) -> None:
        self.field, self.refused, self.serial, self.with_flint = field, "", next(_SERIALS), True

    @abstractmethod
    def has_sign(self, function: RationalFunction, mask: int) -> bool:
        """Whether the sign is one of ``mask``, everywhere on the region from now on."""

    @abstractmethod
    def is_at_least_zero(self, function: RationalFunction) -> bool:
        """True where it is at least 0, False where it is at most 0; where it is 0, either."""

    @abstractmethod
    def is_never_zero(self, factor: Factor) -> bool:
        """Whether a factor is known to be 0 nowhere on the region."""

    def positive_part(self, function: RationalFunction) -> RationalFunction:
        """max(f, 0)."""
        return function if self.is_at_least_zero(function) else function - function

    def quotient_or_zero(
        self, numerator: RationalFunction, denominator: RationalFunction
    ) -> RationalFunction:
        """n/d, and 0 where d = 0."""
        return denominator if self.has_sign(denominator, ZERO) else numerator / denominator

    def shares(self, weights: tuple[RationalFunction, ...], total: RationalFunction) -> list[Number]:
        """The weights divided by their sum; where that is 0, the weights."""
        return [Share(self, weight, weights, total) for weight in weights]

    def simplified(self, function: RationalFunction) -> RationalFunction:
        """An equal function."""
        return function

    def number(self, function: RationalFunction) -> Number:
        """A function as a number of this run."""
        return Number(self, function)

    def refuse(self, what: str) -> NoReturn:
        """Refuse, and keep it."""
        own = (str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix, "<frozen")
        frames = [frame for frame in extract_stack() if not frame.filename.startswith(own)]
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        self.refused = self.refused or f"{what}{place}"
        raise NotFollowedError(self.refused)

    def check_followed(self, name: str) -> None:
        """Raise ``InvalidOutcomeError`` if anything was refused, whatever the code did about it."""
        if self.refused:
            raise InvalidOutcomeError(
                f"verifier {name!r} cannot be followed: it asks for {self.refused}; compute with the entries "
                "that it is given, by +, -, *, / and comparisons"
            )


class Number(FormalNumber):
    """A rational function in one run (see the module)."""

    __slots__ = ("_function", "_run")

    def __init__(self, run: FormalRun, function: RationalFunction) -> None:
        self._run, self._function = run, function

    @property
    def function(self) -> RationalFunction:
        """The function; of a ``Share`` it may ask a question."""
        return self._function

    def refuse(self, what: str) -> NoReturn:
        self._run.refuse(f"{what} of a probability")

    def _of(self, other: Any, operation: str) -> RationalFunction | None:
        kind = type(other)
        if kind in (Number, Share):
            if other._run is not self._run:
                self._run.refuse("a number of an earlier call")
            return other.function
        if kind is np.ndarray:
            return None
        parts = rational_parts(other, self._run.with_flint)
        if parts is not None:
            return self._run.field.constant(*parts)
        return self._run.refuse(f"{operation} of a probability and a {kind.__name__}")

    def __add__(self, other: Any) -> Any:
        function = self._of(other, "+")
        return NotImplemented if function is None else Number(self._run, self.function + function)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        function = self._of(other, "-")
        return NotImplemented if function is None else Number(self._run, self.function - function)

    def __rsub__(self, other: Any) -> Any:
        function = self._of(other, "-")
        return NotImplemented if function is None else Number(self._run, function - self.function)

    def __mul__(self, other: Any) -> Any:
        function = self._of(other, "*")
        return NotImplemented if function is None else Number(self._run, self.function * function)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        function = self._of(other, "/")
        return NotImplemented if function is None else self._quotient(self.function, function)

    def __rtruediv__(self, other: Any) -> Any:
        function = self._of(other, "/")
        return NotImplemented if function is None else self._quotient(function, self.function)

    def _quotient(self, numerator: RationalFunction, denominator: RationalFunction) -> Number:
        if self._run.has_sign(denominator, ZERO):
            raise ZeroDivisionError("division of probabilities by zero")
        return Number(self._run, numerator / denominator)

    def __pow__(self, exponent: Any) -> Number:
        if type(exponent) is not int:
            self._run.refuse(f"a power with exponent {type(exponent).__name__}")
        power = self._run.field.constant(1)
        for _ in range(abs(int(exponent))):
            power = power * self.function
        return Number(self._run, power) if exponent >= 0 else 1 / Number(self._run, power)

    def __neg__(self) -> Number:
        return 0 - self

    def __abs__(self) -> Number:
        return self if self._run.is_at_least_zero(self.function) else -self

    def positive_part(self) -> Number:
        return Number(self._run, self._run.positive_part(self.function))

    def quotient_or_zero(self, numerator: Any) -> Any:
        function = self._of(numerator, "/")
        if function is None:
            return NotImplemented
        return Number(self._run, self._run.quotient_or_zero(function, self.function))

    def _compared(self, other: Any, operation: str, mask: int) -> Any:
        function = self._of(other, operation)
        return NotImplemented if function is None else self._run.has_sign(self.function - function, mask)

    def __eq__(self, other: object) -> Any:
        return self is other or self._compared(other, "==", ZERO)

    def __ne__(self, other: object) -> Any:
        return self is not other and self._compared(other, "!=", NEGATIVE | POSITIVE)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<", NEGATIVE)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=", NEGATIVE | ZERO)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">", POSITIVE)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=", ZERO | POSITIVE)

    def __bool__(self) -> bool:
        return self._run.has_sign(self.function, NEGATIVE | POSITIVE)

    __hash__ = FormalNumber.__hash__  # lost where a class defines ==

    @property
    def serial(self) -> int:
        return self._run.serial

    def normalised(self, rows: np.ndarray) -> np.ndarray:
        flat = rows.reshape((-1, rows.shape[-1]))
        shares = [entry for row in flat for entry in _shares(row, self._run)]
        result = np.empty(rows.size, dtype=object)
        result[:] = shares
        return result.reshape(rows.shape)


class Share(Number):
    """weight / total as ``arrays.normalise`` returns it: where the total is 0, the weight.

    No question is asked before the quotient is used in a computation.

    Attributes:
        weight: its weight.
        weights: those of the whole row.
        total: their sum.
    """

    __slots__ = ("total", "weight", "weights")

    def __init__(
        self,
        run: FormalRun,
        weight: RationalFunction,
        weights: tuple[RationalFunction, ...],
        total: RationalFunction,
    ) -> None:
        self._run, self._function = run, None  # type: ignore[assignment]
        self.weight, self.weights, self.total = weight, weights, total

    @property
    def function(self) -> RationalFunction:
        if self._function is None:
            empty = self._run.has_sign(self.total, ZERO)
            self._function = self.weight if empty else self.weight / self.total
        return self._function

    @property
    def is_open(self) -> bool:
        """Whether the quotient has not been used."""
        return self._function is None


def _shares(row: np.ndarray, run: FormalRun) -> list[Number]:
    """The shares of the entries of one row."""
    zero = run.number(run.field.constant(0))
    weights = tuple((zero + entry).function for entry in row)
    total = zero.function
    for weight in weights:
        total = total + weight
    if total.is_zero:
        return [run.number(weight) for weight in weights]
    return run.shares(weights, total)

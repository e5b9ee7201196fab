"""Numbers that stand for their values on many pairs at once, as the array functions see them."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from types import CodeType, FunctionType
from typing import Any, NoReturn, Self

import numpy as np
from flint import fmpq, fmpz


def hashes_formal_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function call a table of results that has rows of numbers as keys, on which no result depends."""
    _TABLES.add(function.__code__)
    return function


_TABLES: set[CodeType] = set()
_OF_FRACTIONS = {
    function.__code__
    for function in vars(Fraction).values()
    if isinstance(function, FunctionType) and function.__name__ != "__new__"
}
_ABSTRACT = type(ABC).__instancecheck__.__code__.co_filename


def rational_parts(number: Any, with_flint: bool) -> tuple[int, int] | None:
    """Numerator and denominator of a number that true rationals take as it is; ``None`` for others.

    A whole number of numpy overflows in a ``Fraction``, and a subclass may compute otherwise than its base.

    Args:
        number: an operand.
        with_flint: whether the verifier is given python-flint's rationals, not Fractions.
    """
    kind = type(number)
    if kind is int or kind is bool:
        return int(number), 1
    if kind is Fraction:
        parts = number.numerator, number.denominator
        return parts if all(type(part) is int for part in parts) else None
    if with_flint and kind in (fmpq, fmpz):
        return int(number.numerator), int(number.denominator)
    return None


class FormalNumber(ABC):
    """A number that computes and compares, and refuses everything else that Python asks of numbers.

    Functions whose result does not depend on a case, such as max(x, 0) at x = 0, leave the case open.
    """

    __slots__ = ()

    @abstractmethod
    def positive_part(self) -> Self:
        """max(x, 0)."""

    @abstractmethod
    def quotient_or_zero(self, numerator: Any) -> Self:
        """numerator / x, and 0 where x = 0."""

    @abstractmethod
    def normalised(self, rows: np.ndarray) -> np.ndarray:
        """``arrays.normalise`` of rows of such numbers."""

    @abstractmethod
    def refuse(self, what: str) -> NoReturn:
        """Refuse a use of the number, for good: code that catches the exception is refused too."""

    @property
    @abstractmethod
    def serial(self) -> int:
        """The same for all numbers that can be compared."""

    def __hash__(self) -> int:
        """The same for all numbers of a run, so that a table asks which of them are equal.

        A rational has another hash, and no table compares it with them: all code is refused but what
        ``hashes_formal_numbers`` marks.
        """
        if sys._getframe(1).f_code not in _TABLES:
            self.refuse("hash()")
        return self.serial

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The type, which ``isinstance`` asks for; code that takes another path for rationals is refused.

        ``1/2 - x`` asks ``Fraction.__sub__`` first, which asks for the type of x and leaves the rest to x.
        """
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == _ABSTRACT:
            frame = frame.f_back
        if frame.f_code not in _OF_FRACTIONS:
            self.refuse("the type")
        return type(self)

    def __pos__(self) -> Self:
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.refuse(f"the attribute {name}")


def _refusal(name: str) -> Any:
    return lambda self, *_, **__: self.refuse(f"{name}()")


_REFUSED = """float int index complex round floor ceil trunc mod rmod divmod rdivmod floordiv rfloordiv rpow
str repr format bytes reduce reduce_ex getstate sizeof dir invert and or xor lshift rshift"""
for _name in _REFUSED.split():
    setattr(FormalNumber, f"__{_name}__", _refusal(_name))

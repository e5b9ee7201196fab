"""Interface of formal numbers for the array functions: each represents its values on many pairs at once."""

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
    """Let a function hash formal numbers, to look up rows in a cache that does not change any result."""
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
    """Return (numerator, denominator) of an exact operand, or ``None`` for any other operand.

    Exact operands are int, bool and Fraction, and python-flint rationals and integers if ``with_flint``.
    Numpy integers are excluded because they overflow in a ``Fraction``.  Subclasses of these types are
    excluded because their arithmetic may differ.
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
    """A number that supports arithmetic and comparison, and refuses all other operations of Python numbers.

    Some cases give the same result, such as x = 0 and x > 0 in max(x, 0).  The functions below do not
    distinguish such cases.
    """

    __slots__ = ()

    @abstractmethod
    def positive_part(self) -> Self:
        """Compute max(x, 0)."""

    @abstractmethod
    def quotient_or_zero(self, numerator: Any) -> Self:
        """Compute numerator / x, and 0 if x = 0."""

    @abstractmethod
    def normalised(self, rows: np.ndarray) -> np.ndarray:
        """Compute ``arrays.normalise`` for rows of formal numbers."""

    @abstractmethod
    def refuse(self, what: str) -> NoReturn:
        """Refuse a use of the number permanently: code that catches the exception is refused too."""

    @property
    @abstractmethod
    def serial(self) -> int:
        """A hash value that all mutually comparable numbers share."""

    def __hash__(self) -> int:
        """Return the same hash for all numbers of a run, so that a dict compares them for equality.

        Rationals have other hashes, so a dict would not compare them with formal numbers.  So only code
        marked by ``hashes_formal_numbers`` may hash.
        """
        if sys._getframe(1).f_code not in _TABLES:
            self.refuse("hash()")
        return self.serial

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Return the type for ``isinstance`` calls of ``Fraction``, and refuse all other code.

        Other code could treat rationals differently.  ``1/2 - x`` calls ``Fraction.__sub__`` first, which
        checks the type of x and then lets x compute.
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

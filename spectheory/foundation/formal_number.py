"""Numbers that stand for their values on many pairs at once, as the array functions see them."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn, Self
from weakref import WeakSet

import numpy as np
from flint import fmpq, fmpz


def hashes_formal_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function call a table of results that has rows of numbers as keys, on which no result depends."""
    _TABLES[id(function.__code__)] = function.__code__
    return function


_TABLES: dict[int, CodeType] = {}
_OF_FRACTIONS = {
    id(function.__code__): function.__code__
    for function in vars(Fraction).values()
    if isinstance(function, FunctionType) and function.__name__ != "__new__"
}
"""Code is known by what it is: a file name can be made up."""
_ABSTRACT = type(ABC).__instancecheck__.__code__.co_filename


class Followed:
    """What one run of a verifier does with formal numbers beside computing.

    ``1/2 - x`` asks ``Fraction.__sub__`` first, which asks for the type of x, declines, and leaves the
    operation to x.  Code that calls the method itself would see from the answer what x is.  So x must be
    asked next, by the same instruction of the same frame.

    Attributes:
        with_flint: whether the verifier is given python-flint's rationals where the rows are not formal.
        has_left: whether a ``Fraction`` has declined, and x was not asked since.
        has_forked: whether the process was copied: what the copy does is not seen.
    """

    def __init__(self) -> None:
        self.with_flint, self.has_left, self.has_forked = True, False, False
        self._asking: list[FrameType | None] = [None, None]
        self._instruction = 0
        _ALL.add(self)

    def is_asked_by_fraction(self, frame: FrameType) -> bool:
        """Whether an arithmetic method of ``Fraction`` asks for the type, once per operation."""
        caller = frame
        while caller.f_back is not None and id(caller.f_code) in _OF_FRACTIONS:
            caller = caller.f_back
        if caller is frame or (self.has_left and self._asking[0] is not frame):
            return False
        self.has_left, self._asking, self._instruction = True, [frame, caller], caller.f_lasti
        return True

    def takes(self) -> bool:
        """Whether the method of a formal number that runs now is the one that was left to it, if any was."""
        if not self.has_left:
            return True
        caller: FrameType | None = sys._getframe(1)
        while caller is not None and id(caller.f_code) in _OWN:
            caller = caller.f_back
        wanted, self.has_left, self._asking = self._asking[1], False, [None, None]
        return caller is not None and caller is wanted and caller.f_lasti == self._instruction


_OWN: dict[int, CodeType] = {}
"""The methods of formal numbers."""
_ALL: WeakSet[Followed] = WeakSet()


def _note_fork() -> None:
    for followed in list(_ALL):
        followed.has_forked = True


os.register_at_fork(before=_note_fork)


BY_HAND = "a method of Fraction that is called by hand"


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

    def __init_subclass__(cls) -> None:
        methods = [each for each in vars(cls).values() if isinstance(each, FunctionType)]
        _OWN.update((id(each.__code__), each.__code__) for each in methods)

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
    def followed(self) -> Followed:
        """Of the run."""

    @property
    @abstractmethod
    def serial(self) -> int:
        """The same for all numbers that can be compared."""

    def __hash__(self) -> int:
        """The same for all numbers of a run, so that a table asks which of them are equal.

        A rational has another hash, and no table compares it with them: all code is refused but what
        ``hashes_formal_numbers`` marks.
        """
        if id(sys._getframe(1).f_code) not in _TABLES:
            self.refuse("hash()")
        return self.serial

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The type, which ``isinstance`` asks for; code that takes another path for rationals is refused."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == _ABSTRACT:
            frame = frame.f_back
        if not self.followed.is_asked_by_fraction(frame):
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

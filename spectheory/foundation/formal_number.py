"""Numbers that stand for their values on many pairs at once, as the array functions see them."""

from __future__ import annotations

import fractions
import sys
from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np


@cache
def _with_tables() -> str:
    """Where tables of results have rows of numbers as keys."""
    return str(Path(__file__).parents[1] / "verification" / "algorithms" / "_").removesuffix("_")


@cache
def _with_types() -> tuple[str, ...]:
    """Where arithmetic asks whether a number is one."""
    folders = (Path(__file__).parents[1], Path(np.__file__).parent)
    return *(str(folder / "_").removesuffix("_") for folder in folders), fractions.__file__


_ABSTRACT = type(ABC).__instancecheck__.__code__.co_filename


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

        A rational has another hash, and no table compares it with them: other code than the package's own
        tables of results, whose keys do not change what is computed, is refused.
        """
        if not sys._getframe(1).f_code.co_filename.startswith(_with_tables()):
            self.refuse("hash()")
        return self.serial

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The type, which ``isinstance`` asks for; code that takes another path for rationals is refused."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == _ABSTRACT:
            frame = frame.f_back
        code = frame.f_code
        if not code.co_filename.startswith(_with_types()) or code.co_qualname == "Fraction.__new__":
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

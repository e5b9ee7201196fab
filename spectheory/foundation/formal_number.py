"""Numbers that stand for their values on many pairs at once, as the array functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn, Self

import numpy as np


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

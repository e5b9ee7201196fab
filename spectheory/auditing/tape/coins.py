"""Generators of Python and numpy that return intervals of real numbers, and draw nothing.

A *coin* stands for a uniform number and knows an interval that contains it.  A comparison with a number
inside the interval branches the run and narrows the interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from numbers import Rational
from typing import Any

import numpy as np

from spectheory.auditing.tape.decisions import Interval, NotEnumerableError, Tape
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import exact_number

MAX_CASES = 100_000
"""The most values that one draw branches on."""
MULTINOMIAL_TOLERANCE = Fraction(1, 10**12)
"""How far the sum of all probabilities of ``multinomial`` but the last may be above 1, as in numpy."""

SHORT_DENOMINATOR = 2**20
"""A float with a longer denominator is taken for the rounding of another number."""


@dataclass(eq=False)
class _Uniform(Interval):
    tape: Tape
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)

    def is_below(self, cut: Fraction) -> bool:
        return cut >= self.high or (cut > self.low and super().is_below(cut))


class UniformDraw:
    """A coin: scale * u + shift, where u is uniform on [0, 1) and not drawn.

    A sampler can compare a coin with numbers, add numbers to it, and multiply or divide it by numbers.  A
    coin equals a given number, or another function of its u, with probability 0.
    """

    __array_priority__ = 1_000

    def __init__(
        self, uniform: _Uniform, scale: Fraction = Fraction(1), shift: Fraction = Fraction(0)
    ) -> None:
        self._uniform, self._scale, self._shift = uniform, scale, shift

    def __lt__(self, other: Any) -> Any:
        if other == self:  # numpy's searchsorted compares a number with itself
            return False
        if isinstance(other, (float, np.floating)) and math.isinf(other):
            return other > 0
        if hasattr(other, "new_tensor") and not hasattr(
            other, "is_python"
        ):  # torch leaves the comparison to this class
            truths = [self < entry for entry in other.flatten().tolist()]
            return other.new_tensor(truths).reshape(other.shape).bool()
        if isinstance(other, np.ndarray):  # numpy leaves the comparison to this class
            entries = np.array([self < entry for entry in other.ravel().tolist()], dtype=bool)
            return entries.reshape(other.shape)
        number = _exact(other, "compared with", self._uniform.tape)
        if number is None:
            return NotImplemented
        below = self._uniform.is_below((number - self._shift) / self._scale)
        return below if self._scale > 0 else not below

    def __ge__(self, other: Any) -> Any:
        below = self.__lt__(other)
        if hasattr(below, "logical_not"):
            return below.logical_not()
        if isinstance(below, np.ndarray):
            return ~below
        return below if below is NotImplemented else not below

    def __le__(self, other: Any) -> Any:
        """As ``<`` with probability 1.  A coin is also <= itself."""
        return True if self == other else self < other

    def __gt__(self, other: Any) -> Any:
        return False if self == other else self >= other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UniformDraw) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, Fraction, Fraction]:
        return id(self._uniform), self._scale, self._shift

    def __add__(self, other: Any) -> Any:
        number = _exact(other, "added to", self._uniform.tape)
        return (
            NotImplemented
            if number is None
            else UniformDraw(self._uniform, self._scale, self._shift + number)
        )

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        number = _exact(other, "multiplied by", self._uniform.tape)
        if number is None:
            return NotImplemented
        return (
            UniformDraw(self._uniform, self._scale * number, self._shift * number) if number else Fraction(0)
        )

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        number = _exact(other, "subtracted from", self._uniform.tape)
        return NotImplemented if number is None else self + -number

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        number = _exact(other, "divided by", self._uniform.tape)
        return NotImplemented if number is None else self * (1 / number)

    def __rtruediv__(self, other: Any) -> Any:
        raise NotEnumerableError("a number is divided by a random one; multiply the other side")

    def __abs__(self) -> Any:
        if self._shift >= 0 and self._shift + self._scale >= 0:
            return self
        raise NotEnumerableError("the absolute value of a random number is taken, which is not followed")

    def __float__(self) -> float:
        raise NotEnumerableError(
            "a random number is turned into a float before it is compared; compare it as it is"
        )

    __int__ = __index__ = __bool__ = __float__

    def __repr__(self) -> str:
        raise NotEnumerableError("a random number is written as text, which is not followed")

    def ordinary(self, share: float) -> float:
        """The float that divides the coin's interval in the ratio ``share`` : 1 - ``share``."""
        low, high = self._uniform.low, self._uniform.high
        return float(self._scale * (low + (high - low) * Fraction(share)) + self._shift)


class CoinGenerator:
    """Replaces a ``numpy.random.Generator`` or a ``random.Random``.  It returns coins.

    Example:
        >>> from spectheory.auditing.tape.decisions import all_runs
        >>> runs = all_runs(lambda tape: CoinGenerator(tape).random() < 0.25)
        >>> [(str(probability), result) for probability, result in runs]
        [('1/4', True), ('3/4', False)]
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def random(self, size: Any = None, **others: Any) -> Any:
        """Uniform numbers on [0, 1): one coin, or an array of coins."""
        if others:
            raise NotEnumerableError(f"random() with {', '.join(others)} is not enumerated; leave it out")
        if size is None:
            return self._coin()
        coins = np.empty(size, dtype=object if self.tape.again is None else float)
        for index in np.ndindex(coins.shape):
            coins[index] = self._coin()
        return coins

    def _coin(self) -> Any:
        return self.tape.number(lambda: UniformDraw(_Uniform(self.tape)))

    def uniform(self, low: Any = 0, high: Any = 1, size: Any = None) -> Any:
        """Uniform numbers on [low, high)."""
        return self.random(size) * (high - low) + low

    def choice(
        self,
        a: Any,
        size: None = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """One entry of ``range(a)`` or of a sequence, with probabilities ``p`` that sum to 1.

        For one entry, ``replace`` and ``shuffle`` have no effect.
        """
        if size is not None:
            raise NotEnumerableError("choice() with a size is not enumerated; draw one at a time")
        if axis:
            a = np.moveaxis(np.asarray(a), axis, 0)
        values = range(int(a)) if isinstance(a, (int, np.integer)) else list(a)
        if p is None:
            return values[self._one_of_equal(len(values))]
        if len(p) != len(values):
            raise InvalidInputError(f"choice() was given {len(values)} values and {len(p)} probabilities")
        excess, tolerance = sum(self._weights(p), Fraction(0)) - 1, _sum_tolerance(p)
        if abs(excess) > tolerance:
            raise UndefinedDrawError(
                f"choice() was given probabilities whose sum differs from 1 by {float(excess):.2g}; numpy "
                f"takes a difference of at most {tolerance:.2g}"
            )
        return values[self._one_of(p)]

    def choices(
        self, population: Sequence[Any], weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        """``random.choices``: k values, drawn with replacement."""
        if weights is not None and cum_weights is not None:
            raise TypeError("Cannot specify both weights and cumulative weights")
        chances = [1] * len(population) if weights is None else weights
        if cum_weights is not None:
            sums = self._weights(cum_weights)
            chances = [after - before for before, after in pairwise([Fraction(0), *sums])]
            if any(chance < 0 for chance in chances):
                raise NotEnumerableError("choices() with cumulative weights that fall is not enumerated")
        if len(chances) != len(population):
            raise ValueError("The number of weights does not match the population")
        return [population[self._one_of(chances)] for _ in range(k)]

    def integers(
        self, low: int, high: int | None = None, size: None = None, dtype: Any = None, endpoint: bool = False
    ) -> Any:
        """An integer in low..high-1.  Without ``high``, in 0..low-1.  ``endpoint`` adds the upper end."""
        if size is not None:
            raise NotEnumerableError("integers() with a size is not enumerated; draw one at a time")
        first, beyond = (0, low) if high is None else (low, high)
        number = first + self._one_of_equal(beyond - first + endpoint)
        return number if dtype is None else np.dtype(dtype).type(number)

    def multinomial(self, n: int, pvals: Any, size: None = None) -> np.ndarray:
        """Count how often each value was drawn in n = 1 draws.

        As in numpy, the last value gets the remaining probability, whatever its own entry in ``pvals``.
        """
        if n != 1 or size is not None:
            of_size = "" if size is None else f" and size = {size}"
            raise NotEnumerableError(f"multinomial() is enumerated for n = 1 and one draw, got {n}{of_size}")
        counts = np.zeros(len(pvals), dtype=int)
        *others, _ = self._weights(pvals)
        left = 1 - sum(others, Fraction(0))
        if left < -MULTINOMIAL_TOLERANCE or any(weight < 0 for weight in others):
            raise UndefinedDrawError(
                f"multinomial() was given probabilities of which all but the last sum to {float(1 - left)}"
            )
        counts[self.tape.draw_among([*others, max(left, Fraction(0))])] = 1
        return counts

    def _one_of_equal(self, number: int) -> int:
        if number > MAX_CASES:
            raise NotEnumerableError(
                f"the sampler draws one of {number} values at once, which is enumerated up to {MAX_CASES}; "
                "compare a number of random() instead"
            )
        return self._one_of([1] * number)

    def _weights(self, weights: Any) -> list[Fraction]:
        return [_exact(weight, "used as a weight", self.tape) or Fraction(0) for weight in weights]

    def _one_of(self, weights: Any) -> int:
        chances = self._weights(weights)
        if not sum(chances, Fraction(0)) > 0 or min(chances) < 0:
            raise UndefinedDrawError(f"it draws with the weights {[float(chance) for chance in chances]}")
        return self.tape.draw_among(chances)

    def __getattr__(self, name: str) -> Any:
        raise NotEnumerableError(
            f"the sampler draws from generator.{name}, which is not enumerated; use random, uniform, choice, "
            "choices, integers or multinomial"
        )


def _sum_tolerance(p: Any) -> float:
    """The largest distance from 1 that numpy's ``choice`` allows for the sum of its probabilities."""
    is_short = isinstance(p, np.ndarray) and p.dtype in (np.float16, np.float32)
    return math.sqrt(np.finfo(p.dtype if is_short else np.float64).eps)


def _exact(value: Any, what: str, tape: Tape) -> Fraction | None:
    """Convert a number to its exact value.  Return ``None`` for another object.

    If the number looks rounded, note it on the tape.
    """
    if isinstance(value, UniformDraw) or hasattr(value, "is_python"):  # of torch
        raise NotEnumerableError(f"a random number is {what} another one, which has no finite cases")
    if hasattr(value, "new_tensor"):
        if value.numel() > 1:
            raise NotEnumerableError(
                f"a random number of numpy is {what} a tensor of {value.numel()} entries; draw it with torch"
            )
        value = value.item()
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    try:
        number = exact_number(value)
    except TypeError:
        return None
    except (ValueError, OverflowError):
        raise InvalidInputError(f"a random number is {what} {value}, which is not finite") from None
    if isinstance(value, (float, np.floating)) and number.denominator > SHORT_DENOMINATOR:
        tape.rounded = float(value)
    return number

"""The numbers of the checker: quotients of polynomials, whose comparisons are answered by known signs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import count, product
from typing import Any, NoReturn

import numpy as np
from flint import Ordering, fmpq, fmpz_mpoly_ctx

from spectheory.exact.proof.factoring import integer_factors
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.formal_number import FormalNumber

NEGATIVE, ZERO, POSITIVE, ANY = 1, 2, 4, 7
_SERIALS = count(1 << 40)


class RejectedProofError(InvalidInputError):
    """A stored proof does not prove its statement; the text says where."""


class Escape(BaseException):
    """The verifier asked a number for what only a rational number has."""


def reject(why: str) -> NoReturn:
    raise RejectedProofError(f"the proof does not hold: {why}")


class Ring:
    """Polynomials in some variables, and their factors."""

    def __init__(self, names: list[str]) -> None:
        self.polynomials = fmpz_mpoly_ctx.get(names, Ordering.degrevlex)
        self.factored: dict[str, tuple[int, list[tuple[str, int]]]] = {}

    def factors(self, polynomial: Any) -> tuple[int, list[tuple[str, int]]]:
        """The sign of the constant, and the irreducible factors with their exponents."""
        name = str(polynomial)
        if name not in self.factored:
            if polynomial.is_constant():
                value = 0 if polynomial.is_zero() else int(polynomial.leading_coefficient())
                self.factored[name] = (value > 0) - (value < 0), []
            else:
                constant, parts = integer_factors(polynomial)
                sign, found = (1 if constant > 0 else -1), []
                for part, times in parts:
                    if part.leading_coefficient() < 0:
                        part, sign = -part, sign * (-1) ** times
                    found.append((str(part), times))
                self.factored[name] = sign, found
        return self.factored[name]


class Answers:
    """What is known of the signs of factors where the verifier runs.

    Attributes:
        has_failed: a question was not answered, or a use refused, whatever the verifier did about it.
        serial: different for every run.
        of_drafts: what is known where the drafts are drawn.
    """

    def __init__(self, ring: Ring, known: Mapping[str, int]) -> None:
        self.ring, self.known, self.has_failed = ring, known, False
        self.serial = next(_SERIALS)
        self.of_drafts = self

    def quotient(self, numerator: Any) -> Quotient:
        """A polynomial as a number."""
        return Quotient(self, numerator, self.ring.polynomials.constant(1))

    def signs(self, numerator: Any, denominator: Any) -> int:
        """The signs that a quotient may have."""
        mask = POSITIVE
        for polynomial in (numerator, denominator):
            constant, factors = self.ring.factors(polynomial)
            if constant == 0:
                return ZERO
            mask = _turned(mask) if constant < 0 else mask
            for key, times in factors:
                sign = self.known.get(key, ANY)
                if times % 2 == 0:
                    sign = sign & ZERO | (POSITIVE if sign & ~ZERO else 0)
                mask = _product(mask, sign)
        return mask

    def answer(self, number: Quotient, wanted: int) -> bool:
        """Whether the sign is one of the wanted, which must be known."""
        signs = self.signs(number._top, number._bottom)
        if signs & wanted and signs & ~wanted:
            self.has_failed = True  # in case the verifier catches it
            reject("a comparison of the verifier, or a condition, is not decided at a leaf")
        return not signs & ~wanted

    def must(self, number: Quotient, mask: int, given: frozenset[tuple[int, ...]] = frozenset()) -> None:
        """Reject the proof unless a number has one of the signs, where the prefixes ``given`` are drafted."""
        if not self.answer(number, mask):
            reject("a condition of the statement does not hold at a leaf")

    def simplified(self, number: Quotient) -> Quotient:
        """An equal number."""
        return number

    def is_at_least_zero(self, number: Quotient) -> bool:
        """True where it is at least 0, False where it is at most 0; False where it is 0 throughout."""
        return bool(self.signs(*number.parts) & POSITIVE) and self.answer(number, ZERO | POSITIVE)

    def positive_part(self, number: Quotient) -> Quotient:
        """max(x, 0)."""
        return number if self.is_at_least_zero(number) else number * 0

    def quotient_or_zero(self, number: Quotient, divisor: Quotient) -> Quotient:
        """x/d, and 0 where d = 0."""
        return divisor * 0 if self.answer(divisor, ZERO) else number / divisor

    def shares(self, weights: list[Quotient], total: Quotient) -> list[Quotient]:
        """Weights divided by their sum; where that is 0, the weights."""
        return [Normalised(weight, weights, total) for weight in weights]

    def escape(self, what: str) -> NoReturn:
        self.has_failed = True
        raise Escape(what)

    def is_never_zero(self, polynomial: Any) -> bool:
        """Whether no factor of a polynomial may be 0."""
        return not any(self.known.get(key, ANY) & ZERO for key, _ in self.ring.factors(polynomial)[1])


def _turned(mask: int) -> int:
    return mask & ZERO | (POSITIVE if mask & NEGATIVE else 0) | (NEGATIVE if mask & POSITIVE else 0)


def _product(one: int, other: int) -> int:
    signs = {NEGATIVE: -1, ZERO: 0, POSITIVE: 1}
    masks = {-1: NEGATIVE, 0: ZERO, 1: POSITIVE}
    found = 0
    for a, b in product(signs, signs):
        if one & a and other & b:
            found |= masks[signs[a] * signs[b]]
    return found


class Quotient(FormalNumber):
    """A quotient of polynomials at a leaf."""

    def __init__(self, answers: Answers, numerator: Any, denominator: Any) -> None:
        self._answers, self._top, self._bottom = answers, numerator, denominator

    @property
    def parts(self) -> tuple[Any, Any]:
        """Numerator and denominator."""
        return self._top, self._bottom

    @property
    def is_nothing(self) -> bool:
        """Whether it is 0 everywhere."""
        return bool(self._top.is_zero())

    def _divided(self, numerator: Any, denominator: Any) -> Quotient:
        if denominator.is_one():
            return Quotient(self._answers, numerator, denominator)
        common = numerator.gcd(denominator)
        if denominator.leading_coefficient() < 0:
            common = -common
        return Quotient(self._answers, numerator // common, denominator // common)

    def refuse(self, what: str) -> NoReturn:
        self._answers.escape(what)

    def _pair(self, other: Any) -> tuple[Any, Any]:
        if isinstance(other, Quotient) and other._answers is self._answers:
            return other._top, other._bottom
        if isinstance(other, fmpq):
            other = Fraction(int(other.p), int(other.q))
        if isinstance(other, (int, np.integer, Fraction)):
            constant = self._answers.ring.polynomials.constant
            return constant(int(other.numerator)), constant(int(other.denominator))
        return self._answers.escape(f"arithmetic with {type(other).__name__}")

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = self._pair(other)
        n, d = self._top, self._bottom
        return self._divided(n + a, d) if b == d else self._divided(n * b + a * d, d * b)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = self._pair(other)
        return self._divided(self._top * a, self._bottom * b)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return Quotient(self._answers, -self._top, self._bottom)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = self._pair(other)
        return self + Quotient(self._answers, -a, b)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = self._pair(other)
        if self._answers.answer(Quotient(self._answers, a, b), ZERO):
            raise ZeroDivisionError("division of probabilities by zero")
        return self._divided(self._top * b, self._bottom * a)

    def __rtruediv__(self, other: Any) -> Any:
        return (self * 0 + other) / self

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, (int, np.integer)):
            self._answers.escape("a power")
        power = self * 0 + 1
        for _ in range(abs(int(exponent))):
            power = power * self
        return power if exponent >= 0 else 1 / power

    def __abs__(self) -> Any:
        return self if self._answers.is_at_least_zero(self) else -self

    def positive_part(self) -> Any:
        return self._answers.positive_part(self)

    def quotient_or_zero(self, numerator: Any) -> Any:
        return self._answers.quotient_or_zero(self * 0 + numerator, self)

    def normalised(self, rows: np.ndarray) -> np.ndarray:
        zero, result = self * 0, np.empty(rows.size, dtype=object)
        entries: list[Quotient] = []
        for row in rows.reshape((-1, rows.shape[-1])):
            weights = [zero + entry for entry in row]
            total = sum(weights, zero)
            entries += weights if total._top.is_zero() else self._answers.shares(weights, total)
        result[:] = entries
        return result.reshape(rows.shape)

    def _compare(self, other: Any, wanted: int) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self._answers.answer(self - other, wanted)

    def __eq__(self, other: object) -> Any:
        return self._compare(other, ZERO)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, NEGATIVE | POSITIVE)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, NEGATIVE)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, NEGATIVE | ZERO)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, POSITIVE)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, ZERO | POSITIVE)

    def __bool__(self) -> bool:
        return self._answers.answer(self, NEGATIVE | POSITIVE)

    __hash__ = FormalNumber.__hash__  # lost where a class defines ==

    @property
    def serial(self) -> int:
        return self._answers.serial


class Normalised(Quotient):
    """weight / total, or the weight where the total is 0; divided when it is used."""

    def __init__(self, weight: Quotient, row: list[Quotient], total: Quotient) -> None:
        self._answers, self.weight, self.row, self.total = weight._answers, weight, row, total
        self.used: Quotient | None = None

    def rate_of(self, stop: Quotient) -> Quotient:
        """A stop probability divided by the total, as if that were not 0."""
        (a, b), (c, d) = stop.parts, self.total.parts
        return stop._divided(a * d, b * c)

    def _use(self) -> Quotient:
        if self.used is None:
            self.used = self.weight if self._answers.answer(self.total, ZERO) else self.weight / self.total
        return self.used

    _top = property(lambda self: self._use()._top)
    _bottom = property(lambda self: self._use()._bottom)

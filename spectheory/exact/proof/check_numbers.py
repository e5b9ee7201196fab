"""The numbers of the checker: quotients of polynomials, whose comparisons are answered by known signs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count, product
from typing import Any, NoReturn

import numpy as np
from flint import Ordering, fmpz_mpoly_ctx

from spectheory.exact.proof.factoring import integer_factors
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.formal_number import FormalNumber, rational_parts

NEGATIVE, ZERO, POSITIVE, ANY = 1, 2, 4, 7
_SERIALS = count(1 << 40)


class RejectedProofError(InvalidInputError):
    """A stored proof does not prove its statement; the text says where."""


class Escape(BaseException):
    """The verifier asked a number for what only a rational number has."""


def reject(why: str) -> NoReturn:
    raise RejectedProofError(f"the proof does not hold: {why}")


MOST_KEPT, MOST_FACTORED = 200_000, 20_000
"""Results, and polynomials by their text, that are kept: those of large ones fill gigabytes."""


class Ring:
    """Polynomials in some variables, their quotients in lowest terms, and their factors.

    The verifier runs at every leaf from the same polynomials on, and most of what it computes is the same.
    So results are kept by the identity of their operands, which live as long as they do.
    """

    def __init__(self, names: list[str]) -> None:
        self.polynomials = fmpz_mpoly_ctx.get(names, Ordering.degrevlex)
        self._kept: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
        self._constants: dict[int, Any] = {}
        self._factored: dict[str, tuple[int, list[tuple[str, int]]]] = {}

    def _once(self, of: Callable[..., Any], *parts: Any) -> Any:
        key = of.__name__, *map(id, parts)
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = of(*parts), parts
        return self._kept[key][0]

    def constant(self, value: int) -> Any:
        """A whole number as a polynomial."""
        if value not in self._constants:
            self._constants[value] = self.polynomials.constant(value)
        return self._constants[value]

    def negated(self, polynomial: Any) -> Any:
        """-f."""
        return self._once(self._negated, polynomial)

    def sum(self, n: Any, d: Any, a: Any, b: Any) -> tuple[Any, Any]:
        """n/d + a/b."""
        return self._once(self._sum, n, d, a, b)

    def product(self, n: Any, d: Any, a: Any, b: Any) -> tuple[Any, Any]:
        """n/d · a/b."""
        return self._once(self._product, n, d, a, b)

    def factors(self, polynomial: Any) -> tuple[int, list[tuple[str, int]]]:
        """The sign of the constant, and the irreducible factors with their exponents."""
        return self._once(self._factors, polynomial)

    @staticmethod
    def _negated(polynomial: Any) -> Any:
        return -polynomial

    def _sum(self, n: Any, d: Any, a: Any, b: Any) -> tuple[Any, Any]:
        return self._in_lowest_terms(n + a, d) if b == d else self._in_lowest_terms(n * b + a * d, d * b)

    def _product(self, n: Any, d: Any, a: Any, b: Any) -> tuple[Any, Any]:
        return self._in_lowest_terms(n * a, d * b)

    def _in_lowest_terms(self, numerator: Any, denominator: Any) -> tuple[Any, Any]:
        if numerator.is_zero():
            return self.constant(0), self.constant(1)
        if not denominator.is_one():
            common = numerator.gcd(denominator)
            if denominator.leading_coefficient() < 0:
                common = -common
            if not common.is_one():
                numerator, denominator = numerator // common, denominator // common
        return numerator, self.constant(1) if denominator.is_one() else denominator

    def _factors(self, polynomial: Any) -> tuple[int, list[tuple[str, int]]]:
        if polynomial.is_constant():
            value = 0 if polynomial.is_zero() else int(polynomial.leading_coefficient())
            return (value > 0) - (value < 0), []
        name = str(polynomial)
        if name not in self._factored:
            if len(self._factored) >= MOST_FACTORED:
                self._factored.clear()
            constant, parts = integer_factors(polynomial)
            sign, found = (1 if constant > 0 else -1), []
            for part, times in parts:
                if part.leading_coefficient() < 0:
                    part, sign = -part, sign * (-1) ** times
                found.append((str(part), times))
            self._factored[name] = sign, found
        return self._factored[name]


class Answers:
    """What is known of the signs of factors where the verifier runs.

    Attributes:
        has_failed: a question was not answered, or a use refused, whatever the verifier did about it.
        serial: different for every run.
        with_flint: whether the verifier is given python-flint's rationals where the rows are not formal.
        of_drafts: what is known where the drafts are drawn.
    """

    def __init__(self, ring: Ring, known: Mapping[str, int]) -> None:
        self.ring, self.known, self.has_failed, self.with_flint = ring, known, False, True
        self.serial = next(_SERIALS)
        self.of_drafts = self

    def quotient(self, numerator: Any) -> Quotient:
        """A polynomial as a number."""
        return Quotient(self, numerator, self.ring.constant(1))

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
                mask = _PRODUCTS[mask][sign]
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


def _products() -> list[list[int]]:
    """The signs that a product may have, by those of its factors."""
    signs = {NEGATIVE: -1, ZERO: 0, POSITIVE: 1}
    masks = {-1: NEGATIVE, 0: ZERO, 1: POSITIVE}
    table = [[0] * (ANY + 1) for _ in range(ANY + 1)]
    for one, other, a, b in product(range(ANY + 1), range(ANY + 1), signs, signs):
        if one & a and other & b:
            table[one][other] |= masks[signs[a] * signs[b]]
    return table


_PRODUCTS = _products()


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

    def refuse(self, what: str) -> NoReturn:
        self._answers.escape(what)

    def _pair(self, other: Any) -> tuple[Any, Any] | None:
        """Numerator and denominator of the other operand; ``None`` for an array, whose entries come next."""
        kind = type(other)
        if kind in (Quotient, Normalised) and other._answers is self._answers:
            return other._top, other._bottom
        if kind is np.ndarray:
            return None
        parts = rational_parts(other, self._answers.with_flint)
        if parts is not None:
            return self._answers.ring.constant(parts[0]), self._answers.ring.constant(parts[1])
        return self._answers.escape(f"arithmetic with {kind.__name__}")

    def __add__(self, other: Any) -> Any:
        pair = self._pair(other)
        if pair is None:
            return NotImplemented
        return Quotient(self._answers, *self._answers.ring.sum(*self.parts, *pair))

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        pair = self._pair(other)
        if pair is None:
            return NotImplemented
        return Quotient(self._answers, *self._answers.ring.product(*self.parts, *pair))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return Quotient(self._answers, self._answers.ring.negated(self._top), self._bottom)

    def __sub__(self, other: Any) -> Any:
        pair = self._pair(other)
        if pair is None:
            return NotImplemented
        top = self._answers.ring.negated(pair[0])
        return Quotient(self._answers, *self._answers.ring.sum(*self.parts, top, pair[1]))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        pair = self._pair(other)
        if pair is None:
            return NotImplemented
        if self._answers.answer(Quotient(self._answers, *pair), ZERO):
            raise ZeroDivisionError("division of probabilities by zero")
        return Quotient(self._answers, *self._answers.ring.product(*self.parts, *reversed(pair)))

    def __rtruediv__(self, other: Any) -> Any:
        return (self * 0 + other) / self

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) is not int:
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
        difference = self.__sub__(other)
        return difference if difference is NotImplemented else self._answers.answer(difference, wanted)

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
        c, d = self.total.parts
        return Quotient(self._answers, *self._answers.ring.product(*stop.parts, d, c))

    def _use(self) -> Quotient:
        if self.used is None:
            self.used = self.weight if self._answers.answer(self.total, ZERO) else self.weight / self.total
        return self.used

    _top = property(lambda self: self._use()._top)
    _bottom = property(lambda self: self._use()._bottom)

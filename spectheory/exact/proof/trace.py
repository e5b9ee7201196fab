"""One run of a verifier: numbers that build a graph, and the comparisons that it made.

Every number has a value at a guide point, so that each comparison has an answer and a run is never
interrupted.  Its questions and answers are one path of a tree of runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from traceback import extract_stack
from typing import Any, NoReturn

import numpy as np
from flint import fmpq

from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, NEGATIVE, POSITIVE, ZERO, sign_of
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.formal_number import FormalNumber, rational_parts

_SERIALS = count()
Question = tuple[Node, int, bool]
"""Whether the sign of a node is in a mask, and the answer."""


class NotFollowedError(BaseException):
    """Code asked a number for what it does not have; not an ``Exception``, so that few catch it."""


class Run:
    """The questions of one run, and what was refused.

    Args:
        graph: of the numbers.
        decide: answers a question where there is no guide point; it is given the questions before.

    Attributes:
        asked: the questions, each once.
        refused: what was refused first, with its place; empty if nothing was.
        with_flint: whether the verifier is given python-flint's rationals where rows are rational.
        serial: different for every run.
    """

    def __init__(self, graph: Graph, decide: Callable[[Node, int, list[Question]], bool]) -> None:
        self.graph, self._decide = graph, decide
        self.asked: list[Question] = []
        self._answers: dict[tuple[int, int], bool] = {}
        self.refused, self.with_flint, self.serial = "", True, next(_SERIALS)

    def has_sign(self, number: Number, mask: int) -> bool:
        """Whether the sign of a number is in a mask, at the guide point."""
        node = number.node
        if node.operation == "constant":
            return bool(sign_of(node.constant) & mask)
        key = node.number, mask
        if key not in self._answers:
            if number.value is None:
                answer = self._decide(node, mask, self.asked)
            else:
                answer = bool(sign_of(number.value) & mask)
            self._answers[key] = answer
            self.asked.append((node, mask, answer))
        return self._answers[key]

    def refuse(self, what: str) -> NoReturn:
        """Refuse, and keep it: code that catches the exception is refused too."""
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

    def node_of(self, value: Any) -> Node:
        """The node of a number that a verifier returned."""
        if type(value) is Number:
            return value.node
        parts = rational_parts(value, True)
        if parts is None:
            self.refused = self.refused or f"a result of type {type(value).__name__}"
            raise NotFollowedError(self.refused)
        return self.graph.constant(*parts)


def _operators(name: str, compute: Callable[[Number, Number], Number]) -> tuple[Any, Any]:
    """An operator of numbers, and the same with the operands exchanged."""

    def forwards(self: Number, other: Any) -> Any:
        one = self._other(other, name)
        return NotImplemented if one is None else compute(self, one)

    def backwards(self: Number, other: Any) -> Any:
        one = self._other(other, name)
        return NotImplemented if one is None else compute(one, self)

    return forwards, backwards


class Number(FormalNumber):
    """A node in one run, with its value at the guide point; ``None`` if there is no guide."""

    __slots__ = ("node", "run", "value")

    def __init__(self, run: Run, node: Node, value: Any) -> None:
        self.run, self.node, self.value = run, node, value

    def refuse(self, what: str) -> NoReturn:
        self.run.refuse(f"{what} of a probability")

    @property
    def serial(self) -> int:
        return self.run.serial

    def _other(self, other: Any, operation: str) -> Number | None:
        """An operand as a number of this run; ``None`` for an array or a random number, which take over."""
        kind = type(other)
        if kind is Number:
            if other.run is not self.run:
                self.run.refuse("a number of an earlier call")
            return other
        if kind is np.ndarray or getattr(kind, "takes_numbers", False):
            return None
        parts = rational_parts(other, self.run.with_flint)
        if parts is None:
            self.run.refuse(f"{operation} of a probability and a {kind.__name__}")
        return Number(self.run, self.run.graph.constant(*parts), fmpq(*parts))

    def _made(self, node: Node, value: Callable[[], fmpq], *others: Number) -> Number:
        """A number of this run; without a value if it is computed from one without."""
        constant = node.constant
        if constant is not None:
            return Number(self.run, node, constant)
        known = self.value is not None and all(other.value is not None for other in others)
        return Number(self.run, node, value() if known else None)

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) is not int:
            self.run.refuse(f"a power with exponent {type(exponent).__name__}")
        power: Any = Number(self.run, self.run.graph.one, fmpq(1))
        for _ in range(abs(int(exponent))):
            power = power * self
        return power if exponent >= 0 else 1 / power

    def __neg__(self) -> Any:
        return 0 - self

    def __abs__(self) -> Any:
        return self.positive_part() + (-self).positive_part()

    def positive_part(self) -> Number:
        node = self.run.graph.positive_part(self.node)
        return self._made(node, lambda: max(self.value, fmpq(0)))

    def quotient_or_zero(self, numerator: Any) -> Any:
        one = self._other(numerator, "/")
        if one is None:
            return NotImplemented
        graph, divisor = self.run.graph, self.node.constant
        if divisor is not None:
            node = graph.zero if divisor == 0 else graph.divide(one.node, self.node)
        else:
            node = graph.node("quotient", one.node, self.node)
        return self._made(node, lambda: one.value / self.value if self.value else fmpq(0), one)

    def normalised(self, rows: np.ndarray) -> np.ndarray:
        shares = [share for row in rows.reshape((-1, rows.shape[-1])) for share in self._shares(row)]
        result = np.empty(rows.size, dtype=object)
        result[:] = shares
        return result.reshape(rows.shape)

    def _shares(self, row: np.ndarray) -> list[Number]:
        weights: list[Number] = [self * 0 + entry for entry in row]
        total = weights[0]
        for weight in weights[1:]:
            total = total + weight
        divisor, nodes = total.node.constant, [weight.node for weight in weights]
        if divisor is not None:
            return weights if divisor == 0 else [weight._ratio(total) for weight in weights]
        return [weight._share_of(total, nodes) for weight in weights]

    def _share_of(self, total: Number, nodes: list[Node]) -> Number:
        node = self.run.graph.node("share", self.node, total.node, *nodes)
        return self._made(node, lambda: self.value / total.value if total.value else self.value, total)

    def _ratio(self, other: Number) -> Number:
        if other.value is not None and other.value == 0:
            raise ZeroDivisionError("division of probabilities by zero")
        node = self.run.graph.divide(self.node, other.node)
        return self._made(node, lambda: self.value / other.value, other)

    def _sum(self, other: Number) -> Number:
        node = self.run.graph.add(self.node, other.node)
        return self._made(node, lambda: self.value + other.value, other)

    def _difference(self, other: Number) -> Number:
        node = self.run.graph.subtract(self.node, other.node)
        return self._made(node, lambda: self.value - other.value, other)

    def _product(self, other: Number) -> Number:
        node = self.run.graph.multiply(self.node, other.node)
        return self._made(node, lambda: self.value * other.value, other)

    __add__, __radd__ = _operators("+", _sum)
    __sub__, __rsub__ = _operators("-", _difference)
    __mul__, __rmul__ = _operators("*", _product)
    __truediv__, __rtruediv__ = _operators("/", _ratio)

    def _compared(self, other: Any, operation: str, mask: int) -> Any:
        one = self._other(other, operation)
        return NotImplemented if one is None else self.run.has_sign(self._difference(one), mask)

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
        return self._compared(other, ">=", AT_LEAST_ZERO)

    def __bool__(self) -> bool:
        return self.run.has_sign(self, NEGATIVE | POSITIVE)

    __hash__ = FormalNumber.__hash__  # lost where a class defines ==

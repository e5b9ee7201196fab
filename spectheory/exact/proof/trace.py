"""One run of a verifier: numbers that build a graph, and the comparisons that it makes.

A comparison is a question, whether the sign of a node is in a mask.  A run ends at the first question without
an answer, or where it asks a number for what a proof does not follow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from traceback import extract_stack
from typing import Any, NoReturn

import numpy as np

from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, NEGATIVE, POSITIVE, ZERO, sign_of
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.formal_number import FormalNumber, rational_parts


class EndOfRunError(BaseException):
    """A run ends inside of the code of a verifier; not an ``Exception``, so that few catch it."""


class Run:
    """A run, and why it ended before its end.

    Args:
        graph: of the numbers.
        decide: answers a question; ``None`` where the answer is open.
        with_flint: whether the verifier is given python-flint's rationals where rows are rational.

    Attributes:
        is_open: whether it ended at a question.  Nothing counts that the code does after that.
        refused: what was asked for that is not followed, with its place; empty if nothing was.
    """

    def __init__(self, graph: Graph, decide: Callable[[Node, int], bool | None], with_flint: bool) -> None:
        self.graph, self._decide, self.with_flint = graph, decide, with_flint
        self._answers: dict[tuple[int, int], bool] = {}
        self.is_open, self.refused = False, ""

    def has_sign(self, node: Node, mask: int) -> bool:
        """Whether the sign of a node is in a mask."""
        if node.constant is not None:
            return bool(sign_of(node.constant) & mask)
        key = node.number, mask
        if key not in self._answers:
            answer = None if self.is_open else self._decide(node, mask)
            if answer is None:
                self.is_open = True
                raise EndOfRunError
            self._answers[key] = answer
        return self._answers[key]

    def refuse(self, what: str) -> NoReturn:
        """Refuse, and keep it: code that catches the exception is refused too."""
        own = (str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix, "<frozen")
        frames = [frame for frame in extract_stack() if not frame.filename.startswith(own)]
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        self._refuse(f"{what}{place}")

    def _refuse(self, what: str) -> NoReturn:
        if not self.is_open:
            self.refused = self.refused or what
        raise EndOfRunError

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
            self._refuse(f"a result of type {type(value).__name__}")
        return self.graph.constant(*parts)


def _operators(name: str, combine: Callable[[Graph, Node, Node], Node]) -> tuple[Any, Any]:
    """An operator of numbers, and the same with the operands exchanged."""

    def forwards(self: Number, other: Any) -> Any:
        node = self.operand(other, name)
        return NotImplemented if node is None else self.made(combine(self.run.graph, self.node, node))

    def backwards(self: Number, other: Any) -> Any:
        node = self.operand(other, name)
        return NotImplemented if node is None else self.made(combine(self.run.graph, node, self.node))

    return forwards, backwards


def _comparison(name: str, mask: int) -> Any:
    def compare(self: Number, other: Any) -> Any:
        node = self.operand(other, name)
        if node is None:
            return NotImplemented
        return self.run.has_sign(self.run.graph.subtract(self.node, node), mask)

    return compare


class Number(FormalNumber):
    """A node in one run."""

    __slots__ = ("node", "run")

    def __init__(self, run: Run, node: Node) -> None:
        self.run, self.node = run, node

    def made(self, node: Node) -> Number:
        """Another number of this run."""
        return Number(self.run, node)

    def refuse(self, what: str) -> NoReturn:
        self.run.refuse(f"{what} of a probability")

    @property
    def serial(self) -> int:
        return id(self.run)

    def operand(self, other: Any, operation: str) -> Node | None:
        """The node of an operand; ``None`` for an array or a random number, which take over."""
        kind = type(other)
        if kind is Number:
            if other.run is not self.run:
                self.run.refuse("a number of an earlier call")
            return other.node
        if kind is np.ndarray or getattr(kind, "takes_numbers", False):
            return None
        parts = rational_parts(other, self.run.with_flint)
        if parts is None:
            self.run.refuse(f"{operation} of a probability and a {kind.__name__}")
        return self.run.graph.constant(*parts)

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) is not int:
            self.run.refuse(f"a power with exponent {type(exponent).__name__}")
        power: Any = self.made(self.run.graph.product([self.node] * abs(exponent)))
        return power if exponent >= 0 else 1 / power

    def __neg__(self) -> Any:
        return 0 - self

    def __abs__(self) -> Any:
        return self.positive_part() + (-self).positive_part()

    def positive_part(self) -> Number:
        return self.made(self.run.graph.positive_part(self.node))

    def quotient_or_zero(self, numerator: Any) -> Any:
        node = self.operand(numerator, "/")
        return NotImplemented if node is None else self.made(self.run.graph.quotient(node, self.node))

    def normalised(self, rows: np.ndarray) -> np.ndarray:
        result = np.empty(rows.shape, dtype=object)
        for place in np.ndindex(rows.shape[:-1]):
            weights: Any = [self.operand(entry, "/") for entry in rows[place]]
            result[place] = list(map(self.made, self.run.graph.shares(weights)))
        return result

    __add__, __radd__ = _operators("+", Graph.add)
    __sub__, __rsub__ = _operators("-", Graph.subtract)
    __mul__, __rmul__ = _operators("*", Graph.multiply)
    __truediv__, __rtruediv__ = _operators("/", Graph.divide)
    __lt__, __le__ = _comparison("<", NEGATIVE), _comparison("<=", NEGATIVE | ZERO)
    __gt__, __ge__ = _comparison(">", POSITIVE), _comparison(">=", AT_LEAST_ZERO)
    __eq__, __ne__ = _comparison("==", ZERO), _comparison("!=", NEGATIVE | POSITIVE)

    def __bool__(self) -> bool:
        return self.run.has_sign(self.node, NEGATIVE | POSITIVE)

    __hash__ = FormalNumber.__hash__  # lost where a class defines ==

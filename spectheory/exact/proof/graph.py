"""What a verifier computes, as a graph: one node for every number, equal computations are one node.

===============  ===========================================================================
operation        number
===============  ===========================================================================
``entry``        p(x|a) or q(x|a): the letter, the context a and the token x
``constant``     a rational: numerator and denominator
``+ - * /``      of two nodes; a divisor is not 0 where a verifier divides
``positive``     max(x, 0)
``quotient``     n / d, and 0 where d = 0
``share``        w / W, and w where W = 0: of the weight w in a row with the sum W, and all its weights
``mass``         s times a share: the stop s, the weight w, the sum W, and all weights
``case``         the product of all arguments; those after a 0 are not computed
===============  ===========================================================================

No run asks which case of the last ones holds; a region does when it evaluates them.
"""

from __future__ import annotations

import operator
from typing import Any

from flint import fmpq

from spectheory.exact.proof.numbers import Field, Ring
from spectheory.pairs.contexts import Context

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
COMPUTE: dict[str, Any] = {"+": Field.add, "-": Field.subtract, "*": Field.multiply}
MOST_ATOMS = 100
"""More variables than a polynomial of flint's takes well."""


class Node:
    """A number of a graph.

    Attributes:
        operation, arguments: as in the table above.
        number: in the order of appearance.
        rows: the contexts whose rows it is computed from.
        divides: whether code may divide by zero when it computes the node.
    """

    __slots__ = ("arguments", "divides", "number", "operation", "rows")

    def __init__(self, operation: str, arguments: tuple[Any, ...], number: int) -> None:
        self.operation, self.arguments, self.number = operation, arguments, number
        below = [argument for argument in arguments if type(argument) is Node]
        rows = [arguments[1:2]] if operation == "entry" else [node.rows for node in below]
        self.rows: frozenset[Context] = frozenset().union(*rows)
        self.divides: bool = operation == "/" or any(node.divides for node in below)

    @property
    def constant(self) -> fmpq | None:
        """The value of a constant."""
        return fmpq(*self.arguments) if self.operation == "constant" else None


class Graph(Ring[Node]):
    """The nodes of all runs of a proof."""

    def __init__(self) -> None:
        self._table: dict[Any, Node] = {}
        self._signs: dict[int, bool] = {}
        self.zero, self.one = self.constant(0), self.constant(1)

    def node(self, operation: str, *arguments: Any) -> Node:
        """The one node for an operation."""
        key = (operation, *(a.number if type(a) is Node else a for a in arguments))
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = Node(operation, arguments, len(self._table))
        return found

    def constant(self, numerator: int, denominator: int = 1) -> Node:
        return self.node("constant", numerator, denominator)

    def rational(self, value: fmpq) -> Node:
        return self.constant(int(value.p), int(value.q))

    def entry(self, letter: str, context: Context, token: int) -> Node:
        return self.node("entry", letter, context, token)

    def divide(self, one: Node, other: Node) -> Node:
        if other is self.zero:
            raise ZeroDivisionError("division of probabilities by zero")
        return one if other is self.one else self._result("/", one, other)

    def quotient(self, one: Node, other: Node) -> Node:
        """The quotient, and 0 where the divisor is 0."""
        if other.constant is None:
            return self.node("quotient", one, other)
        return self.zero if other is self.zero else self.divide(one, other)

    def shares(self, weights: list[Node]) -> list[Node]:
        """The weights divided by their sum, and the weights where it is 0."""
        total = self.sum(weights)
        if total.constant is None:
            return [self.node("share", weight, total, *weights) for weight in weights]
        return weights if total is self.zero else [self.divide(weight, total) for weight in weights]

    def _result(self, operation: str, one: Node, other: Node) -> Node:
        a, b = one.constant, other.constant
        if a is not None and b is not None:
            return self.rational(OPERATIONS[operation](a, b))
        if operation in ("+", "*"):
            one, other = sorted((one, other), key=lambda node: node.number)
        return self.node(operation, one, other)

    def positive_part(self, node: Node) -> Node:
        if node.operation == "positive":
            return node
        value = node.constant
        return self.node("positive", node) if value is None else node if value > 0 else self.zero

    def mass(self, stop: Node, entry: Node) -> Node:
        """The product of a stop probability and an entry of its correction row."""
        if entry.operation == "share":
            return self.node("mass", stop, *entry.arguments) if stop is not self.zero else self.zero
        return self.multiply(stop, entry)

    def is_at_least_zero(self, node: Node, given: Node | None = None) -> bool:
        """Whether a node is at least 0 by its form, whatever the rows are; ``given`` is at least 0."""
        memo = self._signs if given is None else {given.number: True}
        return self._is_at_least_zero(node, memo)

    def _is_at_least_zero(self, node: Node, memo: dict[int, bool]) -> bool:
        found = memo.get(node.number)
        if found is None:
            found = memo[node.number] = self._at_least_zero_by_form(node, memo)
        return found

    def _at_least_zero_by_form(self, node: Node, memo: dict[int, bool]) -> bool:
        operation, arguments = node.operation, node.arguments

        def holds(*nodes: Node) -> bool:
            return all(self._is_at_least_zero(one, memo) for one in nodes)

        if operation in ("entry", "positive"):
            return True
        if operation == "constant":
            return bool(node.constant >= 0)  # type: ignore[operator]
        if operation in ("+", "*", "/", "quotient", "case"):
            return holds(*arguments)
        if operation == "share":  # the first two are one of the others, and their sum
            return holds(*arguments[2:])
        if operation == "mass":
            return holds(arguments[0], *arguments[3:])
        one, other = arguments
        return one is self.one and self._is_at_most_one(other, memo)

    def _is_at_most_one(self, node: Node, memo: dict[int, bool]) -> bool:
        """Whether a node is at most 1 by its form: p, 1 - x, max(1 - x, 0), or x/(x + y), with x, y ≥ 0."""
        operation, arguments = node.operation, node.arguments
        if operation == "entry":
            return True
        if operation == "positive":
            return self._is_at_most_one(arguments[0], memo) if arguments[0].operation == "-" else False
        if operation == "-":
            return arguments[0] is self.one and self._is_at_least_zero(arguments[1], memo)
        if operation == "quotient" and arguments[1].operation == "+":
            part, terms = arguments[0], arguments[1].arguments
            return part in terms and all(self._is_at_least_zero(term, memo) for term in terms)
        return False

    def is_zero_by_form(self, node: Node, vocab_size: int) -> bool:
        """Whether a node is the polynomial 0 in the entries and in all that is not a polynomial of them; the
        entries of a target row sum to 1.
        """
        polynomials, atoms, waiting = dict[int, Node](), dict[int, int](), [node]
        while waiting:
            one = waiting.pop()
            if one.number not in polynomials and one.number not in atoms:
                if one.operation in ("+", "-", "*"):
                    polynomials[one.number] = one
                    waiting += one.arguments
                elif one.operation != "constant":
                    atoms[one.number] = len(atoms)
        if len(atoms) > MOST_ATOMS:
            return False
        field = Field([f"a{number}" for number in atoms] or ["a"], [()] * max(len(atoms), 1))
        values = {number: field.variables[place] for number, place in atoms.items()}
        for context in node.rows:
            *most, last = (self.entry("p", context, token).number for token in range(vocab_size))
            if atoms.keys() >= {*most, last}:
                values[last] = field.subtract(field.one, field.sum(values[number] for number in most))
        for number in sorted(polynomials):  # arguments have smaller numbers
            operation, arguments = polynomials[number].operation, polynomials[number].arguments
            both = (
                field.constant(*a.arguments) if a.operation == "constant" else values[a.number]
                for a in arguments
            )
            values[number] = COMPUTE[operation](field, *both)
        return node is self.zero or values.get(node.number) is field.zero

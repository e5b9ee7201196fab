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
===============  ===========================================================================

The last four do not ask which case holds; a region does when it evaluates them.
"""

from __future__ import annotations

import operator
from typing import Any

from flint import Ordering, fmpq, fmpz_mpoly_ctx

from spectheory.exact.proof.numbers import Ring
from spectheory.pairs.contexts import Context

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
MOST_ATOMS = 100
"""More variables than a polynomial of flint's takes well."""


class Node:
    """A number of a graph.

    Attributes:
        operation, arguments: as in the table above.
        number: in the order of appearance.
        rows: the contexts whose rows it is computed from.
    """

    __slots__ = ("arguments", "number", "operation", "rows")

    def __init__(
        self, operation: str, arguments: tuple[Any, ...], number: int, rows: frozenset[Context]
    ) -> None:
        self.operation, self.arguments, self.number, self.rows = operation, arguments, number, rows

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
            below = [argument.rows for argument in arguments if type(argument) is Node]
            rows = frozenset([arguments[1]]) if operation == "entry" else frozenset[Context]().union(*below)
            found = self._table[key] = Node(operation, arguments, len(self._table), rows)
        return found

    def constant(self, numerator: int, denominator: int = 1) -> Node:
        return self.node("constant", numerator, denominator)

    def rational(self, value: fmpq) -> Node:
        return self.constant(int(value.p), int(value.q))

    def entry(self, letter: str, context: Context, token: int) -> Node:
        return self.node("entry", letter, context, token)

    def divide(self, one: Node, other: Node) -> Node:
        return one if other is self.one else self._result("/", one, other)

    def _result(self, operation: str, one: Node, other: Node) -> Node:
        a, b = one.constant, other.constant
        if a is not None and b is not None and (operation != "/" or b != 0):
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
        if operation in ("+", "*", "/", "quotient"):
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

    def is_zero_by_form(self, node: Node) -> bool:
        """Whether a node is the polynomial 0 in the entries and in all that is not a polynomial of them."""
        atoms: dict[int, int] = {}
        seen: set[int] = set()
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one.number in seen:
                continue
            seen.add(one.number)
            if one.operation in ("+", "-", "*"):
                waiting += one.arguments
            elif one.operation != "constant":
                atoms[one.number] = len(atoms)
        if len(atoms) > MOST_ATOMS:
            return False
        context = fmpz_mpoly_ctx.get([f"a{number}" for number in atoms] or ["a"], Ordering.degrevlex)
        values: dict[int, Any] = {number: context.gens()[place] for number, place in atoms.items()}
        scales: dict[int, int] = dict.fromkeys(atoms, 1)  # a value is a polynomial / a whole number

        def value(one: Node) -> tuple[Any, int]:
            if one.number not in values:
                if one.operation == "constant":
                    values[one.number], scales[one.number] = map(int, one.arguments)
                    values[one.number] = context.constant(values[one.number])
                else:
                    (a, b), (c, d) = map(value, one.arguments)
                    if one.operation == "*":
                        values[one.number], scales[one.number] = a * c, b * d
                    else:
                        turned = c if one.operation == "+" else -c
                        values[one.number], scales[one.number] = a * d + turned * b, b * d
            return values[one.number], scales[one.number]

        return bool(value(node)[0].is_zero())

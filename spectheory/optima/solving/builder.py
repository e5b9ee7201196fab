"""A builder to write a linear program constraint by constraint, as a paper displays it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import to_fractions
from spectheory.optima.solving.linear_program import (
    ConstraintBlock,
    Direction,
    LinearProgram,
    Repair,
    Sense,
)


class ProgramBuilder:
    """Builds a linear program over x ≥ 0 from variables, an objective and named constraints.

    The program is exact if every number in it is an integer or a Fraction.  A single float makes it float64.

    Args:
        name: the program in words, for error messages.
        source: paper and theorem.

    Example:
        The best block efficiency with one drafted path (greedy2026 Theorem 3.3), on two tokens and L = 1:

        >>> from fractions import Fraction
        >>> p = np.array([1, Fraction(1, 3), Fraction(2, 3)])
        >>> q = np.array([1, Fraction(2, 3), Fraction(1, 3)])
        >>> model = ProgramBuilder("single-path LP", "greedy2026 Theorem 3.3")
        >>> D = model.variables([(), (0,), (1,)])
        >>> model.maximise(sum(D * p))
        >>> model.add("root budget", D[0] == 1)
        >>> model.add("monotone budgets", D[0] >= D[1:])
        >>> model.add("prefix matching", D * p <= q)
        >>> from spectheory.optima import solve_exact
        >>> print(solve_exact(model.program()).value)
        5/3
    """

    def __init__(self, name: str, source: str = "-") -> None:
        self.name, self.source = name, source
        self._variables: dict[Hashable, int] = {}
        self._direction: Direction = "max"
        self._objective: Any = None
        self._constraints: dict[str, tuple[str, Constraint]] = {}

    def variables(self, labels: Sequence[Hashable]) -> Expressions:
        """Add variables ≥ 0, one per label, and return them as an array of linear expressions.

        These arrays support numpy's addition, broadcasting, reshape, sum and indexing.  ``matrix @ array``
        needs a matrix of numbers.

        Raises:
            InvalidInputError: a label is already used.
        """
        first = len(self._variables)
        for label in labels:
            if label in self._variables:
                raise InvalidInputError(f"{self.name}: two variables are labelled {label!r}")
            self._variables[label] = len(self._variables)
        made = np.empty(len(labels), dtype=object)
        made[:] = [_Linear({first + number: 1}, 0) for number in range(len(labels))]
        return made.view(Expressions)

    def maximise(self, objective: Expressions) -> None:
        """Set the objective to maximise, one linear expression."""
        self._direction, self._objective = "max", objective

    def minimise(self, objective: Expressions) -> None:
        """Set the objective to minimise, one linear expression."""
        self._direction, self._objective = "min", objective

    def add(self, name: str, constraint: Constraint, equation: str = "-") -> None:
        """Add a displayed constraint: one row for every entry of the compared arrays.

        Args:
            name: the constraint in words; the key of its dual multipliers.
            constraint: a comparison of expressions by ``<=``, ``>=`` or ``==``.
            equation: its source, for example ``"greedy2026 Eq. 9"``.

        Raises:
            InvalidInputError: the name is already used, or ``constraint`` is not a comparison of expressions.
        """
        if not isinstance(constraint, Constraint):
            raise InvalidInputError(
                f"{self.name}: constraint {name!r} is {constraint!r}; compare expressions in the program's "
                "variables by <=, >= or =="
            )
        if name in self._constraints:
            raise InvalidInputError(f"{self.name}: two constraints are named {name!r}")
        self._constraints[name] = equation, constraint

    def program(self, box: float | None = None, repair: Repair | None = None) -> LinearProgram:
        """Return the program with all constraints added so far.

        Args:
            box, repair: as in ``LinearProgram``.  Certified bounds of float solutions need them.

        Raises:
            InvalidInputError: the objective is missing, or is not one linear expression without a constant.
        """
        cost = _flat(self._objective)
        if len(cost) != 1 or not isinstance(cost[0], _Linear):
            raise InvalidInputError(
                f"{self.name}: expected one linear expression as the objective, got {self._objective!r}; "
                "give it to maximise or minimise"
            )
        if cost[0].constant:
            raise InvalidInputError(
                f"{self.name}: the objective has the constant {cost[0].constant}; leave it out and add it to "
                "the value"
            )
        rows = {name: _flat(rule.difference) for name, (_, rule) in self._constraints.items()}
        numbers = [
            number
            for row in (*cost, *(row for part in rows.values() for row in part))
            for number in (*row.terms.values(), row.constant)
        ]
        is_exact = not any(isinstance(number, (float, np.floating)) for number in numbers)
        count = len(self._variables)
        blocks = []
        for name, (equation, rule) in self._constraints.items():
            terms = [(i, j, a) for i, row in enumerate(rows[name]) for j, a in row.terms.items() if a]
            i, j, a = zip(*terms, strict=True) if terms else ((), (), ())
            indices = np.array(i, dtype=int), np.array(j, dtype=int)
            rhs = _array([-row.constant for row in rows[name]], is_exact)
            blocks.append(ConstraintBlock(name, equation, rule.sense, *indices, _array(a, is_exact), rhs))
        return LinearProgram(
            name=self.name,
            source=self.source,
            direction=self._direction,
            variables=tuple(self._variables),
            objective=_array([cost[0].terms.get(j, 0) for j in range(count)], is_exact),
            blocks=tuple(blocks),
            box=box,
            repair=repair,
        )


class Expressions(np.ndarray):
    """An array of linear expressions.  A comparison by ``<=``, ``>=`` or ``==`` returns a ``Constraint``."""

    __array_priority__ = 1.0  # above numpy's 0.0, so that ``concatenate`` and ``stack`` return Expressions

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found if isinstance(found, Expressions) else np.array(found, dtype=object).view(Expressions)

    def __rmatmul__(self, matrix: Any) -> Any:
        entries, rows = self.view(np.ndarray), np.atleast_2d(np.asarray(matrix))
        # numpy's product would keep a term for every zero of the matrix
        parts = [_Linear({}, 0, tuple(entries[row != 0] * row[row != 0])) for row in rows]
        found = np.empty(len(parts), dtype=object)
        found[:] = parts
        return found.view(Expressions).reshape(np.shape(matrix)[:-1])

    def __le__(self, other: Any) -> Any:
        return Constraint(self._minus(other), "<=")

    def __ge__(self, other: Any) -> Any:
        return Constraint(self._minus(other), ">=")

    def __eq__(self, other: Any) -> Any:
        return Constraint(self._minus(other), "==")

    def __lt__(self, other: Any) -> Any:
        raise InvalidInputError("a constraint of a linear program has no < or >; use <=, >= or ==")

    __gt__ = __lt__

    def _minus(self, other: Any) -> Any:
        try:
            return self - other
        except ValueError as error:
            raise InvalidInputError(
                f"cannot compare expressions of shape {self.shape} with an array of shape {np.shape(other)}"
            ) from error

    __hash__ = None


class Constraint(NamedTuple):
    """Comparisons ``difference`` (sense) 0 of an array of linear expressions, all with one sense."""

    difference: Any
    sense: Sense

    def __bool__(self) -> bool:
        raise InvalidInputError(
            "a constraint is neither true nor false; a chain a <= b <= c is two constraints, add each"
        )


class _Linear:
    """The linear expression Σ_j a_j x_j + b, with terms {j: a_j}, plus the expressions in ``plus``.

    The sum with ``plus`` is computed only when it is needed (``added_up``).
    """

    def __init__(self, terms: Mapping[int, Any], constant: Any, plus: tuple[_Linear, ...] = ()) -> None:
        self.terms, self.constant, self.plus = terms, constant, plus

    def added_up(self) -> _Linear:
        """Return the same expression with ``plus`` added to its terms and constant."""
        if not self.plus:
            return self
        terms, constant, left = dict[int, Any](), 0, [self]
        while left:
            part = left.pop()
            left += reversed(part.plus)
            constant = constant + part.constant
            for number, coefficient in part.terms.items():
                terms[number] = terms.get(number, 0) + coefficient
        return _Linear(terms, constant)

    def __add__(self, other: Any) -> _Linear:
        # We copy no terms, so the time for a sum of n expressions grows with n and not with n².
        return _Linear({}, 0, (self, other if isinstance(other, _Linear) else _Linear({}, other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> _Linear:
        return self + other * -1

    def __rsub__(self, other: Any) -> _Linear:
        return self * -1 + other

    def __neg__(self) -> _Linear:
        return self * -1

    def __mul__(self, factor: Any) -> _Linear:
        if isinstance(factor, _Linear):
            raise InvalidInputError("a product of two expressions is not linear")
        own = self.added_up()
        terms = {number: factor * coefficient for number, coefficient in own.terms.items()} if factor else {}
        return _Linear(terms, factor * own.constant)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> _Linear:
        return self * (1 / (divisor if isinstance(divisor, float) else Fraction(divisor)))

    def __repr__(self) -> str:
        return f"a linear expression in {len(self.added_up().terms)} variables"


def _flat(expressions: Any) -> list[Any]:
    array = np.asarray(expressions, dtype=object).view(np.ndarray).ravel()
    return [entry.added_up() if isinstance(entry, _Linear) else entry for entry in array]


def _array(numbers: Sequence[Any], is_exact: bool) -> np.ndarray:
    found = np.empty(len(numbers), dtype=object)
    found[:] = numbers
    return to_fractions(found) if is_exact else found.astype(float)

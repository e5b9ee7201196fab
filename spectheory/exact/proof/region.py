"""Regions of pairs: the signs of polynomials, the supports of draft rows, and the values of nodes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectheory.exact.proof.domain import Domain, Support
from spectheory.exact.proof.graph import Node
from spectheory.exact.proof.numbers import (
    ANY,
    AT_LEAST_ZERO,
    NEGATIVE,
    POSITIVE,
    PRODUCTS,
    ZERO,
    Factor,
    Factored,
    Function,
    opposite,
    power_signs,
)
from spectheory.pairs.contexts import Context


class SplitError(Exception):
    """The sign of a factor is not known; the parts have these signs."""

    def __init__(self, factor: Factor, masks: tuple[int, ...]) -> None:
        super().__init__(factor)
        self.factor, self.masks = factor, masks


class EmptyRegionError(Exception):
    """A region turned out to be empty."""


class DividesByZeroError(Exception):
    """The verifier divides by a number that is 0 on the whole region."""


class Region:
    """Some pairs.

    Attributes:
        supports: of the draft rows at the contexts that are entered; nothing is known of other rows.
        entries: (letter, context, token) -> function, of the rows that are entered.
        signs: of factors, by their number.
        equalities: the factors that are 0.
        points: the numbers of points that lie in it, for a search.
        is_doubtful: no point of it is known, and no lemma says that it is empty.
        places: where the runs of verifiers on this region are, for a walk.
    """

    def __init__(self, domain: Domain, points: np.ndarray) -> None:
        self.domain, self.points, self.is_doubtful = domain, points, False
        self.supports: dict[Context, Support] = {}
        self.entries: dict[tuple[str, Context, int], Function] = {}
        self.signs: dict[int, int] = {}
        self.equalities: list[Factor] = []
        self.places: dict[Any, Any] = {}
        self._values: dict[int, Function] = {}

    def copy(self) -> Region:
        """A region that can be changed; values of nodes hold on its parts too."""
        made = Region(self.domain, self.points)
        made.supports, made.entries, made.signs = dict(self.supports), dict(self.entries), dict(self.signs)
        made.equalities, made.places = list(self.equalities), dict(self.places)
        made._values = dict(self._values)
        return made

    def entered(self, context: Context, support: Support) -> Region:
        """The part with this support of the draft row at a context, of which nothing was known."""
        domain, part = self.domain, self.copy()
        everything = tuple(range(domain.vocab_size))
        rows = [("p", everything, domain.target_signs)]
        rows += [("q", support, POSITIVE)] if domain.has_draft(context) else []
        for letter, tokens, mask in rows:
            for token, entry in enumerate(domain.row(letter, context, tokens)):
                part.entries[letter, context, token] = entry
                constant, odd, _ = domain.field.signs(entry)
                if odd:
                    part.signs[odd[0].number] = mask if constant > 0 else opposite(mask)
        part.supports[context] = support
        return part

    def child(self, factor: Factor, mask: int) -> Region | None:
        """The part where a factor has one of these signs; ``None`` if the equalities say that it is empty."""
        part = self.copy()
        part.signs[factor.number] = mask
        if mask == ZERO:
            part.equalities.append(factor)
        return part if part.use_equalities(None if mask == ZERO else factor) else None

    def _signs_of(self, constant: int, parts: Sequence[tuple[Factor, int]]) -> int:
        """The signs of a product that are not excluded."""
        mask = POSITIVE if constant > 0 else NEGATIVE if constant < 0 else ZERO
        for factor, exponent in parts:
            mask = PRODUCTS[mask][power_signs(self.signs.get(factor.number, ANY), exponent)]
        return mask

    def possible_signs(self, function: Function) -> int:
        """The signs of a function that are not excluded."""
        constant, odd, even = self.domain.field.signs(function)
        mask = POSITIVE if constant > 0 else NEGATIVE if constant < 0 else ZERO
        for factor in odd:
            mask = PRODUCTS[mask][self.signs.get(factor.number, ANY)]
        for factor in even:
            mask = PRODUCTS[mask][power_signs(self.signs.get(factor.number, ANY), 2)]
        return mask

    def is_at_least_zero(self, function: Function) -> bool:
        """True where a function is at least 0, False where it is at most 0; where it is 0, either."""
        mask = self.possible_signs(function)
        if not mask & NEGATIVE or not mask & POSITIVE:
            return not mask & NEGATIVE
        _, odd, _ = self.domain.field.signs(function)
        for factor in odd:
            known = self.signs.get(factor.number, ANY)
            if known & NEGATIVE and known & POSITIVE:
                raise SplitError(factor, (known & AT_LEAST_ZERO, NEGATIVE))
        raise AssertionError("a function of two signs has a factor of two signs")

    def has_sign(self, function: Function, mask: int) -> bool:
        """Whether the sign of a function is in a mask, on the whole region."""
        possible = self.possible_signs(function)
        if not possible & ~mask or not possible & mask:
            return not possible & ~mask
        _, odd, even = self.domain.field.signs(function)
        for factor in odd:
            known = self.signs.get(factor.number, ANY)
            if known & NEGATIVE and known & POSITIVE:
                raise SplitError(factor, tuple(sign for sign in (POSITIVE, NEGATIVE, ZERO) if sign & known))
        for factor in (*odd, *even):
            known = self.signs.get(factor.number, ANY)
            if known & ZERO and known != ZERO:
                whole = known == ANY
                raise SplitError(factor, (POSITIVE, NEGATIVE, ZERO) if whole else (known & ~ZERO, ZERO))
        raise AssertionError("a function of two signs has a factor of two signs")

    def value(self, node: Node) -> Function:
        """A node as a function on the region."""
        found = self._values.get(node.number)
        if found is None:
            found = self._values[node.number] = self._value(node)
        return found

    def _value(self, node: Node) -> Function:
        field, operation, arguments = self.domain.field, node.operation, node.arguments
        if operation == "entry":
            return self.entries[arguments]
        if operation == "constant":
            return field.constant(*arguments)
        if operation == "mass":
            return self._mass(*arguments)
        if operation in ("/", "quotient", "share"):
            divisor = self.value(arguments[1])
            if not self.has_sign(divisor, ZERO):
                return field.divide(self.value(arguments[0]), divisor)
            if operation == "/":
                raise DividesByZeroError
            return field.zero if operation == "quotient" else self.value(arguments[0])
        one = self.value(arguments[0])
        if operation == "positive":
            return one if self.possible_signs(one) != ZERO and self.is_at_least_zero(one) else field.zero
        if operation == "*" and one is field.zero:
            return one
        other = self.value(arguments[1])
        if operation == "+":
            return field.add(one, other)
        return field.subtract(one, other) if operation == "-" else field.multiply(one, other)

    def _mass(self, stop_node: Node, weight_node: Node, total_node: Node, *weights: Node) -> Function:
        """stop · weight / total, or stop · weight where the total is 0.

        With weights that are at least 0, all are 0 where their sum is.  If stop / total has no pole there,
        the stop is 0 too, so that both cases give 0, and the region is not split.
        """
        field, stop = self.domain.field, self.value(stop_node)
        if stop is field.zero:
            return stop
        weight, total = self.value(weight_node), self.value(total_node)
        signs = self.possible_signs(total)
        if signs & ZERO and signs != ZERO:
            if not any(self.possible_signs(self.value(one)) & NEGATIVE for one in weights):
                rate = field.divide(stop, total)
                if not any(self.signs.get(number, ANY) & ZERO for number, _ in rate.denominator):
                    return field.multiply(rate, weight)
            signs = ZERO if self.has_sign(total, ZERO) else ANY
        rate = stop if signs == ZERO else field.divide(stop, total)
        return field.multiply(rate, weight)

    def use_equalities(self, new: Factor | None = None) -> bool:
        """Find signs that the equalities exclude; False if a factor has no sign left: the region is empty.

        An equality a v + b = 0 says that neither a nor v is 0 where b is not 0.  Where a is not 0, the sign
        of any f is the sign of a^n f / a^n, and a^n f is a polynomial without v.

        Args:
            new: the one factor whose sign is new; ``None`` for an equality.
        """
        only = [new.number] if new is not None else None
        changed = bool(self.equalities)
        while changed:
            changed = False
            for equality in self.equalities:
                for number in self._never_zero(equality):
                    known = self.signs.get(number, ANY)
                    if known & ZERO:
                        self.signs[number] = known & ~ZERO
                        changed = True
                        if known == ZERO:
                            return False
            for number in only or list(self.signs):
                known = self.signs[number]
                left = self._signs_by_equalities(self.domain.field.factors[number], known)
                if left != known:
                    self.signs[number] = left
                    changed = True
                    if not left:
                        return False
                    if left == ZERO:
                        self.equalities.append(self.domain.field.factors[number])
                        only = None
        return True

    def _never_zero(self, equality: Factor) -> list[int]:
        """The factors of a and of v, for every way to write an equality as a v + b = 0 with b ≠ 0."""
        field, found = self.domain.field, []
        for variable, slope, rest in equality.linear_parts:
            constant, parts = field.factored(rest)
            if constant and not self._signs_of(constant, parts) & ZERO:
                found += [factor.number for factor, _ in field.factored(slope)[1]]
                found.append(field.factor(field.context.gens()[variable]).number)
        return found

    def _signs_by_equalities(self, factor: Factor, mask: int) -> int:
        """The signs of a factor that the equalities leave."""
        field = self.domain.field
        for equality in self.equalities:
            if equality is factor or not equality.variables & factor.variables:
                continue
            for place, (variable, slope, _) in enumerate(equality.linear_parts):
                if variable not in factor.variables:
                    continue
                slope_sign = self._signs_of(*field.factored(slope))
                if slope_sign not in (NEGATIVE, POSITIVE):
                    continue
                reduced: Factored
                reduced, degree = field.substituted(factor, equality, place)
                mask &= PRODUCTS[self._signs_of(*reduced)][power_signs(slope_sign, degree)]
                if mask in (0, ZERO):
                    return mask
        return mask

    def vanishes(self, function: Function) -> bool:
        """Whether a function is 0 on the region, by its equalities: variables in which they are linear with
        a coefficient that is not 0 are eliminated one after the other.
        """
        if self.possible_signs(function) == ZERO:
            return True
        field, left = self.domain.field, function.numerator
        equalities = [factor.polynomial for factor in self.equalities]
        while equalities and not left.is_zero():
            equalities.sort(key=len)
            equality = equalities.pop(0)
            variable = self._solvable(equality)
            if variable is None:
                continue
            name = field.names[variable]
            if left.degrees()[variable]:
                left = left.resultant(equality, name)
            if self._signs_of(*field.factored(left)) == ZERO:
                return True
            equalities = [self._eliminated(other, equality, variable) for other in equalities]
            equalities = [other for other in equalities if not other.is_zero()]
        return bool(left.is_zero())

    def _solvable(self, equality: Any) -> int | None:
        """A variable in which a polynomial is linear with a coefficient that is nowhere 0."""
        if equality.is_constant():
            return None
        for variable, degree in enumerate(equality.degrees()):
            if degree == 1:
                slope = self.domain.field.factored(equality.derivative(variable))
                if not self._signs_of(*slope) & ZERO:
                    return variable
        return None

    def _eliminated(self, polynomial: Any, equality: Any, variable: int) -> Any:
        """A polynomial without a variable, without the factors that are nowhere 0."""
        field = self.domain.field
        if not polynomial.degrees()[variable]:
            return polynomial
        constant, parts = field.factored(polynomial.resultant(equality, field.names[variable]))
        product = field.context.constant(1 if constant else 0)
        for factor, _ in parts:
            if self.signs.get(factor.number, ANY) & ZERO:
                product = product * factor.polynomial
        return product

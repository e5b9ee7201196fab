"""Regions of pairs: the signs of polynomials, the supports of draft rows, and the values of nodes there."""

from __future__ import annotations

from typing import Any, NoReturn

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
    Parts,
    opposite,
    power_signs,
    sign_of,
)
from spectheory.pairs.contexts import Context

SINGLE = NEGATIVE, ZERO, POSITIVE


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
        given: the signs that the entries of the rows alone give.
        equalities: the factors that are 0.
        points: the numbers of points that lie in it, for a search.
        answers: of the runs of verifiers on this region, to their first questions.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain, self.points = domain, np.arange(0)
        self.supports: dict[Context, Support] = {}
        self.entries: dict[tuple[str, Context, int], Function] = {}
        self.signs: dict[int, int] = {}
        self.given: dict[int, int] = {}
        self.equalities: list[Factor] = []
        self.answers: dict[Any, tuple[bool, ...]] = {}
        self._values: dict[int, Function] = {}
        self._solutions: list[tuple[Factor, int, int]] = []
        """Equalities, the place in ``linear_parts`` of the variable, and the sign of its coefficient."""
        self._unsolved: list[Factor] = []

    def copy(self) -> Region:
        """A region that can be changed; values of nodes hold on its parts too."""
        made = Region(self.domain)
        made.points, made.supports = self.points, dict(self.supports)
        made.entries, made.signs, made.given = dict(self.entries), dict(self.signs), dict(self.given)
        made.equalities, made.answers = list(self.equalities), dict(self.answers)
        made._values = dict(self._values)
        made._solutions, made._unsolved = list(self._solutions), list(self._unsolved)
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
                constant, factors = domain.field.parts(entry)
                for factor, _ in factors:
                    signs = mask if constant > 0 else opposite(mask)
                    part.signs[factor.number] = part.given[factor.number] = signs
        part.supports[context] = support
        return part

    def child(self, factor: Factor, mask: int) -> Region | None:
        """The part where a factor has one of these signs; ``None`` if the equalities say that it is empty."""
        part = self.copy()
        part.signs[factor.number] = mask
        return part if part.solve(factor if mask == ZERO else None) else None

    def signs_of(self, factor: Factor) -> int:
        """The signs of a factor that are not excluded."""
        known = self.signs.get(factor.number, ANY)
        if known in SINGLE or (reduced := self._reduced(factor)) is None:
            return known
        return known & self._signs(*reduced)

    def possible_signs(self, function: Function) -> int:
        """The signs of a function that are not excluded."""
        return self._signs(*self.domain.field.parts(function))

    def _signs(self, constant: int, parts: Parts) -> int:
        mask = sign_of(constant)
        for factor, exponent in parts:
            mask = PRODUCTS[mask][power_signs(self.signs_of(factor), exponent)]
        return mask

    def has_sign(self, function: Function, mask: int) -> bool:
        """Whether the sign of a function is in a mask, on the whole region."""
        possible = self.possible_signs(function)
        if possible & ~mask and possible & mask:
            self._split(function)
        return not possible & ~mask

    def _split(self, function: Function) -> NoReturn:
        """Ask for the sign of a factor that is open."""
        _, parts = self.domain.field.parts(function)
        for factor, exponent in parts:
            known = self.signs_of(factor)
            if exponent % 2 and known & NEGATIVE and known & POSITIVE:
                raise SplitError(factor, (known & AT_LEAST_ZERO, NEGATIVE))
        for factor, _ in parts:
            known = self.signs_of(factor)
            if known & ZERO and known != ZERO:
                raise SplitError(factor, (known & ~ZERO, ZERO))
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
            signs = self.possible_signs(one)
            if signs & NEGATIVE and signs & POSITIVE:
                self._split(one)
            return one if signs & POSITIVE else field.zero
        if operation == "case":
            product = one
            for factor in arguments[1:]:
                product = product if product is field.zero else field.multiply(product, self.value(factor))
            return product
        if operation == "*" and one is field.zero and not arguments[1].divides:
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
        if stop is field.zero and not any(one.divides for one in weights):
            return stop
        weight, total = self.value(weight_node), self.value(total_node)
        signs = self.possible_signs(total)
        if signs & ZERO and signs != ZERO:
            if not any(self.possible_signs(self.value(one)) & NEGATIVE for one in weights):
                rate = field.divide(stop, total)
                if not any(self.signs_of(field.factors[number]) & ZERO for number, _ in rate.denominator):
                    return field.multiply(rate, weight)
            self._split(total)
        rate = stop if signs == ZERO else field.divide(stop, total)
        return field.multiply(rate, weight)

    def solve(self, new: Factor | None = None) -> bool:
        """Solve equalities for variables, and find signs that they exclude.

        An equality a v + b = 0 is solved for v where the sign of a is known.  Then a^n f is a polynomial
        without v for every polynomial f of degree n in v.  So the sign of f follows from the signs of the
        factors of that polynomial, in which other equalities are used.

        Args:
            new: a factor that is 0 now.

        Returns:
            False if a factor has no sign left: the region is empty.
        """
        if new is not None:
            self.signs[new.number] = ZERO
            self.equalities.append(new)
        is_open = new is not None or bool(self._unsolved)
        while True:
            if is_open:
                self._solutions, self._unsolved = [], sorted(self.equalities, key=lambda factor: factor.key)
                while solved := next(filter(self._is_solved, self._unsolved), None):
                    self._unsolved.remove(solved)
            if not self._solutions or not self._transfer() or 0 in self.signs.values():
                break
            is_open = bool(self._unsolved)
        return all(self.signs_of(self.domain.field.factors[number]) for number in self.signs)

    def independent(self) -> list[Factor]:
        """The factors of known signs without a variable that is solved."""
        factors = self.domain.field.factors
        return [factors[number] for number in self.signs if self._reduced(factors[number]) is None]

    def _transfer(self) -> bool:
        """Find the signs of reduced factors that known signs leave; whether there are any that are new."""
        changed = False
        for number, known in list(self.signs.items()):
            constant, parts = self._reduced(self.domain.field.factors[number]) or (1, ())
            for image, exponent in parts:
                others = self._signs(constant, [part for part in parts if part[0] is not image])
                mask = sum(s for s in SINGLE if PRODUCTS[others][power_signs(s, exponent)] & known)
                before = self.signs_of(image)
                if before & ~mask:
                    self.signs[image.number] = before & mask
                    changed = True
                    if before & mask == ZERO:
                        self.equalities.append(image)
                        self._unsolved.append(image)
        return changed

    def _is_solved(self, equality: Factor) -> bool:
        """Whether an equality is solved for a variable now; the solutions so far are used in it first."""
        left = self._open_parts(equality)
        for factor in left if len(left) == 1 else ():
            for place, (_, slope, _) in enumerate(factor.linear_parts):
                sign = self._signs(*self.domain.field.factored(slope))
                if sign in (NEGATIVE, POSITIVE):
                    self.signs[factor.number] = ZERO
                    self._solutions.append((factor, place, sign))
                    return True
        return False

    def _reduced(self, factor: Factor) -> Factored | None:
        """The factor without the first variable that is solved, times a positive number; ``None`` if it has
        none of them.
        """
        for equality, place, sign in self._solutions:
            if equality.linear_parts[place][0] in factor.variables:
                (constant, parts), degree = self.domain.field.substituted(factor, equality, place)
                return (-constant if sign == NEGATIVE and degree % 2 else constant), parts
        return None

    def _open_parts(self, factor: Factor) -> list[Factor]:
        """The factors that may be 0 of a polynomial without solved variables."""
        reduced = self._reduced(factor)
        if reduced is None:
            return [factor]
        found = list[Factor]()
        for part, _ in reduced[1]:
            if self.signs_of(part) & ZERO:
                more = self._open_parts(part)
                if not more:  # it is 0, so that the others need not be
                    return []
                found += more
        return found

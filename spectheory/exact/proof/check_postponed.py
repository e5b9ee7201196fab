"""The checker of proofs that postpone decisions.

One run of the verifier speaks of all pairs.  In it max(f, 0) and quotients are *atoms*: variables, each
with a definition in those before it.  A *fact* says that a function has one of some signs wherever drafts
can be drawn.  Its tree of splits is checked as that of a face is.  At every leaf the function must have such
a sign once its atoms are resolved by the signs that are known there.  Atoms that are *open* are not resolved.
Of them the earlier facts are known that the fact names.

A condition of the statement holds by the signs in facts, or because it is a sum: a list of facts that are 0,
each with a factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from spectheory.exact.proof.check_leaf import FaceRows
from spectheory.exact.proof.check_numbers import (
    ANY,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Answers,
    Quotient,
    Ring,
    reject,
)

Prefix = tuple[int, ...]
Function = tuple[Any, Any]
"""Numerator and denominator, without a common divisor, the second with a positive leading coefficient."""


class Fact(NamedTuple):
    """A function has a sign of ``mask`` where the prefixes ``given`` can be drafted."""

    function: Function
    mask: int
    given: frozenset[Prefix]


class Sum(NamedTuple):
    """Equal to a function where the prefixes ``given`` can be drafted."""

    value: Function
    given: frozenset[Prefix]


class Postponing(Answers):
    """Answers in the run for all pairs: comparisons are decided by what is known of rows, or not at all.

    Args:
        ring: of variables and atoms.
        rows: of the whole shape.
        positive: whether no entry of a row is 0.
        definitions: of the atoms: (f,) for max(f, 0), and (n, d, e) for n/d, e in its place where d = 0.
        first: the number of variables before the atoms.
    """

    def __init__(
        self, ring: Ring, rows: FaceRows, positive: bool, definitions: list[tuple[Function, ...]], first: int
    ) -> None:
        super().__init__(ring, {})
        self.rows, self.positive, self.definitions, self.first = rows, positive, definitions, first
        known: dict[str, int] = {}
        of_drafts: dict[str, int] = {}
        for letter, entry in rows.probabilities:
            note(ring, known, entry, POSITIVE if positive else ZERO | POSITIVE)
            note(ring, of_drafts, entry, POSITIVE if positive or letter == "q" else ZERO | POSITIVE)
        self.known, self.of_drafts = known, Answers(ring, of_drafts)
        self.facts: list[Fact] = []
        self.sums: dict[str, list[Sum]] = {}
        self._numbers: dict[str, int] = {}
        for number, definition in enumerate(definitions, start=first):
            for numerator, denominator in definition:
                before = (*numerator.degrees()[number:], *denominator.degrees()[number:])
                if any(degree > 0 for degree in before):
                    reject("an atom is defined by later ones")
                if not self.is_never_zero(denominator):
                    reject("the definition of an atom may divide by 0")
            self._numbers[str(definition)] = number

    # ------------------------------------------------------------------ the run

    def _atom(self, *definition: Quotient) -> Quotient:
        number = self._numbers.get(str(tuple(part.parts for part in definition)))
        if number is None:
            self.has_failed = True
            reject("the verifier takes a maximum or a quotient that the proof does not define")
        return self.quotient(self.ring.polynomials.gens()[number])

    def positive_part(self, number: Quotient) -> Quotient:
        signs = self.signs(*number.parts)
        if signs & NEGATIVE and signs & POSITIVE:
            return self._atom(number)
        return number if signs & POSITIVE else number * 0

    def quotient_or_zero(self, number: Quotient, divisor: Quotient) -> Quotient:
        return self._quotient(number, divisor, divisor * 0)

    def shares(self, weights: list[Quotient], total: Quotient) -> list[Quotient]:
        return [self._quotient(weight, total, weight) for weight in weights]

    def _quotient(self, number: Quotient, divisor: Quotient, otherwise: Quotient) -> Quotient:
        signs = self.signs(*divisor.parts)
        if not signs & ZERO:
            return number / divisor
        return otherwise if signs == ZERO else self._atom(number, divisor, otherwise)

    # ------------------------------------------------------------------ conditions

    def must(self, number: Quotient, mask: int, given: frozenset[Prefix] = frozenset()) -> None:
        if mask == ZERO and self.simplified(number, given).is_nothing:
            return
        facts = [fact for fact in self.facts if fact.given <= given]
        known = self.known_with(facts, given)
        if not Answers(self.ring, known).signs(*number.parts) & ~mask:
            return
        if not any(fact.function == number.parts and not fact.mask & ~mask for fact in facts):
            reject("no fact says that a condition of the statement holds")

    def simplified(self, number: Quotient, given: frozenset[Prefix] = frozenset()) -> Quotient:
        for equal in self.sums.get(str(number.parts), ()):
            if equal.given <= given:
                return Quotient(self, *equal.value)
        return number

    def known_with(self, facts: list[Fact], given: frozenset[Prefix]) -> dict[str, int]:
        """The signs of factors that are known of the rows, of the drafts that are given, and by facts."""
        known = {**self.known}
        for prefix in given:
            number = sum(
                token * len(self.rows.levels["q"][0][0]) ** n for n, token in enumerate(prefix[-2::-1])
            )
            note(self.ring, known, self.rows.levels["q"][len(prefix) - 1][number][prefix[-1]], POSITIVE)
        for fact in facts:
            if fact.function[1].is_one():
                note(self.ring, known, fact.function[0], fact.mask)
        return known

    # ------------------------------------------------------------------ facts

    def add_fact(
        self,
        fact: Fact,
        is_open: frozenset[int],
        used: list[int],
        walk: Callable[[dict[str, int], Callable[[dict[str, int]], None]], int],
    ) -> int:
        """Check a fact by its tree, and keep it; returns the number of leaves."""
        if not all(
            0 <= number < len(self.facts) and self.facts[number].given <= fact.given for number in used
        ):
            reject("a fact uses one that is not before it")
        known = self.known_with([self.facts[number] for number in used], fact.given)
        for atom in is_open:
            if len(self.definitions[atom - self.first]) == 1:
                note(self.ring, known, self.ring.polynomials.gens()[atom], ZERO | POSITIVE)

        def at_leaf(signs: dict[str, int]) -> None:
            answers = Answers(self.ring, signs)
            value = self._resolved(answers, fact.function, is_open, {})
            if answers.signs(*value.parts) & ~fact.mask:
                reject("a fact does not hold at a leaf")

        leaves = walk(known, at_leaf)
        self.facts.append(fact)
        return leaves

    def add_sum(self, value: Function, terms: list[tuple[Function, int]]) -> None:
        """Keep that the sum of a value and of facts that are 0, each with a factor, equals the value."""
        total, given = Quotient(self, *value), frozenset[Prefix]()
        for factor, number in terms:
            fact = self.facts[number]
            if fact.mask != ZERO:
                reject("a sum has a term that is not 0")
            total = total + Quotient(self, *factor) * Quotient(self, *fact.function)
            given |= fact.given
        if not all(self.is_never_zero(below) for _, below in (value, *(factor for factor, _ in terms))):
            reject("a sum may divide by 0")
        self.sums.setdefault(str(total.parts), []).append(Sum(value, given))

    def _resolved(
        self, answers: Answers, function: Function, is_open: frozenset[int], memo: dict[int, Quotient]
    ) -> Quotient:
        """A function with the values of its atoms, by the signs that are known."""
        above, below = (self._value(answers, part, is_open, memo) for part in function)
        return above if function[1].is_one() else above / below

    def _value(
        self, answers: Answers, polynomial: Any, is_open: frozenset[int], memo: dict[int, Quotient]
    ) -> Quotient:
        groups: dict[tuple[tuple[int, int], ...], dict[tuple[int, ...], Any]] = {}
        for exponents, coefficient in polynomial.to_dict().items():
            powers = tuple(
                (i, int(n)) for i, n in enumerate(exponents) if n and i >= self.first and i not in is_open
            )
            atoms = dict(powers)
            rest = tuple(0 if i in atoms else int(n) for i, n in enumerate(exponents))
            groups.setdefault(powers, {})[rest] = coefficient
        total = answers.quotient(self.ring.constant(0))
        for powers, terms in groups.items():
            product = answers.quotient(self.ring.polynomials.from_dict(terms))
            for atom, power in powers:
                product = product * self._atom_value(answers, atom, is_open, memo) ** power
            total = total + product
        return total

    def _atom_value(
        self, answers: Answers, atom: int, is_open: frozenset[int], memo: dict[int, Quotient]
    ) -> Quotient:
        if atom not in memo:
            first, *rest = self.definitions[atom - self.first]
            if not rest:
                memo[atom] = self._resolved(answers, first, is_open, memo).positive_part()
            else:
                divisor = self._resolved(answers, rest[0], is_open, memo)
                if answers.answer(divisor, ZERO):
                    memo[atom] = self._resolved(answers, rest[1], is_open, memo)
                else:
                    memo[atom] = self._resolved(answers, first, is_open, memo) / divisor
        return memo[atom]


def note(ring: Ring, known: dict[str, int], polynomial: Any, mask: int) -> None:
    """Note the sign of a polynomial that is a multiple of one irreducible factor."""
    constant, factors = ring.factors(polynomial)
    if len(factors) == 1 and factors[0][1] == 1:
        turned = (
            mask
            if constant > 0
            else mask & ZERO | (NEGATIVE if mask & POSITIVE else 0) | (POSITIVE if mask & NEGATIVE else 0)
        )
        known[factors[0][0]] = known.get(factors[0][0], ANY) & turned


def read_postponed(
    document: Mapping[str, Any], rows: FaceRows, ring: Ring, read: Any, walk: Any
) -> tuple[Postponing, int]:
    """The facts and sums of a document, checked, with the number of leaves.

    Args:
        document: of a proof that postpones decisions.
        rows: of the whole shape.
        ring: of variables and atoms.
        read: makes a polynomial of the terms in a document.
        walk: checks a tree: (root, signs, what to check at a leaf) -> number of leaves.
    """

    def function(written: Any) -> Function:
        above, below = (read(terms, ring.polynomials, int) for terms in written)
        if below.leading_coefficient() <= 0 or not above.gcd(below).is_one():
            reject("a function is not in lowest terms")
        return above, below

    first = len(document["variables"])
    definitions = [tuple(map(function, definition)) for definition in document["atoms"]]
    if any(len(definition) not in (1, 3) for definition in definitions):
        reject("an atom is neither a maximum nor a quotient")
    answers = Postponing(ring, rows, document["domain"] == "positive rows", definitions, first)
    leaves = 0
    for written, mask, given, is_open, used, root in document["facts"]:
        fact = Fact(function(written), mask, frozenset(map(tuple, given)))
        if not all(first <= atom < first + len(definitions) for atom in is_open):
            reject("a variable of the rows is taken for an atom")
        leaves += answers.add_fact(fact, frozenset(is_open), used, partial(walk, root))
    for value, terms in document["sums"]:
        answers.add_sum(function(value), [(function(factor), number) for factor, number in terms])
    return answers, leaves

"""Proofs that postpone decisions: one run of the verifier for all pairs, and a small proof of each fact.

In this run max(f, 0) and n/d become *atoms*: new variables, each with its definition.  A verifier that asks
for nothing else is followed once.  A condition of the statement is then a function of variables and atoms.
It is the sum of *facts*, functions that are 0.  Each is decided by a walk of its own, which resolves atoms
that depend on the rows behind one context only, and takes the others as variables.  So regions of rows that
do not interact add up.

Facts are found from the deepest contexts upwards.  The terms of a condition that depend on the row at a
context are replaced by what they are at one pair.  That the two are equal is the fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from time import monotonic
from typing import Any, NamedTuple

from flint import fmpq

from spectheory.exact.proof.certificates import Part
from spectheory.exact.proof.domain import FormalPair, Shape
from spectheory.exact.proof.emptiness import MOST_POINTS, Emptiness
from spectheory.exact.proof.formal_numbers import FormalRun, NotFollowedError, Number
from spectheory.exact.proof.points import Point, random_point
from spectheory.exact.proof.rational_functions import (
    ANY_SIGN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    RationalFunction,
    RationalFunctions,
    opposite,
    sign_mask,
)
from spectheory.exact.proof.regions import LEAF, Branch, RegionRun, Walk, possible_signs
from spectheory.exact.proof.replay import replay
from spectheory.exact.proof.statements import AT_LEAST_ZERO, Condition, Statement
from spectheory.exact.proof.stops import formal_stops
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts import WithoutReplacement

MOST_ATOMS = 600
MOST_LEAVES = 3000
"""Of the walk of one fact; where it needs more, every region of the verifier is walked instead."""
NUM_POINTS = 150
NUM_REPLAYS = 20
NUM_TRIES = 8
"""At how many points the value of terms is looked for."""

Definition = tuple[RationalFunction, ...]
"""(f,) for max(f, 0), and (n, d, e) for n/d with e in its place where d = 0."""


class PostponedPair(FormalPair):
    """All pairs of a shape at once, zeros of the draft included, with the atoms of one run.

    Attributes:
        definitions: of the atoms, each in variables and atoms before it.
    """

    def __init__(self, shape: Shape, num_atoms: int) -> None:
        names = shape.names()
        field = RationalFunctions([*names, *(f"m{number}" for number in range(num_atoms))])
        sign = POSITIVE if shape.positive else AT_LEAST_ZERO
        super().__init__(shape, field, next(shape.faces()), sign)
        self.first_atom, self.most_atoms = len(names), num_atoms
        self.definitions: list[Definition] = []
        self._numbers: dict[Definition, int] = {}
        self._variables: dict[RationalFunction, frozenset[int]] = {}

    def atom(self, *definition: RationalFunction) -> RationalFunction:
        """The atom with a definition."""
        number = self._numbers.setdefault(definition, len(self.definitions))
        if number == self.most_atoms:
            raise UndecidedError("there are too many atoms")
        if number == len(self.definitions):
            self.definitions.append(definition)
        return self.field.variables[self.first_atom + number]

    def occurring(self, function: RationalFunction) -> frozenset[int]:
        """The variables and atoms in a function."""
        found = self._variables.get(function)
        if found is None:
            degrees = zip(function.numerator.degrees(), function.denominator.degrees(), strict=True)
            found = frozenset(i for i, pair in enumerate(degrees) if max(pair) > 0)
            self._variables[function] = found
        return found

    @cached_property
    def contexts_of(self) -> dict[int, frozenset[Context]]:
        found = FormalPair.contexts_of.func(self)  # type: ignore[attr-defined]
        for number, definition in enumerate(self.definitions, start=self.first_atom):
            below = frozenset().union(*map(self.occurring, definition))
            found[number] = frozenset().union(*(found[i] for i in below))
        return found

    def value_of(self, point: Point, atom: int) -> fmpq:
        """The value of an atom at a point."""
        first, *rest = self.definitions[atom - self.first_atom]
        if not rest:
            return max(first.at(point), fmpq(0))
        divisor = rest[0].at(point)
        return rest[1].at(point) if divisor == 0 else first.at(point) / divisor

    def resolved(
        self, function: RationalFunction, is_open: Callable[[int], bool], run: Any, memo: dict[Any, Any]
    ) -> RationalFunction:
        """A function with the definitions of its atoms in their place, as a run decides them.

        Args:
            function: of variables and atoms.
            is_open: the atoms that stay.
            run: answers ``has_sign`` and ``is_at_least_zero``.
            memo: what it has answered.
        """
        if function in memo:
            return memo[function]
        wanted = [i for i in self.occurring(function) if i >= self.first_atom and not is_open(i)]
        value = function
        if function in self.field.variables and wanted:
            over, *rest = self.definitions[wanted[0] - self.first_atom]
            if not rest:
                value = self.resolved(over, is_open, run, memo)
                value = value if run.is_at_least_zero(value) else value - value
            else:
                divisor = self.resolved(rest[0], is_open, run, memo)
                empty = run.has_sign(divisor, ZERO)
                value = self.resolved(rest[1] if empty else over, is_open, run, memo)
                value = value if empty else value / divisor
        elif wanted:
            values = {i: self.resolved(self.field.variables[i], is_open, run, memo) for i in wanted}
            above, below = (
                self._composed(polynomial, values)
                for polynomial in (function.numerator, function.denominator)
            )
            value = above / below
        memo[function] = value
        return value

    def _composed(self, polynomial: Any, values: dict[int, RationalFunction]) -> RationalFunction:
        groups: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {}
        for exponents, coefficient in polynomial.to_dict().items():
            powers = tuple(int(exponents[i]) for i in values)
            rest = tuple(0 if i in values else int(n) for i, n in enumerate(exponents))
            groups.setdefault(powers, {})[rest] = coefficient
        total = self.field.constant(0)
        for powers, terms in groups.items():
            product = self.field.of(self.field.context.from_dict(terms), self.field.context.constant(1))
            for value, power in zip(values.values(), powers, strict=True):
                for _ in range(power):
                    product = product * value
            total = total + product
        return total


class UndecidedError(NotFollowedError):
    """A run that postpones decisions was asked for one that it cannot postpone."""


class PostponingRun(FormalRun):
    """A run for all pairs: comparisons must be decided by what is known of rows, and the rest are atoms."""

    def __init__(self, pair: PostponedPair, known: dict[Factor, int]) -> None:
        super().__init__(pair.field)
        self.pair, self.known = pair, known
        self.search: Postponement | None = None

    def simplified(self, function: RationalFunction) -> RationalFunction:
        return function if self.search is None else self.search.simplified(function)

    def has_sign(self, function: RationalFunction, mask: int) -> bool:
        possible = possible_signs(self.known, function)
        if possible & mask and possible & ~mask:
            self.refused = self.refused or "a decision"
            raise UndecidedError
        return not possible & ~mask

    def is_at_least_zero(self, function: RationalFunction) -> bool:
        return self.has_sign(function, AT_LEAST_ZERO)

    def is_never_zero(self, factor: Factor) -> bool:
        return not self.known.get(factor, ANY_SIGN) & ZERO

    def positive_part(self, function: RationalFunction) -> RationalFunction:
        possible = possible_signs(self.known, function)
        if possible & NEGATIVE and possible & POSITIVE:
            return self.pair.atom(function)
        return function if possible & POSITIVE else function - function

    def quotient_or_zero(
        self, numerator: RationalFunction, denominator: RationalFunction
    ) -> RationalFunction:
        return self._quotient(numerator, denominator, denominator - denominator)

    def shares(self, weights: tuple[RationalFunction, ...], total: RationalFunction) -> list[Number]:
        return [self.number(self._quotient(weight, total, weight)) for weight in weights]

    def _quotient(
        self, over: RationalFunction, divisor: RationalFunction, otherwise: RationalFunction
    ) -> RationalFunction:
        possible = possible_signs(self.known, divisor)
        if not possible & ZERO:
            return over / divisor
        return otherwise if possible == ZERO else self.pair.atom(over, divisor, otherwise)


class _AtPoint:
    """Decisions as they are at a point."""

    def __init__(self, point: Point) -> None:
        self.point = point

    def has_sign(self, function: RationalFunction, mask: int) -> bool:
        return bool(sign_mask(function.at(self.point)) & mask)

    def is_at_least_zero(self, function: RationalFunction) -> bool:
        return self.has_sign(function, AT_LEAST_ZERO)


@dataclass(frozen=True)
class Fact:
    """A function has a sign of ``mask`` on all pairs on which the drafts ``given`` can be drawn.

    Attributes:
        open_atoms: atoms that are taken as variables.
        facts: used on open atoms.
        part: the root of the walk.
    """

    function: RationalFunction
    mask: int
    given: frozenset[Context]
    open_atoms: frozenset[int]
    facts: tuple[Fact, ...]
    part: Part


class Sum(NamedTuple):
    """A function that equals another one, because their difference is a sum of facts, each with a factor."""

    value: RationalFunction
    terms: list[tuple[RationalFunction, Fact]]


class Postponement:
    """The search for facts.

    Attributes:
        walk: holds the lemmas and counts the regions of all facts.
        facts: all that were found, each behind those that it uses.
        sums: of facts that are conditions.
        is_settled: whether every condition of the statement follows from them.
    """

    def __init__(
        self, pair: PostponedPair, deadline: float, progress: Callable[[int, int], None] | None = None
    ) -> None:
        self.pair, self.deadline, self.progress, self.is_settled = pair, deadline, progress, False
        self.walk = Walk(pair.shape, pair.field, Emptiness(deadline))
        self.facts: list[Fact] = []
        self.sums: list[Sum] = []
        self._found: dict[Any, Fact | None] = {}
        self._simplified: dict[RationalFunction, RationalFunction] = {}
        random = Random(0)
        self.points = [random_point(pair, random) for _ in range(NUM_POINTS)]
        self.one = pair.field.constant(1)

    def keep(self, fact: Fact) -> None:
        """Keep a fact, behind those that it uses."""
        self._found[fact.function, fact.mask, fact.given, fact.open_atoms] = fact
        self.facts.append(fact)

    # ------------------------------------------------------------------ conditions

    def settle(self, condition: Condition) -> bool:
        """Find facts from which a condition follows."""
        if len(condition.functions) != 1:
            return False
        [function] = condition.functions
        given = frozenset(condition.given)
        if condition.mask != ZERO:
            return self._settle_sign(function, condition.mask, given)
        return self._is_zero(function, given)

    def simplified(self, function: RationalFunction) -> RationalFunction:
        """An equal function, without atoms of contexts where they make no difference."""
        if function not in self._simplified:
            value, terms = function, list[tuple[RationalFunction, Fact]]()
            for context in self._contexts_upwards(function):
                value = self._without(value, context, frozenset(), self.one, terms)
            self._simplified[function] = value
            if terms:
                self.sums.append(Sum(value, terms))
        return self._simplified[function]

    def _settle_sign(self, function: RationalFunction, mask: int, given: frozenset[Context]) -> bool:
        """By the signs of its factors, or by its own."""
        known = {**self._known_of(given)}
        _, odd, even = function.signs
        for factor in (*odd, *even):
            signs = known.get(factor, ANY_SIGN)
            seen = 0
            for point in self._points_of(given):
                seen |= point.sign(factor)
            itself = self._function_of(factor)
            for left in dict.fromkeys((signs & seen, signs & (seen | ZERO))):
                if left != signs and self.fact(itself, left, given, frozenset()) is not None:
                    known[factor] = left
                    break
        if not possible_signs(known, function) & ~mask:
            return True
        return self.fact(function, mask, given, frozenset()) is not None

    def _is_zero(self, function: RationalFunction, given: frozenset[Context]) -> bool:
        terms: list[tuple[RationalFunction, Fact]] = []
        scale, rest = self.one, function
        for context in [*self._contexts_upwards(function), None]:
            core = self._vanishing_part(rest, given)
            if core is None:
                return False
            scale, rest = scale if rest.is_zero else scale * (rest / core), core
            if context is None:
                last = None if rest.is_zero else self.fact(rest, ZERO, given, frozenset())
                if last is None and not rest.is_zero:
                    return False
                terms += [] if last is None else [(scale, last)]
            else:
                rest = self._without(rest, context, given, scale, terms)
        self.sums.append(Sum(rest - rest, terms))
        return True

    def _contexts_upwards(self, function: RationalFunction) -> list[Context]:
        found = {c for i in self.pair.occurring(function) for c in self.pair.contexts_of[i]}
        return sorted(found, key=len, reverse=True)

    def _without(
        self,
        function: RationalFunction,
        context: Context,
        given: frozenset[Context],
        scale: RationalFunction,
        terms: list[tuple[RationalFunction, Fact]],
    ) -> RationalFunction:
        """An equal function without atoms of a context, if one is found; the facts are added to the terms."""
        piece = self._piece(function, context, given)
        if piece is None:
            return function
        factor, fact = piece
        terms.append((factor * scale, fact))
        return function - factor * fact.function

    def _vanishing_part(
        self, function: RationalFunction, given: frozenset[Context]
    ) -> RationalFunction | None:
        """A product of few factors that is 0 at all points; ``None`` if the function is not."""
        if function.is_zero:
            return function
        _, odd, even = function.signs
        left, core = self._points_of(given), self.one
        while left:
            zeros = {f: sum(point.sign(f) == ZERO for point in left) for f in (*odd, *even)}
            best = max(zeros, key=lambda factor: zeros[factor], default=None)
            if best is None or not zeros[best]:
                return None
            core = core * self._function_of(best)
            left = [point for point in left if point.sign(best) != ZERO]
        return core

    def _piece(
        self, rest: RationalFunction, context: Context, given: frozenset[Context]
    ) -> tuple[RationalFunction, Fact] | None:
        """The terms with the row at a context, less what they are at a point: (factor, fact)."""
        own = {i for i, contexts in self.pair.contexts_of.items() if context in contexts}
        terms = {
            exponents: coefficient
            for exponents, coefficient in rest.numerator.to_dict().items()
            if any(exponents[i] for i in own)
        }
        if not terms or not rest.denominator.is_constant():
            return None
        part = self.pair.field.of(self.pair.field.context.from_dict(terms), rest.denominator)
        open_atoms = frozenset(i for i in self.pair.contexts_of if i >= self.pair.first_atom and i not in own)
        for point in self._points_of(given)[:NUM_TRIES]:
            value = self.pair.resolved(part, open_atoms.__contains__, _AtPoint(point), {})
            left = {i for i in self.pair.occurring(value) & own if i >= self.pair.first_atom}
            if left or not value.denominator.is_constant():
                continue
            core, factor = part - value, self.one
            if core.is_zero:
                continue
            _, parts = self.pair.field.factors(core.numerator)
            inner = [(f, times) for f, times in parts if f.variables & own]
            core = self.one
            for f, times in inner:
                for _ in range(times):
                    core = core * self._function_of(f)
            factor = (part - value) / core
            if not factor.denominator.is_constant():
                continue
            found = self.fact(core, ZERO, given, open_atoms)
            if found is not None:
                return factor, found
        return None

    # ------------------------------------------------------------------ facts

    def fact(
        self, function: RationalFunction, mask: int, given: frozenset[Context], open_atoms: frozenset[int]
    ) -> Fact | None:
        """A fact, if it holds and is found; atoms outside ``open_atoms`` are resolved."""
        used, inside = self._dependence(function, open_atoms)
        contexts = {c for i in used for c in self.pair.contexts_of[i] if i not in inside}
        given = frozenset(prefix for prefix in given if prefix[:-1] in contexts)
        key = function, mask, given, inside
        if key not in self._found:
            self._found[key] = None
            found = self._proved(function, mask, given, inside, contexts)
            if found is not None:
                self.keep(found)
        return self._found[key]

    def _dependence(
        self, function: RationalFunction, open_atoms: frozenset[int]
    ) -> tuple[set[int], frozenset[int]]:
        """(the variables and atoms that a function leads to, the open ones among them)."""
        used: set[int] = set()
        waiting = [*self.pair.occurring(function)]
        while waiting:
            number = waiting.pop()
            if number in used:
                continue
            used.add(number)
            if number >= self.pair.first_atom and number not in open_atoms:
                for part in self.pair.definitions[number - self.pair.first_atom]:
                    waiting += self.pair.occurring(part)
        return used, open_atoms & used

    def _proved(
        self,
        function: RationalFunction,
        mask: int,
        given: frozenset[Context],
        open_atoms: frozenset[int],
        contexts: set[Context],
    ) -> Fact | None:
        points = self._points_of(given)
        if not all(sign_mask(function.at(point)) & mask for point in points):
            return None
        facts = tuple(self._bounds(open_atoms))
        rows = self.pair.first_atom
        known = {
            factor: sign
            for factor, sign in self._known_of(given).items()
            if all(i < rows and self.pair.contexts_of[i] <= contexts for i in factor.variables)
        }
        for number in open_atoms:
            if len(self.pair.definitions[number - rows]) == 1:
                _note(known, self.pair.field.variables[number], AT_LEAST_ZERO)
        for fact in facts:
            _note(known, fact.function, fact.mask)
        root = Part(ANY_SIGN)
        walk, before = self.walk, self.walk.num_regions
        walk.waiting = [Branch(self.pair, known, points[:MOST_POINTS], root)]
        while walk.waiting:
            if monotonic() > self.deadline or walk.num_regions - before > MOST_LEAVES:
                break
            run = RegionRun(walk, walk.waiting.pop())
            run.begin()
            value = self.pair.resolved(function, open_atoms.__contains__, run, {})
            holds = run.has_sign(value, mask)
            if run.dead:
                continue
            if not holds:
                break
            if run.is_refined:
                walk.waiting.append(run.branch)
            else:
                run.branch.part.target = LEAF
                walk.num_regions += 1
            if self.progress is not None:
                self.progress(walk.num_regions, walk.num_regions + len(walk.waiting))
        else:
            return Fact(function, mask, given, open_atoms, facts, root)
        walk.waiting, walk.num_regions = [], before
        return None

    def _bounds(self, open_atoms: frozenset[int]) -> Iterator[Fact]:
        """That open atoms lie in [0, 1], where they do."""
        for number in sorted(open_atoms):
            atom = self.pair.field.variables[number]
            is_max = len(self.pair.definitions[number - self.pair.first_atom]) == 1
            for function in [self.one - atom] if is_max else [atom, self.one - atom]:
                found = self.fact(function, AT_LEAST_ZERO, frozenset(), frozenset())
                if found is not None:
                    yield found

    # ------------------------------------------------------------------ what is known

    def _known_of(self, given: frozenset[Context]) -> dict[Factor, int]:
        known = {**self.pair.known}
        for prefix in given:
            _note(known, self.pair.draft_entry(prefix), POSITIVE)
        return known

    def _points_of(self, given: frozenset[Context]) -> list[Point]:
        entries = [self.pair.draft_entry(prefix) for prefix in given]
        return [p for p in self.points if all(entry.at(p) > 0 for entry in entries)]

    def _function_of(self, factor: Factor) -> RationalFunction:
        return self.pair.field.of(factor.polynomial, self.pair.field.context.constant(1))


def _note(known: dict[Factor, int], function: RationalFunction, mask: int) -> None:
    """Note the sign of a function with one factor."""
    constant, odd, even = function.signs
    if len(odd) == 1 and not even:
        known[odd[0]] = known.get(odd[0], ANY_SIGN) & (mask if constant > 0 else opposite(mask))


def find_facts(
    statement: Statement,
    shape: Shape,
    deadline: float,
    progress: Callable[[int, int], None] | None = None,
    begin: Callable[[Postponement], None] | None = None,
) -> Postponement | None:
    """Prove a statement with postponed decisions.

    Args:
        statement, shape: what is to be proved.
        deadline: of ``time.monotonic``.
        progress: called with the regions done and those known of.
        begin: called before the search, to give it facts.

    Returns:
        The search, which has ``is_settled`` where it succeeded; ``None`` where the verifier cannot be
        followed.
    """
    if any(isinstance(process, WithoutReplacement) for _, process, _ in statement.subjects):
        return None
    num_atoms = MOST_ATOMS
    for _ in range(2):  # the second time with as many variables as there are atoms
        pair = PostponedPair(shape, num_atoms)
        drawn = FormalPair(shape, pair.field, pair.face).known
        run, drafting = PostponingRun(pair, pair.known), PostponingRun(pair, drawn)
        try:
            laws = [
                formal_stops(bound, pair, run, process, drafting) for _, process, bound in statement.subjects
            ]
        except (Exception, NotFollowedError):
            return None
        if run.refused or drafting.refused:
            return None
        num_atoms = len(pair.definitions)
    search = Postponement(pair, deadline, progress)
    for point in search.points[:NUM_REPLAYS]:
        for (_, process, bound), law in zip(statement.subjects, laws, strict=True):
            try:
                replay(bound, pair, point, process, law)
            except InvalidOutcomeError:
                return None
    if begin is not None:
        begin(search)
    run.search = search
    try:
        search.is_settled = all(map(search.settle, statement.conditions(pair, run, laws)))
    except NotFollowedError:
        return None
    return search

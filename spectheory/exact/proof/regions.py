"""The walk through the decisions of a verifier: one run per region, one node per question.

A node splits a region by the sign of a factor.  Every part leads to another node, is a leaf, or is empty by a
lemma.  ``Walk`` keeps the parts that no run has entered yet.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from spectheory.exact.proof.certificates import Node, Part
from spectheory.exact.proof.domain import Face, FormalPair, Shape
from spectheory.exact.proof.emptiness import MOST_POINTS, Emptiness, Finding
from spectheory.exact.proof.formal_numbers import FormalRun, NotFollowedError
from spectheory.exact.proof.points import Point, random_point
from spectheory.exact.proof.rational_functions import (
    ANY_SIGN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    RationalFunction,
    RationalFunctions,
)
from spectheory.foundation.errors import ComputationError

LEAF = "leaf"
FIRST_POINTS = 60


@dataclass
class Branch:
    """A part that is to be entered.

    Attributes:
        pair: the face.
        known: what is known of the signs.
        points: of the part; empty where none is known.
        part: where the run is to be hung.
    """

    pair: FormalPair
    known: dict[Factor, int]
    points: list[Point]
    part: Part


def times(one: int, other: int) -> int:
    """The signs of a product."""
    found = ZERO if (one | other) & ZERO else 0
    if (one & POSITIVE and other & POSITIVE) or (one & NEGATIVE and other & NEGATIVE):
        found |= POSITIVE
    if (one & POSITIVE and other & NEGATIVE) or (one & NEGATIVE and other & POSITIVE):
        found |= NEGATIVE
    return found


def possible_signs(known: Mapping[Factor, int], function: RationalFunction) -> int:
    """The signs that a function may have by what is known of its factors."""
    if function.is_zero:
        return ZERO
    constant, odd, even = function.signs
    mask = POSITIVE if constant > 0 else NEGATIVE
    for factor in odd:
        mask = times(mask, known.get(factor, ANY_SIGN))
    for factor in even:
        sign = known.get(factor, ANY_SIGN)
        mask = times(mask, (ZERO if sign & ZERO else 0) | (POSITIVE if sign & ~ZERO else 0))
    return mask


@dataclass
class Walk:
    """The tree so far.

    Attributes:
        emptiness: the lemmas.
        roots: a part per face.
        waiting: parts that no run has entered.
        num_regions: leaves.
    """

    shape: Shape
    field: RationalFunctions
    emptiness: Emptiness
    roots: list[tuple[Face, Part]] = dataclasses.field(default_factory=list)
    waiting: list[Branch] = dataclasses.field(default_factory=list)
    num_regions: int = 0

    def enter(self, face: Face, seed: int) -> None:
        """Make the whole of a face a part that waits."""
        pair, part, random = FormalPair(self.shape, self.field, face), Part(ANY_SIGN), Random(seed)
        points = [random_point(pair, random) for _ in range(FIRST_POINTS)]
        self.roots.append((face, part))
        self.waiting.append(Branch(pair, {**pair.known}, points, part))


class RegionRun(FormalRun):
    """A run on one branch; every question that is not decided there splits it, and the others wait.

    Attributes:
        branch: where the run is now.
        dead: the branch turned out to be empty.
        is_refined: a factor was found to be 0, so that answers given before may be other ones in a new run.
        failure: of the search itself, which is not to be blamed on the verifier.
    """

    failure: Exception | None = None

    def __init__(self, walk: Walk, branch: Branch) -> None:
        super().__init__(walk.field)
        self.walk, self.branch, self.dead, self.is_refined = walk, branch, False, False

    def is_never_zero(self, factor: Factor) -> bool:
        return not self.branch.known.get(factor, ANY_SIGN) & ZERO

    def has_sign(self, function: RationalFunction, mask: int) -> bool:
        while True:
            possible = possible_signs(self.branch.known, function)
            if not possible & ~mask:
                return True
            if not possible & mask:
                return False
            self._ask(*self._split(function))

    def one_has_sign(self, functions: Sequence[RationalFunction], mask: int) -> bool:
        """Whether one of the functions has one of the signs, everywhere on the region from now on."""
        known = self.branch.known
        if any(not possible_signs(known, function) & ~mask for function in functions):
            return True
        if len(functions) > 1 and self.branch.points:  # the likeliest first
            point = smallest(self.branch.points)
            functions = sorted(functions, key=lambda function: -function.at(point))
        return any(self.has_sign(function, mask) for function in functions)

    def is_at_least_zero(self, function: RationalFunction) -> bool:
        while True:
            possible = possible_signs(self.branch.known, function)
            if not possible & POSITIVE:
                return False
            if not possible & NEGATIVE:
                return True
            factor, options = self._split(function)
            if len(options) > 1 and self._decides(function, factor):
                # Where it cannot be below 0, or cannot be above, the case 0 is left open.
                old = self.branch.known.get(factor, ANY_SIGN)
                above = POSITIVE if self._would_be(function, factor, POSITIVE) == POSITIVE else NEGATIVE
                below = (NEGATIVE | POSITIVE) & ~above
                closed = old & below and self._lemma(factor, below) is not None
                alone = below if closed else above
                options = [alone, old & ~alone]
            self._ask(factor, options)

    def _lemma(self, factor: Factor, mask: int) -> int | None:
        branch = self.branch
        return self.walk.emptiness.quick_lemma(branch.known, factor, mask, branch.points)

    def _decides(self, function: RationalFunction, factor: Factor) -> bool:
        """Whether nothing but the sign of this factor is open."""
        known = self.branch.known
        _, odd, even = function.signs
        others = [other for other in (*odd, *even) if other is not factor]
        return factor in odd and all(known.get(other, ANY_SIGN) in (NEGATIVE, POSITIVE) for other in others)

    def _would_be(self, function: RationalFunction, factor: Factor, sign: int) -> int:
        return possible_signs({**self.branch.known, factor: sign}, function)

    def _split(self, function: RationalFunction) -> tuple[Factor, list[int]]:
        """A factor whose sign is open, and its signs in groups that leave different signs to the function."""
        known = self.branch.known
        _, odd, even = function.signs
        open_factors = []
        for factor in (*odd, *even):
            sign = known.get(factor, ANY_SIGN)
            signs = [one for one in (NEGATIVE, ZERO, POSITIVE) if sign & one]
            if len(signs) > 1 and (factor in odd or sign & ZERO):
                open_factors.append((factor, signs))
        for factor, signs in open_factors:
            groups: dict[int, int] = {}
            for one in signs:
                left = self._would_be(function, factor, one)
                groups[left] = groups.get(left, 0) | one
            if len(groups) > 1:
                return factor, list(groups.values())
        factor, signs = open_factors[0]
        return factor, signs

    def _ask(self, factor: Factor, options: Sequence[int]) -> None:
        branch = self.branch
        if self.dead:
            branch.known[factor] = options[0]
            return
        node, alive = Node(factor, []), []
        for mask in options:
            for found in self._examined(factor, mask):
                part = Part(found.mask, lemma=found.lemma)
                node.parts.append(part)
                if found.lemma is None:
                    known = {**branch.known, factor: found.mask}
                    alive.append(Branch(branch.pair, known, found.points[:MOST_POINTS], part))
        branch.part.target = node
        if not alive:
            self.dead = True
            branch.known[factor] = options[0]
            return
        alive.sort(key=lambda one: -len(one.points))
        self.walk.waiting.extend(reversed(alive[1:]))
        self.branch = alive[0]
        if self.branch.known[factor] == ZERO:
            self.is_refined = True
            self._derive_equalities()

    def _examined(self, factor: Factor, mask: int) -> list[Finding]:
        branch = self.branch
        try:
            return self.walk.emptiness.examine(branch.pair, branch.known, factor, mask, branch.points)
        except Exception as error:
            self.failure = error
            raise NotFollowedError(str(error)) from error

    def check_followed(self, name: str) -> None:
        if self.failure is not None:
            kind = type(self.failure).__name__
            raise ComputationError(
                f"the search failed where it followed {name!r}: {kind}: {self.failure}; please report it"
            ) from self.failure
        super().check_followed(name)

    def begin(self) -> None:
        """Derive what an equality implies before the verifier is run."""
        if any(mask == ZERO for mask in self.branch.known.values()):
            self._derive_equalities()

    def _derive_equalities(self) -> None:
        """Find conditions ≥ 0 that hold with equality, such as the terms of a sum that is 0."""
        again = True
        while again:
            again = False
            branch = self.branch
            for factor, mask in list(branch.known.items()):
                if not mask & ZERO or mask in (ZERO, ANY_SIGN):
                    continue
                lemma = self._lemma(factor, mask & ~ZERO)
                if lemma is None:
                    continue
                part = Part(ZERO)
                branch.part.target = Node(factor, [part, Part(mask & ~ZERO, lemma=lemma)])
                branch.part = part
                branch.known[factor] = ZERO
                again = True


def smallest(points: Sequence[Point]) -> Point:
    """The point with the simplest numbers."""
    return min(points, key=lambda point: point.size)

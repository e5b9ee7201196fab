"""What a walk asks beside the verifiers: which parts are empty, and where points lie.

A search finds the answers and logs them.  A check reads them from the log: no point is tried and no program
is solved.  Both walk in the same way, and a part counts as empty only if a lemma covers the signs that the
part has.  A log with other answers leads to other questions, and then to a lemma that does not fit, or to an
identity that fails.  So what a check accepts holds, whatever the log says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from flint import fmpq

from spectheory.exact.proof.certificates import Lemmas
from spectheory.exact.proof.domain import Domain, Points
from spectheory.exact.proof.emptiness import Finder
from spectheory.exact.proof.numbers import ANY, ZERO, Factor, Function
from spectheory.exact.proof.region import Region, SplitError
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context

KINDS = SPLIT, DERIVED, EMPTY, GUIDE, REFERENCE, CHOICE = range(6)
"""The kinds of questions."""
DOUBTFUL = -1
"""In place of the number of a lemma after a split, for a part that waits."""
Answer = list[int]
"""Lemmas and points are numbered from 1; 0 stands for none."""


class RejectedProofError(InvalidInputError):
    """A stored proof does not hold for the code as it is."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the proof is rejected: {why}")


class Oracle:
    """The answers of a search, or of a stored proof.

    Args:
        domain: the pairs.
        points, lemmas: that are known.
        log: of a stored proof, the answers to every kind of question; ``None`` for a search.

    Attributes:
        log: what was answered.
        aside: regions on which a condition fails, asked about last, with their answers in the log.
    """

    def __init__(
        self, domain: Domain, points: Points, lemmas: Lemmas, log: Sequence[Sequence[Answer]] | None = None
    ) -> None:
        self.domain, self.points, self.lemmas = domain, points, lemmas
        self._finder = Finder(domain, points, lemmas)
        self._recorded = None if log is None else [iter(answers) for answers in log]
        self.log: list[list[Answer]] = [[] for _ in KINDS]
        self.aside: list[tuple[Region, Answer]] = []

    def _answer(self, kind: int, find: Callable[[], Answer]) -> Answer:
        answer = find() if self._recorded is None else next(self._recorded[kind], None)
        if answer is None:
            raise RejectedProofError("its log does not follow the walk")
        self.log[kind].append(answer)
        return answer

    def _number(self, kind: int, most: int, find: Callable[[], int]) -> int:
        """An answer that is one number, from 0 to ``most``."""
        answer = self._answer(kind, lambda: [find()])
        if len(answer) != 1 or not 0 <= answer[0] <= most:
            raise RejectedProofError("its log has an answer that does not exist")
        return answer[0]

    def check_end(self) -> None:
        """Refuse a log that goes on after the walk."""
        if any(next(answers, None) is not None for answers in self._recorded or ()):
            raise RejectedProofError("its log goes on after the walk")

    def _check_covers(self, number: int, region: Region) -> None:
        """Refuse a lemma that does not say that a region is empty."""
        lemmas = self.lemmas.lemmas
        if not 0 < number <= len(lemmas) or not lemmas[number - 1].covers(region.signs):
            raise RejectedProofError("a lemma does not cover the part that it should close")

    def start(self) -> Region:
        """The region of all pairs, no row entered."""
        return Region(self.domain, np.arange(len(self.points.points)))

    def entered(self, region: Region, context: Context) -> list[Region]:
        """The parts by the support of a draft row."""
        parts = [region.entered(context, support) for support in self.domain.supports(context)]
        for part in parts:
            part.points = self.points.with_supports(part.points, {context: part.supports[context]})
        return parts

    def parts(self, region: Region, split: SplitError) -> list[Region]:
        """The parts that are not known to be empty, the doubtful ones marked."""
        factor, found = split.factor, list[Region]()
        parts = [part for mask in split.masks if (part := region.child(factor, mask)) is not None]
        answer = self._answer(SPLIT, lambda: [self._examined(region, part, factor) for part in parts])
        if len(answer) != len(parts):
            raise RejectedProofError("a split has another number of parts")
        for part, lemma in zip(parts, answer, strict=True):
            part.is_doubtful = lemma == DOUBTFUL
            if lemma in (0, DOUBTFUL):
                found.append(part)
            else:
                self._check_covers(lemma, part)
        return found

    def _examined(self, region: Region, part: Region, factor: Factor) -> int:
        lemma = self._finder.examine(region, part, factor)
        return lemma or (0 if len(part.points) else DOUBTFUL)

    def derive(self, region: Region, effort: int) -> int:
        """Find signs ≥ 0 that hold with equality, and keep them.

        Args:
            region: where a condition fails.
            effort: one of ``EFFORTS``, the least first.

        Returns:
            How many; -1 if the region turned out to be empty.
        """
        found = 0
        while True:
            weak = self._weak(region)
            answer = self._answer(DERIVED, lambda: self._finder.derived(region, weak, effort))  # noqa: B023
            if not answer:
                return found
            place, lemma = answer if len(answer) == 2 else (-1, 0)
            if not 0 <= place < len(weak):
                raise RejectedProofError("an equality is derived from another sign")
            factor = weak[place]
            part = region.child(factor, region.signs[factor.number] & ~ZERO)
            if part is not None:
                self._check_covers(lemma, part)
            found += 1
            region.signs[factor.number] = ZERO
            region.equalities.append(factor)
            if not region.use_equalities():
                return -1

    def _weak(self, region: Region) -> list[Factor]:
        """The factors that are ≥ 0 or ≤ 0."""
        factors = self.domain.field.factors
        some = [factors[n] for n, mask in region.signs.items() if mask & ZERO and mask not in (ZERO, ANY)]
        return sorted(some, key=lambda factor: factor.key)

    def is_empty(self, region: Region, *, last: bool = False) -> bool:
        """Whether a region that may well be empty is known to be.  With ``last``, a search takes it as empty
        until all else is walked.
        """
        answer = self._answer(EMPTY, lambda: [self._finder.lemma_of(region, last=last)])
        if self._recorded is None and last and answer == [0] and not len(region.points):
            self.aside.append((region, answer))
            return True
        if answer != [0]:
            self._check_covers(answer[0] if len(answer) == 1 else 0, region)
        return answer != [0]

    def settle_aside(self) -> Region | None:
        """Ask again about the regions that were set aside, with all lemmas and points that are known by now.

        Returns:
            A region with a point, if there is one.
        """
        for region, answer in list(self.aside):
            answer[0] = self._finder.lemma_of(region, last=True)
            if len(region.points):
                return region
            if answer[0]:
                self.aside = [one for one in self.aside if one[1] is not answer]
        return None

    def guide(self, region: Region) -> Sequence[fmpq] | None:
        """A point of the region, if one is known: it chooses the way of a run."""
        most = len(self.points.points)
        number = self._number(GUIDE, most, lambda: int(region.points[0]) + 1 if len(region.points) else 0)
        return self.points.points[number - 1] if number else None

    def may_be_reference(self, region: Region) -> bool:
        """Whether the value on this region may be what all others are compared with."""
        return bool(self._number(REFERENCE, 1, lambda: int(len(region.points) > 0)))

    def choose(self, region: Region, functions: Sequence[Function]) -> int:
        """The place of the function that is the likeliest to be at least 0."""
        return self._number(CHOICE, len(functions) - 1, lambda: self._largest(region, functions))

    def _largest(self, region: Region, functions: Sequence[Function]) -> int:
        if not len(region.points):
            return 0
        point = self.points.points[region.points[0]]
        values = [self.domain.field.at(function, point) for function in functions]
        return values.index(max(values))

    def points_where(self, region: Region, factors: Sequence[Factor]) -> list[list[fmpq]]:
        """Points of a region, also some where factors are not 0."""
        return self._finder.points_where(region, factors)

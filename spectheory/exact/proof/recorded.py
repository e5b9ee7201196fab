"""The answers of a stored proof: no point is tried, no program is solved and no solver is asked.

The walk asks the same questions again.  A part counts as empty only if a lemma covers the signs that the part
has now.  A log with other answers leads to other questions, and then to a lemma that does not fit, or to an
identity that fails.  So what is accepted holds, whatever the log says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq

from spectheory.exact.proof.certificates import Lemmas
from spectheory.exact.proof.domain import Domain, Points
from spectheory.exact.proof.emptiness import (
    CHOICE,
    DERIVED,
    DOUBTFUL,
    EMPTY,
    GUIDE,
    REFERENCE,
    SPLIT,
    set_equal,
)
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, NEGATIVE, ZERO, Factor, Function
from spectheory.exact.proof.region import Oracle, Region, SplitError
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context


class RejectedProofError(InvalidInputError):
    """A stored proof does not hold for the code as it is."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the proof is rejected: {why}")


class Recorded(Oracle):
    """The log of a search.

    Args:
        domain: the pairs.
        log: its entries.
        lemmas: whose identities are checked.
        polynomials: the factors that the log names.
        points: guide points.
    """

    def __init__(
        self,
        domain: Domain,
        log: Sequence[Sequence[int]],
        lemmas: Lemmas,
        polynomials: Sequence[Factor],
        points: Points,
    ) -> None:
        self._domain, self._lemmas, self._polynomials, self.points = domain, lemmas, polynomials, points
        self._entries = iter(log)

    def start(self, domain: Domain) -> Region:
        return Region(domain, np.zeros(0, dtype=int))

    def entered(self, region: Region, context: Context) -> list[Region]:
        return [region.entered(context, support) for support in self._domain.supports(context)]

    def _next(self, kind: int) -> list[int]:
        entry = next(self._entries, None)
        if entry is None or not entry or entry[0] != kind:
            raise RejectedProofError("its log does not follow the walk")
        return [*entry[1:]]

    def check_end(self) -> None:
        """Refuse a log that goes on."""
        if next(self._entries, None) is not None:
            raise RejectedProofError("its log goes on after the walk")

    def _check_covers(self, number: int, region: Region) -> None:
        """Refuse a lemma that does not say that a region is empty."""
        lemmas = self._lemmas.lemmas
        if not 0 <= number < len(lemmas) or not lemmas[number].covers(region.signs):
            raise RejectedProofError("a lemma does not cover the part that it should close")

    def _factor(self, number: int) -> Factor:
        if not 0 <= number < len(self._polynomials):
            raise RejectedProofError("its log names a polynomial that it does not have")
        return self._polynomials[number]

    def parts(self, region: Region, split: SplitError) -> list[Region]:
        polynomial, *lemmas = self._next(SPLIT)
        if self._factor(polynomial) is not split.factor:
            raise RejectedProofError("it splits by another polynomial")
        parts = [part for mask in split.masks if (part := region.child(split.factor, mask)) is not None]
        if len(parts) != len(lemmas):
            raise RejectedProofError("a split has another number of parts")
        for part, lemma in zip(parts, lemmas, strict=True):
            part.is_doubtful = lemma == DOUBTFUL
            if lemma > 0:
                self._check_covers(lemma - 1, part)
        return [part for part, lemma in zip(parts, lemmas, strict=True) if lemma <= 0]

    def derive(self, region: Region, effort: int) -> int:
        entry = self._next(DERIVED)
        if len(entry) % 2:
            raise RejectedProofError("a derived equality has no lemma")
        for number, lemma in zip(entry[::2], entry[1::2], strict=True):
            factor = self._factor(number)
            mask = region.signs.get(factor.number, 0)
            if mask not in (NEGATIVE | ZERO, AT_LEAST_ZERO):
                raise RejectedProofError("an equality is derived from another sign")
            part = region.child(factor, mask & ~ZERO)
            if part is not None:
                self._check_covers(lemma - 1, part)
            if not set_equal(region, factor):
                return -1
        return len(entry) // 2

    def is_empty(self, region: Region, *, last: bool = False) -> bool:
        [lemma] = self._next(EMPTY)
        if lemma:
            self._check_covers(lemma - 1, region)
        return bool(lemma)

    def guide(self, region: Region) -> Sequence[fmpq] | None:
        [number] = self._next(GUIDE)
        if not 0 <= number <= len(self.points.points):
            raise RejectedProofError("it has no such point")
        return self.points.points[number - 1] if number else None

    def may_be_reference(self, region: Region) -> bool:
        return bool(self._next(REFERENCE)[0])

    def choose(self, region: Region, functions: Sequence[Function]) -> int:
        [number] = self._next(CHOICE)
        if not 0 <= number < len(functions):
            raise RejectedProofError("it chooses a function that is not there")
        return number


def is_list_of_whole_numbers(value: Any) -> bool:
    """Whether a value from a file is a list of integers, and of no booleans."""
    return isinstance(value, list) and all(type(entry) is int for entry in value)

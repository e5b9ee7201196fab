"""Which parts of a walk are empty: those that lemmas close, and those that their equalities leave no sign.

A check knows the lemmas of a stored proof, and solves the equalities itself (``Region.solve``).  All other
parts are walked.  A search (``search_oracle``) looks for lemmas, and for points, on the same walk.
"""

from __future__ import annotations

from flint import fmpq

from spectheory.exact.proof.certificates import Lemmas
from spectheory.exact.proof.domain import Domain, Points
from spectheory.exact.proof.numbers import ANY, ZERO, Factor
from spectheory.exact.proof.region import EmptyRegionError, Region, SplitError
from spectheory.pairs.contexts import Context


class Oracle:
    """The parts that known lemmas close.

    Args:
        domain: the pairs.
        lemmas, points: that are known.

    Attributes:
        used: the numbers of the lemmas that closed a part.
    """

    def __init__(self, domain: Domain, lemmas: Lemmas, points: Points) -> None:
        self.domain, self.lemmas, self.points = domain, lemmas, points
        self.used: dict[int, None] = {}

    def _uses(self, lemma: int) -> bool:
        if lemma:
            self.used[lemma] = None
        return lemma > 0

    def start(self) -> Region:
        """The region of all pairs, no row entered."""
        return Region(self.domain)

    def entered(self, region: Region, context: Context) -> list[Region]:
        """The parts by the support of a draft row."""
        return [region.entered(context, support) for support in self.domain.supports(context)]

    def parts(self, region: Region, split: SplitError) -> list[Region]:
        """The parts that are not known to be empty."""
        parts = [region.child(split.factor, mask) for mask in split.masks]
        return [part for part in parts if part is not None and not self.closes(region, part, split.factor)]

    def closes(self, region: Region, part: Region, factor: Factor, effort: int = 0) -> bool:
        """Whether a part is known to be empty, in which a factor has a new sign.

        Args:
            region, part, factor: a region, its part, and the factor.
            effort: of a search for lemmas; 0 for the part of a split.
        """
        return self._uses(self.lemmas.covering(part, region))

    def derive(self, region: Region, effort: int) -> bool:
        """Find signs ≥ 0 that hold with equality on a region where a condition fails, and keep them.

        Raises:
            EmptyRegionError: the region turned out to be empty.
        """
        found = False
        while factor := next((one for one in _weak(region) if self._is_zero(region, one, effort)), None):
            found = True
            if not region.solve(factor):
                raise EmptyRegionError
        return found

    def _is_zero(self, region: Region, factor: Factor, effort: int) -> bool:
        part = region.child(factor, region.signs[factor.number] & ~ZERO)
        return part is None or self.closes(region, part, factor, effort)

    def is_empty(self, region: Region, *, last: bool = False) -> bool:
        """Whether a region that may well be empty is known to be; ``last`` if a condition fails on it."""
        return self._uses(self.lemmas.covering(region))

    def point(self, region: Region) -> list[fmpq] | None:
        """A point of the region, if one is known."""
        numbers = self.points.inside(region.signs, region.supports)
        return self.points.points[numbers[0]] if len(numbers) else None


def _weak(region: Region) -> list[Factor]:
    """The factors that are ≥ 0 or ≤ 0."""
    factors = region.domain.field.factors
    some = [factors[n] for n, mask in region.signs.items() if mask & ZERO and mask not in (ZERO, ANY)]
    return sorted(some, key=lambda factor: factor.key)

"""The tokens of a context-free pair, merged by their ratio p/q."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import to_fraction
from spectheory.pairs.pair import ModelPair


class Ratios(NamedTuple):
    """The tokens that can be drafted; tokens of equal p/q are merged (theory.md Statement 5.33).

    Attributes:
        draft, target: the sums of q > 0 and of p over the tokens of each ratio, [T].
    """

    draft: list[Fraction]
    target: list[Fraction]

    @staticmethod
    def of(pair: ModelPair) -> Ratios:
        """Merge the tokens of a context-free pair in exact rationals, after dividing each row by its sum.

        Raises:
            InvalidInputError: a row sums to 0.
        """
        target, draft = ([_rational(entry) for entry in levels[0][0]] for levels in (pair.target, pair.draft))
        sums = sum(target), sum(draft)
        if not all(sums):
            raise InvalidInputError("a row sums to 0, so that no division makes it a law")
        masses: dict[Fraction, list[Fraction]] = {}
        for p, q in zip(target, draft, strict=True):
            if q > 0:
                of_ratio = masses.setdefault(p / q, [Fraction(0), Fraction(0)])
                of_ratio[0] += q / sums[1]
                of_ratio[1] += p / sums[0]
        return Ratios(*map(list, zip(*masses.values(), strict=True)))

    def as_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (``target``, ``draft``) as arrays of Fractions, [T] each."""
        return np.array(self.target, dtype=object), np.array(self.draft, dtype=object)


def _rational(entry: Any) -> Fraction:
    return Fraction(float(entry)) if isinstance(entry, float) else to_fraction(entry)

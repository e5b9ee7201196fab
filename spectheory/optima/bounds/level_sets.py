"""Level sets of r/q, found by one sort: they decide whether r can be the law of a selected draft.

The law r of a path selected among K i.i.d. drafts has r(S) ≤ f(q(S)) for every set S of leaves, with
f(u) = 1 - (1 - u)^K.  Of the 2^M sets of M leaves we need to check only M (theory.md Statement 5.4): the
largest excess r(S) - f(q(S)) and the largest ratio r(S)/f(q(S)) occur at level sets {b : r(b)/q(b) ≥ t}.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectheory.foundation.arrays import (
    Array,
    argsort,
    hit_probability,
    namespace,
    ones_like,
    quotients,
    take_along,
)
from spectheory.foundation.exact_numbers import is_exact


def ratios(numerator: Array, denominator: Array) -> Array:
    """Compute numerator / denominator, [..., V].  Division by 0 gives ±∞ with the numerator's sign.

    0/0 is +∞, so that it comes last in ascending order.  Rationals have no infinity, so we use a number
    larger than all other ratios instead.
    """
    xp = namespace(numerator)
    empty, one = denominator == 0, ones_like(denominator[..., :1])
    if is_exact(numerator):
        ratio = numerator / xp.where(empty, one, denominator)
        beyond = one * (abs(ratio).sum() + 1)
        return xp.where(empty, xp.where(numerator < 0, -beyond, beyond), ratio)
    # float division gives ±∞, also on overflow, but NaN for 0/0
    ratio = quotients(numerator, denominator)
    return xp.where(empty & (numerator == 0), one * float("inf"), ratio)


class SortedByRatio(NamedTuple):
    """Entries in ascending order of numerator/denominator, ties by index.  All sorts by p/q use it.

    A token that is never drafted has an infinite ratio (``ratios``).
    """

    ratios: Array
    order: Array
    numerator: Array
    denominator: Array

    @staticmethod
    def of(numerator: Array, denominator: Array) -> SortedByRatio:
        by_token = ratios(numerator, denominator), numerator, denominator
        order = argsort(by_token[0])
        ascending, *others = (take_along(array, order) for array in by_token)
        return SortedByRatio(ascending, order, *others)


class LevelSets(NamedTuple):
    """The prefixes S_1 ⊂ S_2 ⊂ .. of the leaves in descending order of r/q.

    Attributes:
        order: leaf numbers, [M]; the first i of them are S_i.  A leaf with q = 0 < r comes first, and a leaf
            with r ≤ 0 = q comes last.
        masses: r(S_i), [M].
        draft_masses: q(S_i), [M].
        limits: f(q(S_i)), [M].
    """

    order: np.ndarray
    masses: np.ndarray
    draft_masses: np.ndarray
    limits: np.ndarray

    @staticmethod
    def of(law: np.ndarray, draft_probs: np.ndarray, num_drafts: int) -> LevelSets:
        """Sort the leaves by r/q and compute the sums over all prefixes.

        Args:
            law, draft_probs: r and q, [M], both exact or both float.
            num_drafts: K.

        Example:
            >>> sets = LevelSets.of(np.array([0.125, 0.875]), np.array([0.5, 0.5]), 2)
            >>> print(sets.order, sets.excesses, sets.is_feasible(tolerance=1e-9))
            [1 0] [0.125 0.   ] False
        """
        _, order, negative, draft = SortedByRatio.of(-law, draft_probs)
        draft_masses = draft.cumsum()
        return LevelSets(order, -negative.cumsum(), draft_masses, hit_probability(draft_masses, num_drafts))

    @property
    def excesses(self) -> np.ndarray:
        """The excess r(S_i) - f(q(S_i)) of every set, [M]."""
        return self.masses - self.limits

    @property
    def shares(self) -> np.ndarray:
        """The ratio r(S_i) / f(q(S_i)) of every set, [M], in float64.

        It is 0 if r(S_i) ≤ 0, and otherwise infinite if the limit is 0.
        """
        return np.where(self.masses > 0, ratios(self.masses, self.limits), 0.0)

    def is_feasible(self, tolerance: float) -> bool:
        """True if r(S) ≤ (1 + tolerance) f(q(S)) for every set S of leaves."""
        return bool((self.excesses <= tolerance * self.limits).all())  # a NaN is refused too

    def leaves(self, index: int) -> np.ndarray:
        """List the leaf numbers of the set S_i with i = index + 1, ascending."""
        return np.sort(self.order[: index + 1])

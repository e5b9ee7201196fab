"""Bounds on the best acceptance probability at one position (spectr.txt Lemma 3)."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any, NamedTuple

import numpy as np

MAX_TERMS = 200_000
"""Default for the number of (subset, drafts) terms Lemma 3 is minimised over."""


class AcceptanceBounds(NamedTuple):
    """lower <= alpha_K <= upper.

    Attributes:
        lower: (1 - (1 - 1/K)^K) times ``upper``.
        upper: the minimum over subsets in Eq. 9, or its value at the whole vocabulary.
        minimised: whether all subsets were tried.
    """

    lower: Any
    upper: Any
    minimised: bool


def acceptance_bounds(
    target_probs: np.ndarray, draft_probs: np.ndarray, num_drafts: int, max_terms: int = MAX_TERMS
) -> AcceptanceBounds:
    """Lower and upper bounds on alpha_K(p, q), the best acceptance with K i.i.d. drafts.

    spectr.txt Lemma 3 and Eq. 9, in the notation of the package (p target, q draft):

        upper = min over S of  sum_{y in S} min(p(y), 1 - (1 - q(y))^K)
                + sum_{x_1..x_K} min(prod_k q(x_k), p({x_1..x_K} without S)),
        lower = (1 - (1 - 1/K)^K) upper.

    The minimum runs over 2^V subsets and the drafts over V^K tuples (multisets here).  Where that
    is more than ``max_terms``, S is the whole vocabulary: still an upper bound, and the lower bound
    that goes with it still holds (Eq. 11).

    Args:
        target_probs, draft_probs: [V], exact rationals or floats.
        num_drafts: K >= 1.
        max_terms: the largest number of subsets times multisets that is enumerated.

    Example:
        >>> from spectheory.pair import parse_probs
        >>> bounds = acceptance_bounds(parse_probs(["1/3", "2/3"]), parse_probs(["2/3", "1/3"]), 2)
        >>> print(bounds.lower, bounds.upper)
        2/3 8/9
    """
    target, draft = list(target_probs), list(draft_probs)
    one = sum(target) - sum(target) + 1
    single = [min(p, one - (one - q) ** num_drafts) for p, q in zip(target, draft, strict=True)]
    size = len(target)
    minimised = 2**size * comb(size + num_drafts - 1, num_drafts) <= max_terms
    subsets = range(2**size) if minimised else [2**size - 1]
    drafts = _draft_multisets(draft, num_drafts) if minimised else []
    upper = min(_bound(subset, single, target, drafts) for subset in subsets)
    shortfall = (one - one / num_drafts) ** num_drafts
    return AcceptanceBounds((one - shortfall) * upper, upper, minimised)


def _draft_multisets(draft: list[Any], num_drafts: int) -> list[tuple[frozenset[int], Any, int]]:
    """(the distinct tokens, probability of one order, number of orders) of every multiset of drafts."""
    result = []
    for tokens in combinations_with_replacement(range(len(draft)), num_drafts):
        counts = Counter(tokens)
        orders = factorial(num_drafts) // prod(factorial(count) for count in counts.values())
        result.append((frozenset(counts), prod(draft[token] for token in tokens), orders))
    return result


def _bound(
    subset: int, single: list[Any], target: list[Any], drafts: list[tuple[frozenset[int], Any, int]]
) -> Any:
    """Eq. 9 at one subset, whose members are the bits that are set."""
    total = sum(value for token, value in enumerate(single) if subset >> token & 1)
    outside = [token for token in range(len(target)) if not subset >> token & 1]
    if not outside:
        return total
    for drafted, probability, orders in drafts:
        total += orders * min(probability, sum(target[token] for token in outside if token in drafted))
    return total

"""Bounds on the optimal acceptance at one position (spectr2023 Lemma 3), by enumeration."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.foundation.exact_numbers import flint_if_exact, plain_number
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.one_position.min_cut import check_single_rows
from spectheory.pairs.contexts import count_orders

# The subsets are listed one after the other, which takes about a second there.
MAX_TERMS = 200_000


class TransportBounds(NamedTuple):
    """lower ≤ α_K ≤ upper.

    Attributes:
        lower: (1 - (1 - 1/K)^K) times ``upper``.
        upper: ᾱ_K, the minimum in Eq. 9.
        tokens: whether each token belongs to the minimising set Ω_0, booleans [V].
    """

    lower: Any
    upper: Any
    tokens: np.ndarray

    def __bool__(self) -> bool:
        raise no_verdict(self, ".lower and .upper")


def transport_bounds(
    target_probs: Sequence[Any] | np.ndarray,
    draft_probs: Sequence[Any] | np.ndarray,
    num_drafts: int,
) -> TransportBounds:
    """The information-theoretic bounds on α_K with K i.i.d. drafts.

    Source: spectr2023 Lemma 3 and Eq. 9 (its p is our draft, its q our target),

        (1 - (1 - 1/K)^K) ᾱ_K ≤ α_K ≤ ᾱ_K,
        ᾱ_K = min_{Ω_0 ⊆ V} { Σ_{y ∈ Ω_0} min{target(y), 1 - (1 - draft(y))^K}
                + Σ_{x ∈ V^K} min{Π_k draft(x_k), Σ_{y ∈ S(x) \\ Ω_0} target(y)} }.

    The upper bound is always attained (theory.md Statement 3.4): ᾱ_K ≤ min cut = α_K ≤ ᾱ_K, because without
    the second entries of both minima the expression is target(Ω_0) + 1 - draft(Ω_0)^K, the cut at Ω_0.
    ``optimal_acceptance`` computes the same number in O(V log V).

    Args:
        target_probs, draft_probs: one row each, [V]; strings and Fractions are exact.
        num_drafts: K.

    Returns:
        Both bounds and the minimising set, the first in the order of the numbers Σ_{y∈Ω_0} 2^y.

    Raises:
        InvalidInputError: rows that are not probabilities over one vocabulary, or a bad num_drafts.
        EnumerationTooLargeError: there are more than 200 000 terms, 2^V subsets times multisets of K tokens.

    Example:
        >>> bounds = transport_bounds(["1/3", "2/3"], ["2/3", "1/3"], num_drafts=2)
        >>> print(bounds.lower, bounds.upper, bounds.tokens)
        2/3 8/9 [False False]
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_single_rows(target_probs, draft_probs)
    V = len(target)
    terms = 2**V * comb(V + num_drafts - 1, num_drafts)
    if terms > MAX_TERMS:
        raise EnumerationTooLargeError(
            f"the bounds of spectr2023 Eq. 9 for {num_drafts} drafts over {V} tokens have {terms} terms, the "
            f"limit is {MAX_TERMS}; use optimal_acceptance, because the bound is attained"
        )
    target, draft = flint_if_exact(target), flint_if_exact(draft)
    values = [
        equation_9(target, draft, num_drafts, np.array(inside[::-1]))
        for inside in product((False, True), repeat=V)
    ]
    best = int(np.argmin(np.array(values, dtype=target.dtype)))
    upper = values[best]
    # integers first: rationals stay rationals
    lower = upper * (num_drafts**num_drafts - (num_drafts - 1) ** num_drafts) / num_drafts**num_drafts
    tokens = (best >> np.arange(V) & 1).astype(bool)
    return TransportBounds(plain_number(lower), plain_number(upper), tokens)


def equation_9(target: np.ndarray, draft: np.ndarray, num_drafts: int, tokens: np.ndarray) -> Any:
    """The expression in braces of spectr2023 Eq. 9 for one Ω_0: an upper bound on α_K for any set."""
    total = np.minimum(target[tokens], hit_probability(draft[tokens], num_drafts)).sum() + target[0] * 0
    outside: dict[frozenset[int], Any] = {}
    for drafts in combinations_with_replacement(range(len(draft)), num_drafts):
        support = frozenset(drafts)
        if support not in outside:
            outside[support] = sum((target[y] for y in support if not tokens[y]), start=target[0] * 0)
        drafted = prod(draft[x] for x in drafts)
        total = total + count_orders(drafts) * min(drafted, outside[support])
    return total

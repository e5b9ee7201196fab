"""Bounds on the optimal acceptance at one position (spectr2023 Lemma 3), by enumeration."""

from itertools import combinations_with_replacement, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.exact_numbers import plain_number
from spectheory.optima.one_position.min_cut import check_single_rows
from spectheory.pairs.contexts import count_orders


class TransportBounds(NamedTuple):
    """lower ≤ α_K ≤ upper, and whether each token belongs to the minimising set Ω_0, booleans [V]."""

    lower: Any
    upper: Any
    tokens: np.ndarray


def transport_bounds(target_probs: Any, draft_probs: Any, num_drafts: int) -> TransportBounds:
    """The information-theoretic bounds on α_K with K i.i.d. drafts, over the 2^V sets Ω_0.

    Source: spectr2023 Lemma 3 and Eq. 9 (its p is our draft, its q our target),

        (1 - (1 - 1/K)^K) ᾱ_K ≤ α_K ≤ ᾱ_K,
        ᾱ_K = min_{Ω_0 ⊆ V} { Σ_{y ∈ Ω_0} min{target(y), 1 - (1 - draft(y))^K}
                + Σ_{x ∈ V^K} min{Π_k draft(x_k), Σ_{y ∈ S(x) \\ Ω_0} target(y)} }.

    The upper bound is always attained (theory.md Statement 3.4).
    """
    target, draft = check_single_rows(target_probs, draft_probs)
    sets = [np.array(inside[::-1]) for inside in product((False, True), repeat=len(target))]
    values = [equation_9(target, draft, num_drafts, inside) for inside in sets]
    best = int(np.argmin(values))
    upper = values[best]
    # integers first: rationals stay rationals
    lower = upper * (num_drafts**num_drafts - (num_drafts - 1) ** num_drafts) / num_drafts**num_drafts
    return TransportBounds(plain_number(lower), plain_number(upper), sets[best])


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

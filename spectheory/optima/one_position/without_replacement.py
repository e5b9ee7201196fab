"""Optimal acceptance at one position with drafts without replacement: a level set of p/q attains it.

The idea is from arXiv 2502.18779, whose text we did not have.  Our proof is theory.md Statement 3.13.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import flint_if_exact, plain_number
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.one_position.min_cut import MinCut, check_single_rows

MAX_SUBSETS = 1_000_000
"""Largest number of sets of K-1 tokens that are listed."""


def optimal_acceptance_without_replacement(
    target_probs: Sequence[Any] | Array, draft_probs: Sequence[Any] | Array, num_drafts: int
) -> MinCut:
    """Compute the largest probability that the output is one of K drafts that are drawn without replacement.

    Source: theory.md Statement 3.13.  It is the minimum of target(H) + 1 - P(all drafts in H) over the sets H
    of the n tokens with the smallest target/draft, n = 0, 1, ..  For n ≥ K

        P(all drafts in H) = 1 - (1 - q(H)) Σ_{j<K} (-1)^{K-1-j} binom(n-j-1, K-1-j) E_j,

    with q the draft row and E_j the sum of 1 / (1 - q(D)) over the sets D of j tokens of H.  The terms
    alternate in sign, so float rows lose digits if n is large and K > 2.  K = 2 needs one sort and one pass
    over the tokens.

    Args:
        target_probs, draft_probs: rows [V], exact or float.
        num_drafts: K, at most the number of tokens with q > 0.

    Raises:
        InvalidInputError: the rows are not distributions over one vocabulary, or num_drafts is out of range.
        EnumerationTooLargeError: there are more than a million sets of K-1 tokens.

    Example:
        >>> rows = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
        >>> print(*optimal_acceptance_without_replacement(*rows, 2))
        11/12 [False  True  True]
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_single_rows(target_probs, draft_probs)
    drafted = np.flatnonzero(draft > 0)
    if num_drafts > len(drafted):
        raise InvalidInputError(
            f"num_drafts must be at most the {len(drafted)} tokens that can be drafted without replacement, "
            f"got {num_drafts}"
        )
    if (subsets := comb(len(drafted), num_drafts - 1)) > MAX_SUBSETS:
        raise EnumerationTooLargeError(
            f"there are {subsets} sets of {num_drafts - 1} tokens, the limit is {MAX_SUBSETS}; "
            "use fewer drafts"
        )
    p, q = flint_if_exact(target), flint_if_exact(draft)
    order = [token for token in SortedByRatio.of(p, q).order.tolist() if q[token] > 0]
    one = q.sum() * 0 + 1
    # sums[j] is E_j over the tokens so far
    sums = [one, *[one * 0] * (num_drafts - 1)]
    cuts, inside_target, inside_draft = [one], one * 0, one * 0
    for n, token in enumerate(order, 1):
        for j in range(1, num_drafts):
            below = combinations(order[: n - 1], j - 1)
            sums[j] += sum((1 / (1 - q[token] - sum(q[list(rest)])) for rest in below), one * 0)
        inside_target, inside_draft = inside_target + p[token], inside_draft + q[token]
        if n < num_drafts:
            outside = one  # P(some draft is not in H)
        elif n < len(order):
            signed = (
                (-1) ** (num_drafts - 1 - j) * comb(n - j - 1, num_drafts - 1 - j) * sums[j]
                for j in range(num_drafts)
            )
            outside = (1 - inside_draft) * sum(signed, one * 0)
        else:
            outside = one * 0
        cuts.append(inside_target + outside)
    best = min(range(len(cuts)), key=lambda n: cuts[n])
    tokens = np.zeros(len(target), dtype=bool)
    tokens[order[:best]] = True
    return MinCut(plain_number(cuts[best]), tokens)

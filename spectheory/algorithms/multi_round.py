"""Multi-round rejection at one position: the acceptance of recursive speculative sampling."""

from __future__ import annotations

from typing import Any

from spectheory.arrays import Array, namespace, normalise, ones_like, positive_part


def multi_round_acceptance(target_probs: Array, draft_probs: Array, num_drafts: int) -> Any:
    """P(one of K i.i.d. drafts is accepted) under multi-round rejection sampling.

    The algorithm that spectr.txt App. B.3 calls MULTI-ROUND (SpecInfer; EAGLE uses it on trees), in
    the notation of the package (p target, q draft):

    1. p_1 = p
    2. draft x_k ~ q is accepted with probability min(1, p_k(x_k) / q(x_k))
    3. after a rejection p_{k+1} = max(p_k - q, 0), normalised
    4. after K rejections the token is drawn from p_{K+1}

    Given that drafts 1..k-1 were rejected, draft k is accepted with probability sum_x min(p_k, q),
    whatever they were.  So the acceptance is

        1 - prod_{k=1..K} (1 - sum_x min(p_k(x), q(x))).

    Args:
        target_probs: [..., V], exact rationals or floats.
        draft_probs: [..., V], the same kind.
        num_drafts: K >= 1, drafts with replacement.

    Returns:
        A probability, [...]; exact for exact rows.

    Example:
        >>> from spectheory.pair import parse_probs
        >>> print(multi_round_acceptance(parse_probs(["1/3", "2/3"]), parse_probs(["2/3", "1/3"]), 2))
        7/9
    """
    xp = namespace(target_probs)
    current = target_probs
    all_rejected = ones_like(target_probs[..., 0])
    for _ in range(num_drafts):
        all_rejected = all_rejected * (1 - xp.sum(xp.minimum(current, draft_probs), axis=-1))
        # Without any mass left nothing can be rejected: all_rejected is 0 and stays 0.
        current = normalise(positive_part(current - draft_probs))
    return 1 - all_rejected

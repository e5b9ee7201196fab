"""The Gumbel coupling of one position: drafts and output from common noise, and their acceptance.

The idea is that of arXiv 2408.07978 (one draft) and gls2025 (a list of drafts), whose texts were not at hand.
Draft k and the output Z are the winners of races with common times, E_kx independent and exponential with
mean 1:

    X_k = argmin_x E_kx / q(x),      Z = argmin_x min_k E_kx / p(x).

The drafts are i.i.d. from q, and Z, of law p, does not depend on them (theory.md Statement 3.11).
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.foundation.exact_numbers import plain_number
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.one_position.min_cut import check_single_rows

MAX_TERMS = 200_000
"""The most exponentials in the product over the other drafts."""


def gumbel_acceptance(
    target_probs: Sequence[Any] | Array, draft_probs: Sequence[Any] | Array, num_drafts: int
) -> Any:
    """P(Z is one of the K drafts) of the Gumbel coupling, in closed form.

    Source: theory.md Statement 3.11.  It is

        Σ_i p_i [1 - ∫_0^∞ K e^{-Kt} (1 - e^{-t c_i}) (1 - B_i(t))^{K-1} dt],

        c_i = Σ_j max(p_i q_j/q_i - p_j, 0),      B_i(t) = t ∫_0^∞ e^{-t g_i(s)} ds,
        g_i(s) = s + Σ_j max((p_i + s) q_j/q_i - p_j, 0),      the sums over j ≠ i.

    g is piecewise linear, so B is a sum of exponentials, and the integral is rational for rational rows.
    With one draft this is Σ_i p_i / (1 + c_i) = Σ_i 1 / Σ_j max(p_j/p_i, q_j/q_i).

    Args:
        target_probs, draft_probs: rows [V], exact or float.
        num_drafts: K.

    Returns:
        A Fraction for exact rows.

    Raises:
        InvalidInputError: rows that are not probabilities over one vocabulary, or a bad num_drafts.
        EnumerationTooLargeError: the power of B has too many terms.

    Example:
        >>> print(*(gumbel_acceptance(["1/3", "2/3"], ["2/3", "1/3"], K) for K in (1, 2)))
        2/3 22/27
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_single_rows(target_probs, draft_probs)
    if (terms := (len(target) + 1) ** (num_drafts - 1)) > MAX_TERMS:
        raise EnumerationTooLargeError(
            f"{num_drafts} drafts from {len(target)} tokens make up to {terms} terms, the limit is "
            f"{MAX_TERMS}; use fewer drafts or tokens"
        )
    accepted = target[0] * 0
    for token in np.flatnonzero((target > 0) & (draft > 0)):
        accepted = accepted + target[token] * (1 - _missed(target, draft, int(token), num_drafts))
    return plain_number(accepted)


def _missed(target: Array, draft: Array, token: int, num_drafts: int) -> Any:
    """P(no draft is Z | Z = token): ∫ K e^{-Kt} (1 - e^{-t c}) (1 - B(t))^{K-1} dt."""
    others = _not_drafted_elsewhere(target, draft, token)
    stays = min(others)  # g(0) = c, the smallest rate of B
    one = target[token] / target[token]
    terms = {one * 0: one}
    for _ in range(num_drafts - 1):
        longer: dict[Any, Any] = defaultdict(lambda: one * 0)
        for rate, coefficient in terms.items():
            longer[rate] += coefficient
            for other, share in others.items():
                longer[rate + other] -= coefficient * share
        terms = longer
    return sum(
        (
            coefficient * (num_drafts / (num_drafts + rate) - num_drafts / (num_drafts + rate + stays))
            for rate, coefficient in terms.items()
        ),
        one * 0,
    )


def _not_drafted_elsewhere(target: Array, draft: Array, token: int) -> dict[Any, Any]:
    """B(t) = Σ_m b_m e^{-t g_m}, as {g_m: b_m}: P(another draft is the token | Z is the token, at time t).

    g has the slope γ_m after its m-th kink, and b_m = 1/γ_m - 1/γ_{m-1}, b_0 = 1/γ_0.
    """
    relative = draft / draft[token]
    slope, value = target[token] / target[token], target[token] * 0
    kinks = []
    for other in np.flatnonzero(draft > 0):
        if other != token:
            # max((p_i + s) q_j/q_i - p_j, 0) rises from s = p_j q_i/q_j - p_i on.
            start = target[other] / relative[other] - target[token]
            if start <= 0:
                slope, value = slope + relative[other], value - start * relative[other]
            else:
                kinks.append((start, relative[other]))
    found, before, place = {value: 1 / slope}, 1 / slope, value * 0
    for start, rise in sorted(kinks):
        value, place, slope = value + slope * (start - place), start, slope + rise
        found[value] = found.get(value, 0) + 1 / slope - before
        before = 1 / slope
    return found

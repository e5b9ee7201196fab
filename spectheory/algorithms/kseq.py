"""K-SEQ at one position: its division factor, acceptance probability and residual."""

from __future__ import annotations

from typing import NamedTuple

from spectheory.arrays import Array, divide_or_zero, namespace, ones_like, positive_part, zeros_like


class KSeqRule(NamedTuple):
    """What K-SEQ does at one position, batched over leading axes.

    Attributes:
        division_factor: ρ >= ρ*, [...]; a draft x is accepted with probability min(1, p/(ρ q)).
        acceptance: 1 - (1 - β(ρ))^n, the probability that one of n drafts is accepted, [...].
        residual: [..., V] mass of the correction token (Eq. 5), not normalised.
    """

    division_factor: Array
    acceptance: Array
    residual: Array


def kseq_rule(target_probs: Array, draft_probs: Array, num_drafts: Array) -> KSeqRule:
    """K-SEQ with the best division factor ρ*, spectr.txt Algorithm 2 and Theorem 1.

    In the notation of the package (p target, q draft), with β(ρ) = sum_x min(q(x), p(x)/ρ):

    - ρ* solves 1 - (1 - β(ρ))^n = ρ β(ρ) on [1, n]                                (Eq. 6)
    - the residual is p - min(q, p/ρ) p_acc / β, with p_acc = 1 - (1 - β)^n        (Eq. 5)

    Args:
        target_probs: [..., V] floats.
        draft_probs: [..., V].
        num_drafts: [...] the number n >= 1 of i.i.d. drafts, an array of the same float type.

    Returns:
        The ``KSeqRule``.  ρ* is algebraic, so the rule is a float even for rational rows.

    Example:
        >>> import numpy as np
        >>> rule = kseq_rule(np.array([1 / 3, 2 / 3]), np.array([2 / 3, 1 / 3]), np.array(2.0))
        >>> round(float(rule.acceptance), 6)  # THEORY, section 3
        0.81142
    """
    xp = namespace(target_probs)
    division_factor = best_division_factor(target_probs, draft_probs, num_drafts)
    accepted = xp.minimum(draft_probs, target_probs / division_factor[..., None])
    beta = xp.sum(accepted, axis=-1)
    acceptance = 1 - positive_part(1 - beta) ** num_drafts
    # p_acc / β <= ρ for every ρ >= ρ*; the minimum keeps the rounding of ρ* from breaking that,
    # and with it the residual from going negative.
    scale = xp.minimum(divide_or_zero(acceptance, beta), division_factor)
    return KSeqRule(division_factor, acceptance, positive_part(target_probs - accepted * scale[..., None]))


def best_division_factor(target_probs: Array, draft_probs: Array, num_drafts: Array) -> Array:
    """ρ* of Eq. 6 to the last bits, from above: one sort, then a scalar bisection.  [..., V] -> [...]

    Between two neighbouring values of p/q, ρ β(ρ) = A + B ρ with A = the target mass of the tokens
    with p/q <= ρ and B = the draft mass of the others.  f(ρ) = 1 - (1 - β)^n - ρ β decreases
    (Lemma 4), so its signs at all the ratios at once find the interval, and the root in it is
    bracketed with the scalars A and B alone.
    """
    xp = namespace(target_probs)
    infinite = xp.zeros_like(draft_probs) + float("inf")
    empty = draft_probs == 0
    ratio = xp.where(empty, infinite, target_probs / xp.where(empty, ones_like(draft_probs), draft_probs))
    order = xp.argsort(ratio, axis=-1, stable=True)
    ratio = xp.take_along_axis(ratio, order, axis=-1)
    sorted_draft = xp.take_along_axis(draft_probs, order, axis=-1)
    target_mass = xp.cumulative_sum(xp.take_along_axis(target_probs, order, axis=-1), axis=-1)
    draft_mass = xp.sum(draft_probs, axis=-1)[..., None] - xp.cumulative_sum(sorted_draft, axis=-1)

    finite = xp.where(xp.isinf(ratio), xp.ones_like(ratio), ratio)
    excess = _excess(finite, target_mass, draft_mass, num_drafts[..., None])
    before_root = (ratio < 1) | (~xp.isinf(ratio) & (excess > 0))
    # ``before_root`` holds for a prefix of the sorted ratios; rounding could break that at the
    # root itself only, where either neighbouring interval gives the same ρ*.
    passed = xp.sum(xp.astype(before_root, xp.int64), axis=-1)
    lower_target = _entry_or(target_mass, passed - 1, zeros_like(target_mass[..., 0]))
    upper_draft = _entry_or(draft_mass, passed - 1, xp.sum(draft_probs, axis=-1))
    one = ones_like(lower_target)
    low = xp.maximum(one, _entry_or(ratio, passed - 1, one))
    high = xp.maximum(low, xp.minimum(num_drafts, _entry_or(ratio, passed, num_drafts)))
    for _ in range(64):
        middle = (low + high) / 2
        above = _excess(middle, lower_target, upper_draft, num_drafts) > 0
        low, high = xp.where(above, middle, low), xp.where(above, high, middle)
    return high


def _excess(division_factor: Array, target_mass: Array, draft_mass: Array, num_drafts: Array) -> Array:
    """f(ρ) = 1 - (1 - β(ρ))^n - ρ β(ρ), where ρ β(ρ) = A + B ρ on the interval of (A, B)."""
    accepted = target_mass + draft_mass * division_factor
    beta = divide_or_zero(accepted, division_factor)
    return 1 - positive_part(1 - beta) ** num_drafts - accepted


def _entry_or(values: Array, index: Array, default: Array) -> Array:
    """values[..., index], and ``default`` where the index lies outside the last axis."""
    xp = namespace(values)
    size = values.shape[-1]
    inside = (index >= 0) & (index < size)
    safe = xp.where(inside, index, xp.zeros_like(index))
    return xp.where(inside, xp.take_along_axis(values, safe[..., None], axis=-1)[..., 0], default)

"""Values of theory.md §3 for drafts of one position that are not i.i.d. from the draft's row.

Statement 3.11 has the Gumbel coupling, Statement 3.12 hub drafts, and Statement 3.14 tempered drafts.
"""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.exact_numbers import plain_number
from spectheory.optima.one_position.min_cut import check_rows, check_single_rows, optimal_acceptance


def gumbel_acceptance(target_probs: Any, draft_probs: Any, num_drafts: int) -> Any:
    """P(Z is one of the K drafts) of the Gumbel coupling, in closed form.

    Draft k and the output Z are the winners of races with common times, E_kx independent and exponential with
    mean 1: X_k = argmin_x E_kx / q(x) and Z = argmin_x min_k E_kx / p(x).  The acceptance is

        Σ_i p_i [1 - ∫_0^∞ K e^{-Kt} (1 - e^{-t c_i}) (1 - B_i(t))^{K-1} dt],

        c_i = Σ_j max(p_i q_j/q_i - p_j, 0),      B_i(t) = t ∫_0^∞ e^{-t g_i(s)} ds,
        g_i(s) = s + Σ_j max((p_i + s) q_j/q_i - p_j, 0),      the sums over j ≠ i.

    g is piecewise linear, so B is a sum of exponentials, and the integral is rational for rational rows.
    """
    target, draft = check_single_rows(target_probs, draft_probs)
    accepted = target[0] * 0
    for token in np.flatnonzero((target > 0) & (draft > 0)):
        accepted = accepted + target[token] * (1 - _missed(target, draft, int(token), num_drafts))
    return plain_number(accepted)


def _missed(target: np.ndarray, draft: np.ndarray, token: int, num_drafts: int) -> Any:
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


def _not_drafted_elsewhere(target: np.ndarray, draft: np.ndarray, token: int) -> dict[Any, Any]:
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


class HubPlan(NamedTuple):
    """Two hub drafts and the plan that accepts most of them: the law of the drafts, that of the output Z
    given them, and the acceptance."""

    draft_law: dict[tuple[int, int], Any]
    output_given: dict[tuple[int, int], np.ndarray]
    acceptance: Any


def hub_plan(target_probs: Any, draft_probs: Any, hub: int | None = None) -> HubPlan:
    """The optimal plan for drafts {h, x} with the probability m_x = q(x) / (1 - q(h)).

    The hub h is by default the likeliest token of the draft's row.  Given {h, x}, Z is x with probability
    min(p(x), m_x) / m_x, and otherwise follows p - min(p, m), p(h) at the hub, normalised.  The acceptance is
    p(h) + Σ_{x≠h} min(p(x), m_x).
    """
    target, draft = check_single_rows(target_probs, draft_probs)
    hub = int(np.argmax(draft)) if hub is None else hub
    pairs = draft / (1 - draft[hub])
    served = np.minimum(target, pairs)
    served[hub] = 0 * draft[hub]
    left = 1 - served.sum()
    residual = target - served
    draft_law, output_given = {}, {}
    for token in (int(token) for token in np.flatnonzero(draft > 0) if token != hub):
        # all pairs share alike the mass that is not on x: that of the hub and of undrafted tokens
        share = served[token] / pairs[token]
        row = residual * 0 if left == 0 else (1 - share) * residual / left
        row[token] += share
        draft_law[token, hub] = plain_number(draft[token])
        output_given[token, hub] = output_given[hub, token] = row
        if draft[hub] > 0:
            draft_law[hub, token] = plain_number(draft[hub] * pairs[token])
    return HubPlan(draft_law, output_given, plain_number(served.sum() + target[hub]))


def acceptance_at_temperature(
    target_probs: Any, draft_probs: Any, num_drafts: int, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """The optimal acceptance of K i.i.d. drafts from the row q_T in proportion to q^(1/T), and its slope.

    With the minimum cut H of ``optimal_acceptance`` at q_T, the slope in T is

        K q_T(H)^(K-1) / T² · Σ_{x∈H} q_T(x) (log q(x) - Σ_y q_T(y) log q(y)).
    """
    target, draft = (rows.astype(float) for rows in check_rows(target_probs, draft_probs))
    possible = draft > 0
    logs = np.log(np.where(possible, draft, 1.0))
    scaled = np.where(possible, logs / temperature, -np.inf)
    tempered = normalise(np.exp(scaled - scaled.max(axis=-1, keepdims=True)))
    value, tokens = optimal_acceptance(target, tempered, num_drafts)
    mean = (tempered * logs).sum(axis=-1, keepdims=True)
    rise = (np.where(tokens, tempered, 0.0) * (logs - mean)).sum(axis=-1) / temperature**2
    inside = np.where(tokens, tempered, 0.0).sum(axis=-1)
    return np.asarray(value), num_drafts * inside ** (num_drafts - 1) * rise

"""Passes over the pairs (bin b, segment j) of the interior-point method; each reads its large arrays once.

Notation as in ``newton``: transport π [B, N], margins s [B, N], slopes φ [N], θ = π/s.  The arrays
``scaled_theta`` contain θ̂_bj = θ_bj/√Θ_b with Θ_b = Σ_j θ_bj.  Targets and steps are relative: with the
right-hand side R_π of ``newton`` and H = R_π/(π s) a step has

    Δs_bj = Δα_b + Δβ_j - φ_j Δc_b,   σ_bj = Δs_bj / s_bj,   Δπ_bj / π_bj = H_bj - σ_bj.

So H and a ``SlackDirection`` define the step.  We store neither Δs nor Δπ nor the weights of the central
path.  H is [B, N], or [1, N] if all its rows are equal (``_row_of``).  H is float32: its rounding changes the
direction of the step, but not the equations that a point solves.

Output arrays come last; the caller allocates them.
"""

from typing import NamedTuple

import numpy as np

from spectheory.foundation.kernels.loops import compiled_loop

_compiled = compiled_loop(sums_in_any_order=True, fused_products=True)

LEAST_SHARE, MOST_SHARE, MOST_DOWN = 0.1, 10.0, 10.0
"""Centrality corrections (gondzio1996) pull a product into [``LEAST_SHARE``, ``MOST_SHARE``] times its aim,
but lower it by at most ``MOST_DOWN`` times its aim."""


class SlackDirection(NamedTuple):
    """The parts that determine Δs: φ [N], Δα [B], Δβ [N], and Δc_b of the bins [B]."""

    slopes: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    scores: np.ndarray


class Weights(NamedTuple):
    """The values that a step aims at for the products π_bj s_bj: bins_b widths_j + even."""

    bins: np.ndarray
    widths: np.ndarray
    even: float


@_compiled
def row_moments(
    pi: np.ndarray,
    s: np.ndarray,
    slopes: np.ndarray,
    scaled_theta: np.ndarray,
    of_rows: np.ndarray,
    of_columns: np.ndarray,
) -> None:
    """Compute θ̂ and sums over rows and columns.  Eliminating Δα subtracts Σ_b θ̂_bj θ̂_bk from the system.

    Args:
        scaled_theta: overwritten with θ̂, [B, N].
        of_rows: overwritten with Θ, the θ-weighted mean φ̄ of φ, Σ_j θ (φ - φ̄)², Σ_j π, Σ_j φ π, [B, 5].
        of_columns: Σ_b θ and Σ_b π are added to it, [2, N].
    """
    for b in range(len(pi)):
        here, margin, out = pi[b], s[b], scaled_theta[b]
        total, first, mass, tilted = 0.0, 0.0, 0.0, 0.0
        for j in range(len(slopes)):
            out[j] = here[j] / margin[j]
            total += out[j]
            first += out[j] * slopes[j]
            mass += here[j]
            tilted += here[j] * slopes[j]
        mean, second, scale = first / total, 0.0, 1.0 / np.sqrt(total)
        for j in range(len(slopes)):
            second += out[j] * (slopes[j] - mean) ** 2
            of_columns[0, j] += out[j]
            of_columns[1, j] += here[j]
            out[j] *= scale
        of_rows[b, 0], of_rows[b, 1], of_rows[b, 2] = total, mean, second
        of_rows[b, 3], of_rows[b, 4] = mass, tilted


@_compiled
def corrected_targets(
    pi: np.ndarray, s: np.ndarray, direction: SlackDirection, aim: Weights,
    targets: np.ndarray, of_rows: np.ndarray, of_columns: np.ndarray,
) -> None:  # fmt: skip
    """Compute the corrector's H = aim/(π s) - 1 - (Δπ/π) σ.  The predictor has H = -1, so Δπ/π = -1 - σ.

    Args:
        direction: the slack direction of the predictor.
        targets: overwritten with H, [B, N].
        of_rows: overwritten with Σ_j π H and Σ_j φ π H, [B, 2].
        of_columns: Σ_b π H is added to it, [N].
    """
    slopes, alpha, beta, scores = direction
    bins, widths, even = aim
    for b in range(len(pi)):
        here, margin, out = pi[b], s[b], targets[b]
        shift, score, share = alpha[b], scores[b], bins[b]
        for j in range(len(slopes)):
            inverse = 1.0 / (here[j] * margin[j])
            sigma = (shift + beta[j] - slopes[j] * score) * (inverse * here[j])
            out[j] = (share * widths[j] + even) * inverse - 1.0 + sigma * (1.0 + sigma)
        _add_up(here, slopes, out, of_rows[b], of_columns)


@_compiled
def recentred_targets(
    pi: np.ndarray, s: np.ndarray, direction: SlackDirection, present: np.ndarray, primal: float, dual: float,
    aim: Weights, targets: np.ndarray, of_rows: np.ndarray, of_columns: np.ndarray,
) -> None:  # fmt: skip
    """Compute the targets of a centrality correction: H + pull/(π s).

    ``_pull`` moves each product of the trial point towards its aim.

    Args:
        direction, present: the step and its H, [B, N] or [1, N].
        primal, dual: the step lengths that lead to the trial point.
        targets, of_rows, of_columns: as in ``corrected_targets``.
    """
    slopes, alpha, beta, scores = direction
    bins, widths, even = aim
    for b in range(len(pi)):
        here, margin, old, out = pi[b], s[b], _row_of(present, b), targets[b]
        shift, score, share = alpha[b], scores[b], bins[b]
        for j in range(len(slopes)):
            product = here[j] * margin[j]
            inverse = 1.0 / product
            sigma = (shift + beta[j] - slopes[j] * score) * (inverse * here[j])
            trial = product * (1.0 + primal * (old[j] - sigma)) * (1.0 + dual * sigma)
            out[j] = old[j] + _pull(trial, share * widths[j] + even) * inverse
        _add_up(here, slopes, out, of_rows[b], of_columns)


@_compiled
def recentred_nodes(
    products: np.ndarray, trials: np.ndarray, aims: np.ndarray, present: np.ndarray, targets: np.ndarray
) -> None:
    """Write ``recentred_targets`` for the products u y, or v z, of the nodes to ``targets``.  All are [n]."""
    for a in range(len(products)):
        targets[a] = present[a] + _pull(trials[a], aims[a]) / products[a]


@_compiled
def _pull(trial: float, aim: float) -> float:
    """Compute the desired change of a product of the trial point."""
    return max(min(max(trial, LEAST_SHARE * aim), MOST_SHARE * aim) - trial, -MOST_DOWN * aim)


@_compiled
def _row_of(targets: np.ndarray, b: int) -> np.ndarray:
    """Row b of targets [B, N], or the one row of targets [1, N]."""
    return targets[min(b, len(targets) - 1)]


@_compiled
def _add_up(
    pi: np.ndarray, slopes: np.ndarray, targets: np.ndarray, of_row: np.ndarray, of_columns: np.ndarray
) -> None:
    total, tilted = 0.0, 0.0
    for j in range(len(slopes)):
        goal = pi[j] * targets[j]
        total += goal
        tilted += goal * slopes[j]
        of_columns[j] += goal
    of_row[0], of_row[1] = total, tilted


@_compiled
def least_ratios(s: np.ndarray, direction: SlackDirection, targets: np.ndarray, least: np.ndarray) -> None:
    """Find the smallest Δπ/π and the smallest σ = Δs/s of every segment; NaN if one of its ratios is NaN.

    Args:
        targets: H, [B, N] or [1, N].
        least: [2, N], updated in place to the minimum with these ratios.
    """
    slopes, alpha, beta, scores = direction
    for b in range(len(s)):
        margin, goal = s[b], _row_of(targets, b)
        shift, score = alpha[b], scores[b]
        for j in range(len(slopes)):
            sigma = (shift + beta[j] - slopes[j] * score) / margin[j]
            ratio = goal[j] - sigma
            least[0, j] = ratio if ratio < least[0, j] or np.isnan(ratio) else least[0, j]
            least[1, j] = sigma if sigma < least[1, j] or np.isnan(sigma) else least[1, j]


@_compiled
def move_pairs(
    direction: SlackDirection, targets: np.ndarray, primal: float, dual: float, pi: np.ndarray, s: np.ndarray
) -> None:
    """Replace π and s, [B, N] each, by π + primal Δπ and s + dual Δs."""
    slopes, alpha, beta, scores = direction
    for b in range(len(pi)):
        here, margin, goal = pi[b], s[b], _row_of(targets, b)
        shift, score = alpha[b], scores[b]
        for j in range(len(slopes)):
            delta = shift + beta[j] - slopes[j] * score
            here[j] *= 1.0 + primal * (goal[j] - delta / margin[j])
            margin[j] += dual * delta


@_compiled
def spread_rows(
    scaled_theta: np.ndarray, slopes: np.ndarray, of_rows: np.ndarray,
    bins: np.ndarray, places: np.ndarray, spread: np.ndarray,
) -> None:  # fmt: skip
    """Compute E_bj = θ_bj (φ_j - φ̄_b) with θ_bj = √Θ_b θ̂_bj, from the results of ``row_moments``.

    Args:
        bins: the indices b of the bins.
        places: the row of ``spread`` for each of these bins.
        spread: these rows are overwritten with E_b, [.., N].
    """
    for b, place in zip(bins, places):  # noqa: B905 - numba has no strict=
        row, out, scale, mean = scaled_theta[b], spread[place], np.sqrt(of_rows[b, 0]), of_rows[b, 1]
        for j in range(len(slopes)):
            out[j] = row[j] * (scale * (slopes[j] - mean))


@_compiled
def column_products(
    scaled_theta: np.ndarray, one: np.ndarray, other: np.ndarray, products: np.ndarray
) -> None:
    """Add Σ_b θ̂_bj a_b to ``products``, [2, N], for a = ``one`` and for a = ``other``, [B] each."""
    for b in range(len(scaled_theta)):
        row, first, second = scaled_theta[b], one[b], other[b]
        for j in range(len(row)):
            products[0, j] += row[j] * first
            products[1, j] += row[j] * second


@_compiled
def row_products(scaled_theta: np.ndarray, one: np.ndarray, other: np.ndarray, products: np.ndarray) -> None:
    """Write Σ_j θ̂_bj a_j into ``products``, [2, B], for a = ``one`` and for a = ``other``, [N] each."""
    for b in range(len(scaled_theta)):
        row, first, second = scaled_theta[b], 0.0, 0.0
        for j in range(len(row)):
            first += row[j] * one[j]
            second += row[j] * other[j]
        products[0, b], products[1, b] = first, second

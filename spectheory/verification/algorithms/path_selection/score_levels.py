"""Levels: the relative frequency of each token on the selected path (theory.md Statement 5.20).

After a context with the score law μ the tokens x have levels R_x ≥ 0 with Σ_x q_x R_x = ∫ φ dμ.  Levels are
feasible if they are the means ∫ φ dμ_x of a split of μ.  This holds if and only if Σ_{x∈T} q_x R_x ≤ F(q(T))
for every set T of tokens, where F(z) is the φ-mass of the top z of μ.  Block verification then serves
Σ_x q_x min(g_x, R_x) at the next position, where g_x = t p_x/q_x is the demand.  The maximum is the min cut

    min_i [ F(z_i) + Σ_{j>i} q_j g_j ],

where tokens are in descending order of g, and z_i is the draft mass of the first i.  Many levels attain it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from spectheory.foundation.arrays import (
    Array,
    divide_or_zero,
    like_entries,
    namespace,
    positive_part,
    running_minimum,
    take_along,
    zeros_like,
)


class ScoreNode(NamedTuple):
    """One context with N next tokens, or groups of tokens, in descending order of g.

    Attributes:
        draft_masses: q, [..., N].
        demands: g = t p/q, [..., N].
        masses: μ, the masses of the cells, [..., M].
        win_rates: φ on the cells, ascending, [..., M].
        positions: z_0 = 0, .., z_N, the draft mass of the first i tokens, [..., N+1].
        pieces: for token i, the mass of each cell of μ that ranks between z_{i-1} and z_i, counted from the
            highest score down, [..., N, M].
        limits: F(z_i), where F(z) = Σ φ × mass over the top mass z of μ, [..., N+1].
    """

    draft_masses: Array
    demands: Array
    masses: Array
    win_rates: Array
    positions: Array
    pieces: Array
    limits: Array

    @staticmethod
    def of(draft_masses: Array, demands: Array, masses: Array, win_rates: Array) -> ScoreNode:
        """Compute the fields of a node.

        Each piece is computed from its own start, and the lowest cell with mass takes the remainder.  So its
        cells sum to q_x with a rounding error of the order of q_x, not of 1, also for rare tokens.
        """
        xp = namespace(draft_masses)
        positions = cumulative(draft_masses)
        # The mass above the lower edge of every cell.  If no mass is below an edge, all pieces are above it.
        above = xp.flip(xp.cumulative_sum(xp.flip(masses, axis=-1), axis=-1), axis=-1)[..., None, :]
        reached = positive_part(above - positions[..., :-1, None])
        all_of_it = draft_masses[..., None] + zeros_like(reached)
        reached = xp.where(above == above[..., :1], all_of_it, xp.minimum(reached, all_of_it))
        pieces = reached - xp.concat([reached[..., 1:], zeros_like(reached[..., :1])], axis=-1)
        limits = cumulative((pieces * win_rates[..., None, :]).sum(-1))
        return ScoreNode(draft_masses, demands, masses, win_rates, positions, pieces, limits)


Levels = Callable[[ScoreNode], Array]
"""A rule for levels: node -> R, [..., N], in nonincreasing order."""


def cumulative(values: Array) -> Array:
    """Compute the cumulative sums 0, v_1, v_1 + v_2, ..  [..., N] -> [..., N+1]"""
    xp = namespace(values)
    return xp.concat([zeros_like(values[..., :1]), xp.cumulative_sum(values, axis=-1)], axis=-1)


def _demanded(node: ScoreNode) -> tuple[Array, Array]:
    """Compute Σ_{j≤i} q_j g_j, [..., N+1], and the number of tokens with positive demand, [...]."""
    xp = namespace(node.demands)
    demanded = cumulative(node.draft_masses * node.demands)
    return demanded, xp.sum(xp.astype(node.demands > 0, xp.int64), axis=-1)


def lazy_levels(node: ScoreNode) -> Array:
    """Choose R as close to g as the min cut allows: min(g, c) before the cut, max(g, c') after it.

    Tokens without demand take the lowest scores, all at one level.  Let i* be the cut and n the number of
    tokens with positive demand.  Then

        c  = max_{k ≤ i*} (F(z_{i*}) - Σ_{k<j≤i*} q_j g_j) / z_k
        c' = min_{k ≥ i*} (F(z_n) - F(z_{i*}) - Σ_{i*<j≤k} q_j g_j) / (z_n - z_k)

    so that the totals before and after the cut are F(z_{i*}) and F(z_n) - F(z_{i*}).
    """
    xp = namespace(node.demands)
    demanded, count = _demanded(node)
    places = xp.arange(demanded.shape[-1], device=demanded.device)
    last = count[..., None]
    surplus = node.limits - demanded
    surplus = xp.where(places <= last, surplus, zeros_like(surplus) + xp.max(surplus, axis=-1)[..., None])
    cut = xp.argmin(surplus, axis=-1)[..., None]
    limit, demanded_in_front = take_along(node.limits, cut), take_along(demanded, cut)
    limit_behind, end = take_along(node.limits, last) - limit, take_along(node.positions, last)

    caps = divide_or_zero(limit - demanded_in_front + demanded, node.positions)
    cap = xp.max(xp.where(places <= cut, caps, zeros_like(caps)), axis=-1)[..., None]
    floors = divide_or_zero(limit_behind + demanded_in_front - demanded, end - node.positions)
    no_floor = zeros_like(floors) + node.win_rates[..., -1:]
    floor = xp.min(xp.where((places >= cut) & (node.positions < end), floors, no_floor), axis=-1)[..., None]
    zero = zeros_like(node.demands)
    levels = xp.where(
        places[:-1] < cut, xp.minimum(node.demands, cap + zero), xp.maximum(node.demands, floor + zero)
    )
    return xp.where(places[:-1] < last, levels, _lowest(node, last) + zero)


def _lowest(node: ScoreNode, last: Array) -> Array:
    mass = node.limits[..., -1:] - take_along(node.limits, last)
    return divide_or_zero(mass, node.positions[..., -1:] - take_along(node.positions, last))


def proportional_levels(node: ScoreNode) -> Array:
    """Choose R = slope * g, with the slopes of the greatest convex minorant of the limits F(z_i).

    F(z_i) is taken as a function of Σ_{j≤i} q_j g_j.  The ratios R_x/g_x are as equal as feasible.  R does
    not depend on t, and attains the min cut for every t: the limits bind while the slope is at most 1, and
    the demands bind after that.  The slope at token j is max_{i<j} min_{k≥j} of the chord from i to k.
    Tokens without demand are treated as in ``lazy_levels``.
    """
    xp = namespace(node.demands)
    demanded, count = _demanded(node)
    last = count[..., None]
    size = demanded.shape[-1]
    places = xp.arange(size, device=demanded.device)
    rise = node.limits[..., None, :] - node.limits[..., :, None]
    run = demanded[..., None, :] - demanded[..., :, None]
    chords = divide_or_zero(rise, run)
    steepest = xp.max(xp.max(chords, axis=-1), axis=-1)[..., None, None]
    chords = xp.where((run > 0) & (places <= last[..., None]), chords, steepest + zeros_like(chords))
    least = xp.flip(running_minimum(xp.flip(chords, axis=-1)), axis=-1)[..., 1:]
    # Chords to a token start before it.
    starts = places[:, None] < places[1:]
    slope = xp.max(xp.where(starts, least, zeros_like(least[..., :1, :1])), axis=-2)
    return xp.where(places[:-1] < last, slope * node.demands, _lowest(node, last) + zeros_like(slope))


@dataclass(frozen=True)
class MixedLevels:
    """A mixture of ``lazy_levels`` and ``proportional_levels``.  Both attain the min cut, so it does too."""

    proportional_share: Fraction

    def __call__(self, node: ScoreNode) -> Array:
        lazy = lazy_levels(node)
        share = like_entries(self.proportional_share, lazy)
        return lazy + share * (proportional_levels(node) - lazy)

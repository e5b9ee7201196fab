"""Couplings: split the law of a score among the next tokens so that they get given levels.

A coupling maps a ``ScoreNode`` and levels R [..., N] to a plan [..., N, M]: row x holds the masses μ_x of the
cells after token x.  Whatever the levels, Σ_x q_x μ_x = μ, which is all that losslessness needs.
"""

from __future__ import annotations

from collections.abc import Callable

from spectheory.algorithms.path_selection.score_levels import ScoreNode, at, cumulative
from spectheory.arrays import Array, divide_or_zero, is_exact, namespace, on_host, ones_like, zeros_like

Coupling = Callable[[ScoreNode, Array], Array]
"""(node, levels [..., N]) -> plan [..., N, M]."""


RESOLUTION = 1e-13
"""In floating point, what is this small against the rest of a block may be nothing but rounding.

Such a mass, variance or room does not decide how the block is split.  It loses nothing but as much."""


def independent(node: ScoreNode, levels: Array) -> Array:
    """Every token keeps μ, whatever the levels: the selected path is any path, as good as the first.

    Scored selection with it is ``block``.
    """
    return node.masses[..., None, :] + zeros_like(levels)[..., None]


def intervals(node: ScoreNode, levels: Array) -> Array:
    """The tokens take adjacent intervals of μ, those in front the largest scores, whatever the levels.

    Scored selection with it is ``greedy_multipath``, up to the cells.
    """
    pieces = node.tops[..., 1:, :] - node.tops[..., :-1, :]
    return divide_or_zero(pieces, node.draft_masses[..., None])


def tilted_cuts(node: ScoreNode, levels: Array) -> Array:
    """Levels R as exactly the means of the plan, the laws kept as wide as two simple moves allow.

    A wide law leaves the tokens below more to choose from.  The tokens stand in blocks of neighbours, at
    first in one.  A block has a law ν, whose mean R̄ is that of its levels, and a weight, at first 1.

    1. Tilt.  ν (1 + β_x (φ - R̄)) with β_x = κ (R_x - R̄)/Var_ν(φ) has the mean R̄ + κ (R_x - R̄), and the mean
       over the block is ν.  κ ≤ 1 is the largest for which no mass is negative
    2. Cut.  λ ≥ 1 is the largest factor for which the levels R̄ + λ (R_x - R̄) are feasible.  With these the
       tokens in front of some place must have the largest scores of the block: two blocks with a law each
    3. With (1-α) κ + α λ = 1 the tilt with share 1-α and the cut with share α have the means R_x.  Add the
       tilt, and go on from 1 with the blocks of the cut, their weight times α

    Every round either ends a block (κ = 1, α = 0) or cuts it, so that N rounds are enough.

    Levels that are not feasible have λ < 1 somewhere.  It counts as 1, and the means of the plan differ
    from the levels.
    """
    xp = namespace(levels)
    size = levels.shape[-1]
    number = xp.arange(size, device=levels.device)
    start = xp.zeros_like(number) + xp.zeros_like(levels, dtype=xp.int64)
    end = start + size
    smallest = 0 if is_exact(levels) else RESOLUTION
    weight, plan = ones_like(levels), zeros_like(node.tops[..., 1:, :])
    reached = cumulative(node.draft_masses * levels)[..., 1:]
    for _ in range(size):
        first, last = at(node.positions, start), at(node.positions, end)
        mean = divide_or_zero(at(node.limits, end) - at(node.limits, start), last - first)
        law = divide_or_zero(_rows_at(node.tops, end) - _rows_at(node.tops, start), (last - first)[..., None])
        same_block = start[..., :, None] == start[..., None, :]

        distance = node.win_rates[..., None, :] - mean[..., None]
        variance = (law * distance * distance).sum(-1)
        wide = (node.draft_masses > 0) & (variance > smallest * mean * mean)
        # Centred by the block's own mean, which is R̄ if the levels are feasible: any levels split the law.
        totals = node.draft_masses * levels
        total = xp.sum(xp.where(same_block, totals[..., None, :], zeros_like(totals)[..., None]), axis=-1)
        centred = levels - divide_or_zero(total, last - first)
        slant = centred[..., None] * distance
        slant = xp.where(wide[..., None] & (law > smallest), slant, zeros_like(slant))
        steepest = xp.max(-slant, axis=-1)
        scale = xp.maximum(_largest(steepest, same_block), variance)
        tilted = law * (1 + divide_or_zero(slant, scale[..., None]))
        tilt = xp.where(wide, divide_or_zero(variance, scale), zeros_like(scale))

        # 1/λ is the largest part that the levels take of the room between F and its chord over the block.
        chord = at(node.limits, start) + mean * (node.positions[..., 1:] - first)
        room = node.limits[..., 1:] - chord
        inside = (number + 1 < end) & (room > smallest * chord)
        excess = xp.where(inside, reached - chord, zeros_like(chord))
        part = divide_or_zero(excess, room)
        part = xp.minimum(xp.maximum(part, zeros_like(part)), ones_like(part))
        taken = _largest(part, same_block)
        share = divide_or_zero((1 - tilt) * taken, 1 - tilt * taken)

        plan = plan + (weight * (1 - share))[..., None] * tilted
        weight = weight * share
        # Without weight the rest adds nothing; an accelerator goes through it rather than wait for the host.
        if on_host(weight) and not bool(xp.any(weight > 0)):
            break
        levels = mean + divide_or_zero(centred, taken)
        reached = chord + divide_or_zero(excess, taken)
        parts = xp.where(same_block, part[..., None, :], zeros_like(part[..., None, :]) - 1)
        place = xp.argmax(parts, axis=-1) + 1
        in_front = number < place
        start, end = xp.where(in_front, start, place), xp.where(in_front, place, end)
    return plan


def _rows_at(rows: Array, places: Array) -> Array:
    """[..., N+1, M], [..., N] -> [..., N, M]"""
    xp = namespace(rows)
    wide = xp.broadcast_to(places[..., None], (*places.shape, rows.shape[-1]))
    return xp.take_along_axis(rows, wide, axis=-2)


def _largest(values: Array, same_block: Array) -> Array:
    """The largest value of every token's block, at least 0.  [..., N], [..., N, N] -> [..., N]"""
    values = values[..., None, :]
    return namespace(values).max(namespace(values).where(same_block, values, zeros_like(values)), axis=-1)

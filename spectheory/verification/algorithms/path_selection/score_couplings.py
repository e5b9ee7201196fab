"""Couplings: split the law of a score among the next tokens so that their levels have given values.

A coupling maps a ``ScoreNode`` and levels R [..., N] to a plan [..., N, M]: row x holds the masses μ_x of the
cells after token x.  For all levels Σ_x q_x μ_x = μ, and losslessness needs nothing else.
"""

from collections.abc import Callable

from spectheory.foundation.arrays import (
    Array,
    add_scaled,
    divide_or_zero,
    first_true,
    namespace,
    on_host,
    ones_like,
    positive_part,
    take_along,
    zeros_like,
)
from spectheory.foundation.exact_numbers import float_tolerance
from spectheory.verification.algorithms.path_selection.score_levels import ScoreNode, cumulative

Coupling = Callable[[ScoreNode, Array], Array]
"""(node, levels [..., N]) -> plan [..., N, M]."""


RESOLUTION = 1e-13
"""In floating point, a mass, variance or room this small relative to the rest of a block may be rounding.

It is ignored when the block is split, at a loss of the same size."""


def independent(node: ScoreNode, levels: Array) -> Array:
    """Give every token the law μ, whatever the levels.  The selected path is then a uniformly random path.

    Scored selection with this coupling is ``block``.
    """
    return node.masses[..., None, :] + zeros_like(levels)[..., None]


def intervals(node: ScoreNode, levels: Array) -> Array:
    """Give the tokens adjacent intervals of μ, the first token the largest scores, whatever the levels.

    Scored selection with this coupling is ``greedy_multipath``, up to the discretisation into cells.
    """
    return divide_or_zero(node.pieces, node.draft_masses[..., None])


def tilted_cuts(node: ScoreNode, levels: Array) -> Array:
    """Compute a plan whose means are exactly the levels R, with wide laws.

    A wide law leaves more choice at the following positions.  We divide the tokens into blocks of neighbours
    and start with one block of weight 1.  Each block has a law ν, whose mean R̄ is the mean of the block's
    levels.  A round does this in every block:

    1. Tilt.  Token x gets the law ν (1 + β_x (φ - R̄)), β_x = κ (R_x - R̄)/Var_ν(φ), with mean R̄ + κ (R_x -
       R̄).  The average of these laws over the block is ν.  We take the largest κ ≤ 1 that keeps all masses ≥
       0
    2. Cut.  We take the largest λ ≥ 1 for which the levels R̄ + λ (R_x - R̄) are feasible.  At this λ the
       tokens before some place take all of the largest scores.  We cut the block at this place
    3. Mix.  Choose α with (1-α) κ + α λ = 1.  Then the tilt with share 1-α and the cut with share α have the
       means R_x.  Add the tilt to the plan with 1-α times the block's weight.  The two new blocks get α times
       the weight and the levels of step 2.  Continue with them at step 1

    Every round finishes a block (κ = 1, α = 0) or cuts it, so N rounds suffice.

    If the levels are not feasible, λ < 1 in some block.  We then use λ = 1, and the means of the plan differ
    from the levels.
    """
    xp = namespace(levels)
    size = levels.shape[-1]
    places = xp.arange(size + 1, device=levels.device)
    number, behind = places[:-1], places[1:]
    start = xp.zeros_like(levels, dtype=xp.int64) + number * 0
    end = start + size
    smallest = float_tolerance(levels, RESOLUTION)
    zero, one, weight = zeros_like(levels[..., :1]), ones_like(levels[..., :1]), ones_like(levels)
    plan = zeros_like(node.pieces)
    reached = cumulative(node.draft_masses * levels)[..., 1:]
    whole, those_left = plan, None
    for _ in range(size):
        drafted = (node.draft_masses > 0)[..., None]
        same_block = start[..., :, None] == start[..., None, :]
        tokens = xp.stack([node.draft_masses, node.draft_masses * levels], axis=-1)
        tokens = xp.concat([tokens, node.pieces], axis=-1)
        # We sum over the tokens of the block, and do not subtract cumulative sums, so that the law of a rare
        # block also sums to 1.
        sums = xp.matmul(one[..., None] * same_block, tokens)
        width = sums[..., :1]
        mean_level, law = divide_or_zero(sums[..., 1:2], width), divide_or_zero(sums[..., 2:], width)
        mean = xp.sum(law * node.win_rates[..., None, :], axis=-1, keepdims=True)

        distance = node.win_rates[..., None, :] - mean
        variance = xp.sum(law * distance * distance, axis=-1, keepdims=True)
        wide = drafted & (variance > smallest * mean * mean)
        # Centred by the mean of the block's levels, so that infeasible levels, too, give laws with average ν.
        centred = levels[..., None] - mean_level
        slant = xp.where(wide & (law > smallest), centred * distance, zero[..., None])
        scale = xp.maximum(_largest(xp.max(-slant, axis=-1), same_block), variance)
        tilted = law * (1 + divide_or_zero(slant, scale))
        tilt = xp.where(wide, divide_or_zero(variance, scale), zero[..., None])[..., 0]

        # 1/λ is the largest share of the room between F and its chord over the block that the levels use.
        before = take_along(node.positions, start), take_along(node.limits, start)
        chord = before[1] + mean[..., 0] * (node.positions[..., 1:] - before[0])
        room = node.limits[..., 1:] - chord
        inside = (behind < end) & (room > smallest * chord)
        excess = xp.where(inside, reached - chord, zero)
        part = xp.minimum(positive_part(divide_or_zero(excess, room)), one)
        taken = _largest(part, same_block)
        share = divide_or_zero((1 - tilt) * taken[..., 0], 1 - tilt * taken[..., 0])

        plan = add_scaled(plan, (weight * (1 - share))[..., None], tilted)
        weight = weight * share
        levels = (mean + divide_or_zero(centred, taken))[..., 0]
        reached = chord + divide_or_zero(excess, taken[..., 0])
        place = first_true(same_block & (part[..., None, :] == taken)) + 1
        in_front = number < place
        start, end = xp.where(in_front, start, place), xp.where(in_front, place, end)
        # Blocks without weight add nothing.  On an accelerator we process them, because a check would wait.
        going_on = _going_on(weight)
        if going_on is None:
            continue
        if those_left is None:
            whole, those_left = plan, going_on
        else:
            whole[those_left] = plan
            those_left = those_left[going_on]
        if not len(going_on):
            return whole
        node = ScoreNode(*(array[going_on] for array in node))
        levels, reached, weight, start, end, plan, zero, one = (
            array[going_on] for array in (levels, reached, weight, start, end, plan, zero, one)
        )
    if those_left is None:
        return plan
    whole[those_left] = plan
    return whole


def _going_on(weight: Array) -> Array | None:
    """Find the contexts that have weight left.  ``None`` if they are more than half of all contexts.

    It is also ``None`` on a device, or if there are more leading axes.
    """
    if not on_host(weight) or weight.ndim != 2:
        return None
    xp = namespace(weight)
    numbers = xp.nonzero(xp.any(weight > 0, axis=-1))[0]
    return numbers if 2 * len(numbers) <= len(weight) else None


def _largest(values: Array, same_block: Array) -> Array:
    """Find the largest value, at least 0, in every token's block.  [..., N], [..., N, N] -> [..., N, 1]"""
    return namespace(values).max(same_block * values[..., None, :], axis=-1, keepdims=True)

"""``tilted_cuts`` as a compiled loop over the blocks; blocks without weight are skipped."""

from typing import Any

import numpy as np

from spectheory.foundation.kernels.loops import compiled_loop
from spectheory.verification.algorithms.path_selection.score_levels import ScoreNode, cumulative


def cut_and_tilt(node: ScoreNode, levels: np.ndarray, smallest: float) -> np.ndarray:
    """Compute the plan of ``tilted_cuts``, [n, N, M].  Sums are taken in another order and round differently.

    Args:
        node: n contexts in float64.
        levels: [n, N].
        smallest: relative size up to which a number counts as rounding, ``RESOLUTION``.
    """
    reached = cumulative(node.draft_masses * levels)[..., 1:]
    given = node.draft_masses, levels, reached, node.win_rates, node.positions, node.limits, node.pieces
    plan = np.zeros(node.pieces.shape)
    # The loop is compiled for writable contiguous arrays.
    owned = (
        np.require(np.broadcast_to(part, (len(plan), *part.shape[1:])), None, ["C", "W"]) for part in given
    )
    _plans(*owned, smallest, plan)
    return plan


_FLAT, _TABLE = "float64[:, ::1]", "float64[:, :, ::1]"


@compiled_loop(f"({6 * (_FLAT + ', ')}{_TABLE}, float64, {_TABLE})")
def _plans(
    masses: Any, all_levels: Any, all_reached: Any, all_rates: Any, all_positions: Any, all_limits: Any,
    all_pieces: Any, smallest: float, plans: Any,
) -> None:  # fmt: skip
    contexts, size, cells = plans.shape
    law, slant = np.empty(cells), 0.0
    tilt, part = np.empty(size), np.empty(size)
    chord, excess = np.empty(size), np.empty(size)
    ends, weights = np.empty(size, np.int64), np.empty(size)
    for n in range(contexts):
        drafted, levels, reached = masses[n], all_levels[n].copy(), all_reached[n].copy()
        rates, positions, limits, pieces = all_rates[n], all_positions[n], all_limits[n], all_pieces[n]
        plan = plans[n]
        ends[:], weights[:] = size, 1.0
        going_on = True
        for _ in range(size):
            if not going_on:
                break
            going_on = False
            start = 0
            while start < size:
                end = ends[start]
                if weights[start:end].max() <= 0:
                    start = end
                    continue
                width, total = 0.0, 0.0
                law[:] = 0.0
                for x in range(start, end):
                    width += drafted[x]
                    total += drafted[x] * levels[x]
                    for j in range(cells):
                        law[j] += pieces[x, j]
                mean_level = total / width if width != 0 else 0.0
                mean = 0.0
                for j in range(cells):
                    law[j] = law[j] / width if width != 0 else 0.0
                    mean += law[j] * rates[j]
                variance = 0.0
                for j in range(cells):
                    variance += law[j] * (rates[j] - mean) * (rates[j] - mean)
                is_wide = variance > smallest * mean * mean
                scale = variance
                if is_wide:
                    for x in range(start, end):
                        if drafted[x] > 0:
                            for j in range(cells):
                                if law[j] > smallest:
                                    slant = -(levels[x] - mean_level) * (rates[j] - mean)
                                    scale = max(scale, slant)
                taken = 0.0
                for x in range(start, end):
                    chord[x] = limits[start] + mean * (positions[x + 1] - positions[start])
                    room = limits[x + 1] - chord[x]
                    excess[x], part[x] = 0.0, 0.0
                    if x + 1 < end and room > smallest * chord[x]:
                        excess[x] = reached[x] - chord[x]
                        part[x] = min(max(excess[x] / room, 0.0), 1.0)
                    taken = max(taken, part[x])
                    tilt[x] = variance / scale if is_wide and drafted[x] > 0 and scale != 0 else 0.0
                place = end
                for x in range(start, end):
                    if part[x] == taken:
                        place = x + 1
                        break
                for x in range(start, end):
                    rest = 1 - tilt[x] * taken
                    share = (1 - tilt[x]) * taken / rest if rest != 0 else 0.0
                    served, centred = weights[x] * (1 - share), levels[x] - mean_level
                    may_tilt = is_wide and drafted[x] > 0 and scale != 0
                    for j in range(cells):
                        slant = centred * (rates[j] - mean) / scale if may_tilt and law[j] > smallest else 0.0
                        plan[x, j] += served * (law[j] * (1 + slant))
                    weights[x] *= share
                    going_on = going_on or weights[x] > 0
                    levels[x] = mean + (centred / taken if taken != 0 else 0.0)
                    reached[x] = chord[x] + (excess[x] / taken if taken != 0 else 0.0)
                    if x < place:
                        ends[x] = place
                start = end

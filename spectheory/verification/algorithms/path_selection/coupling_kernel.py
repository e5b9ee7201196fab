"""``tilted_cuts`` as a Triton kernel: one launch with a program per context, which handles block by block."""

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from spectheory.foundation.kernels.triton_rows import give_what_is_known
from spectheory.verification.algorithms.path_selection.score_levels import ScoreNode, cumulative

MOST_ENTRIES = 1 << 13
"""The largest N M, both rounded up to powers of two: a program holds a context's plan in registers."""


def cut_and_tilt(node: ScoreNode, levels: Tensor, smallest: float) -> Tensor:
    """Compute the plan of ``tilted_cuts``, [n, N, M].  Sums are taken in another order and round differently.

    Args:
        node: n contexts in float64 on a CUDA device.
        levels: [n, N].
        smallest: relative size up to which a number counts as rounding, ``RESOLUTION``.
    """
    reached = cumulative(node.draft_masses * levels)[..., 1:]
    contexts, size, cells = node.pieces.shape
    per_token, per_place, per_cell = (contexts, size), (contexts, size + 1), (contexts, cells)
    given = (
        node.draft_masses.expand(per_token), levels.expand(per_token), reached.expand(per_token),
        node.win_rates.expand(per_cell), node.positions.expand(per_place), node.limits.expand(per_place),
        node.pieces,
    )  # fmt: skip
    plan = torch.empty_like(node.pieces, memory_format=torch.contiguous_format)
    if contexts:
        owned = [part.contiguous() for part in given]
        _plan_kernel[(contexts,)](*owned, plan, size, cells, smallest, *_rooms(size, cells))
    return plan


def fits(node: ScoreNode) -> bool:
    """True if there are at most ``MOST_ENTRIES`` entries and the kernel works on the device."""
    tokens, cells = _rooms(*node.pieces.shape[-2:])
    return tokens * cells <= MOST_ENTRIES and _works_on(node.pieces.device)


def _rooms(size: int, cells: int) -> tuple[int, int]:
    return triton.next_power_of_2(size), triton.next_power_of_2(cells)


@cache
def _works_on(device: torch.device) -> bool:
    def known_case() -> list[Any]:
        """Two equal cells with win rates 0 and 2, and levels 3/2 and 1/2: the plan is a tilt by half."""
        given = ([0.5, 0.5], [1.5, 0.5], [0.5, 0.5], [0.0, 2.0])
        one, levels, masses, rates = (
            torch.tensor([row], dtype=torch.float64, device=device) for row in given
        )
        return cut_and_tilt(ScoreNode.of(one, levels, masses, rates), levels, 0.0).tolist()

    return give_what_is_known(device, torch.float64, known_case, [[[0.25, 0.75], [0.75, 0.25]]])


@triton.jit
def _quotient(numerator, denominator):
    """Compute numerator / denominator, and 0 where the denominator is 0."""
    return tl.where(denominator != 0, numerator / tl.where(denominator != 0, denominator, 1.0), 0.0)


@triton.jit
def _plan_kernel(
    all_masses, all_levels, all_reached, all_rates, all_positions, all_limits, all_pieces, plans,
    size, cells, smallest: tl.constexpr, token_room: tl.constexpr, cell_room: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0).to(tl.int64)
    x, j = tl.arange(0, token_room), tl.arange(0, cell_room)
    is_token, is_cell = x < size, j < cells
    drafted = tl.load(all_masses + n * size + x, mask=is_token, other=0.0)
    levels = tl.load(all_levels + n * size + x, mask=is_token, other=0.0)
    reached = tl.load(all_reached + n * size + x, mask=is_token, other=0.0)
    rates = tl.load(all_rates + n * cells + j, mask=is_cell, other=0.0)
    place = n * (size + 1) + x
    position_in_front = tl.load(all_positions + place, mask=is_token, other=0.0)
    position = tl.load(all_positions + place + 1, mask=is_token, other=0.0)
    limit_in_front = tl.load(all_limits + place, mask=is_token, other=0.0)
    limit = tl.load(all_limits + place + 1, mask=is_token, other=0.0)
    entry = (n * size + x)[:, None] * cells + j[None, :]
    is_entry = is_token[:, None] & is_cell[None, :]
    pieces = tl.load(all_pieces + entry, mask=is_entry, other=0.0)
    plan = tl.zeros((token_room, cell_room), tl.float64)
    weights = tl.where(is_token, 1.0, 0.0).to(tl.float64)
    ends, start = size + 0 * x, size * 0
    # Every step cuts a block in two or finishes it, so there are fewer than 2 N steps.
    for _ in range(2 * size):
        if start < size:
            end = tl.sum(tl.where(x == start, ends, 0), axis=0)
            here = (x >= start) & (x < end)
            if tl.max(tl.where(here, weights, 0.0), axis=0) <= 0:
                start = end
            else:
                width = tl.sum(tl.where(here, drafted, 0.0), axis=0)
                total = tl.sum(tl.where(here, drafted * levels, 0.0), axis=0)
                law = tl.sum(tl.where(here[:, None], pieces, 0.0), axis=0)
                mean_level, law = _quotient(total, width), _quotient(law, width)
                mean = tl.sum(law * rates, axis=0)
                distance = rates - mean
                variance = tl.sum(law * distance * distance, axis=0)
                centred = levels - mean_level
                may_tilt = here & (drafted > 0) & (variance + 0 * drafted > smallest * mean * mean)
                slant = tl.where(
                    may_tilt[:, None] & (law > smallest)[None, :], centred[:, None] * distance[None, :], 0.0
                )
                scale = tl.maximum(variance, tl.max(tl.max(-slant, axis=1), axis=0))
                tilt = tl.where(may_tilt, _quotient(variance, scale), 0.0)

                first_limit = tl.sum(tl.where(x == start, limit_in_front, 0.0), axis=0)
                first_position = tl.sum(tl.where(x == start, position_in_front, 0.0), axis=0)
                chord = first_limit + mean * (position - first_position)
                room = limit - chord
                inside = here & (x + 1 < end) & (room > smallest * chord)
                excess = tl.where(inside, reached - chord, 0.0)
                part = tl.where(inside, excess / tl.where(inside, room, 1.0), 0.0)
                part = tl.minimum(tl.maximum(part, 0.0), 1.0)
                taken = tl.max(part, axis=0)
                behind = tl.min(tl.where(here & (part == taken), x + 1, end), axis=0)

                share = _quotient((1 - tilt) * taken, 1 - tilt * taken)
                served = tl.where(here, weights * (1 - share), 0.0)
                plan += served[:, None] * (law[None, :] * (1 + _quotient(slant, scale)))
                weights = tl.where(here, weights * share, weights)
                levels = tl.where(here, mean + _quotient(centred, taken), levels)
                reached = tl.where(here, chord + _quotient(excess, taken), reached)
                ends = tl.where(here & (x < behind), behind, ends)
                start = tl.where(taken > 0, start, end)
    tl.store(plans + entry, plan, mask=is_entry)

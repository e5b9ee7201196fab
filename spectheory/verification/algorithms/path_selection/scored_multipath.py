"""Scored multi-path selection: keep all drafted paths as candidates until the models disagree."""

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from array_api_compat import is_torch_array

from spectheory.foundation.arrays import (
    Array,
    batch_indices,
    divide_or_zero,
    like_rows,
    namespace,
    on_host,
    ones_like,
    quotients,
    take_along,
    zeros_like,
)
from spectheory.foundation.exact_numbers import is_exact
from spectheory.foundation.kernels import choice
from spectheory.foundation.validation import check_count
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.verification.algorithms.path_selection.score_couplings import (
    RESOLUTION,
    Coupling,
    tilted_cuts,
)
from spectheory.verification.algorithms.path_selection.score_levels import Levels, MixedLevels, ScoreNode
from spectheory.verification.algorithms.path_selection.scored import (
    ScoredSelection,
    ScoreSplit,
    ScoreState,
    has_loops,
    in_double,
    in_kind_of,
)

DEFAULT_LEVELS = MixedLevels(Fraction(3, 10))
MOST_KNOTS = 1 << 15
"""The number of knots whose indices fit into 16 bits, as ``knot_kernels`` stores them."""
SMALLEST_KNOT = 2.0**-10
"""The smallest knot above 0, in units of the largest; the others are spaced geometrically."""


class ScoredMultipath(ScoredSelection):
    """Scored multi-path selection: a lossless verifier of this package (theory.md Statement 5.20).

    Every drafted path has its own score, see ``ScoredSelection``.  The law of the score after every next
    token is chosen in two steps, from the rows at the context and the ``ScoreState`` of the path:

    1. ``levels``: the selected path continues with token x R_x times as often as a draft.  The default
       maximises the mass served at the next position, which is a min cut
    2. ``coupling``: laws with these means, as wide as possible.  The default is rational for rational rows

    While the models agree, all paths keep all scores, so that every path can still be selected.  Rules that
    select token by token drop the paths that differ.  With K = 1 it is ``block``.  At L = 1 it accepts with
    the optimum α_K, or up to 0.017 less if tokens are grouped.  For longer drafts its distance to the optimum
    is measured, not proved (docs/scored_selection.md).

    Args:
        levels, coupling: the rules of the two steps.  Every choice is lossless.
        num_cells: M.  The scores lie in M equal cells.  The level sets of the root row divide them further.
        num_knots: in floating point, rows of more tokens than this are grouped.  We choose this number of
            values of t p/q, the knots, and interpolate a token's law between the laws at the two knots
            around it.  Such rows need no sort.

    Raises:
        InvalidInputError: ``num_cells`` is below 1, or ``num_knots`` below 3 or above 32 768.

    Example:
        >>> from spectheory import certify, instances
        >>> certificate = certify("scored_multipath", instances.two_token(2), 2)
        >>> print(certificate.verdict, certificate.block_efficiency, certificate.optimum)
        lossless 18089/6912 212/81
    """

    name: ClassVar[str] = "scored_multipath"
    source: ClassVar[str] = "this package (theory.md Statement 5.20)"

    def __init__(
        self,
        levels: Levels = DEFAULT_LEVELS,
        coupling: Coupling = tilted_cuts,
        num_cells: int = 32,
        num_knots: int = 24,
    ) -> None:
        self.levels, self.coupling = levels, coupling
        self.num_cells = check_count("num_cells", num_cells)
        self.num_knots = check_count("num_knots", num_knots, at_least=3, at_most=MOST_KNOTS)

    def cell_edges(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        """Edges of M equal cells.  If tokens are not grouped, the edges of the level sets of p/q are added.

        Then the levels at the root follow cell edges, so that one position is served exactly.
        Tokens that are never drafted come last and add empty cells at 1, which change no law.
        """
        xp = namespace(draft_row)
        cells = np.array([Fraction(number, self.num_cells) for number in range(self.num_cells + 1)])
        one = ones_like(draft_row[..., :1])
        edges = like_rows(cells, one) + zeros_like(one)
        if self._groups(draft_row):
            return edges
        sums = xp.cumulative_sum(SortedByRatio.of(target_row, draft_row).denominator, axis=-1)
        sums = xp.minimum(sums, one + zeros_like(sums))[..., :-1]
        return xp.sort(xp.concat([edges, sums], axis=-1), axis=-1)

    def split(self, state: ScoreState, target_row: Array, draft_row: Array) -> ScoreSplit:
        xp = namespace(draft_row)
        if self._groups(draft_row) and _read_once(target_row, draft_row):
            return self._split_rows_read_once(state, target_row, draft_row)
        served = in_kind_of(draft_row, state.served)[..., None] * target_row
        if self._groups(draft_row):
            knots = self._knots(state.win_rates)
            lower, upper_share = between(in_kind_of(draft_row, knots), quotients(served, draft_row))
            masses = hat_masses(draft_row, lower, upper_share, len(knots))
            plan = self._plan(state, xp.flip(masses, axis=-1), xp.flip(knots, axis=0) + zeros_like(masses))
            return ScoreSplit(xp.flip(plan, axis=-2), lower, upper_share)
        demands = in_double(divide_or_zero(served, draft_row))
        order = xp.argsort(-demands, axis=-1, stable=True)
        masses, demands = (take_along(row, order) for row in (in_double(draft_row), demands))
        return ScoreSplit(self._plan(state, masses, demands), xp.argsort(order, axis=-1, stable=True))

    def _split_rows_read_once(self, state: ScoreState, target_row: Array, draft_row: Array) -> ScoreSplit:
        """Compute ``split`` of grouped rows by a compiled loop on the host or a Triton kernel on a device."""
        from spectheory.foundation.kernels.knot_kernels import between_knots

        xp, knots = namespace(draft_row), self._knots(state.win_rates)
        given = (in_kind_of(draft_row, array) for array in (state.served, knots))
        lower, upper_share, masses = between_knots(target_row, draft_row, *given)
        demands = xp.broadcast_to(xp.flip(knots, axis=0), masses.shape)
        plan = self._plan(state, xp.flip(masses, axis=-1), demands)
        return ScoreSplit(xp.flip(plan, axis=-2), lower, upper_share)

    def _plan(self, state: ScoreState, draft_masses: Array, demands: Array) -> Array:
        given = draft_masses, demands, state.masses, state.win_rates
        if not self._rules_are_ours or not choice.plain_on_host(*given):
            node = ScoreNode.of(*given)
            levels = self.levels(node)
            if (
                self.coupling is tilted_cuts
                and levels.ndim == 2
                and choice.on_device_with_kernels(levels, *node)
            ):
                from spectheory.verification.algorithms.path_selection import coupling_kernel

                if coupling_kernel.fits(node):
                    return coupling_kernel.cut_and_tilt(node, levels, RESOLUTION)
            return self.coupling(node, levels)
        # Few numbers per context: numpy takes half the time of torch.
        with choice.quiet_floats():
            node = ScoreNode.of(*(array.numpy() for array in given))
            levels = self.levels(node)
            if self.coupling is not tilted_cuts or levels.ndim != 2:
                return namespace(draft_masses).asarray(self.coupling(node, levels))
            from spectheory.verification.algorithms.path_selection.coupling_loops import cut_and_tilt

            return namespace(draft_masses).asarray(cut_and_tilt(node, levels, RESOLUTION))

    @property
    def _rules_are_ours(self) -> bool:
        """True if both rules belong to this package, and so accept arrays of every library."""
        return all(
            getattr(rule, "__module__", type(rule).__module__).startswith(__package__)
            for rule in (self.levels, self.coupling)
        )

    def _groups(self, row: Array) -> bool:
        return not is_exact(row) and row.shape[-1] > self.num_knots

    def _knots(self, win_rates: Array) -> Array:
        """Return the G knots: demands from 0 up to φ on the highest cell, which no level exceeds."""
        grid = np.concatenate([[0.0], np.geomspace(SMALLEST_KNOT, 1.0, self.num_knots - 1)])
        return like_rows(grid, win_rates) * namespace(win_rates).max(win_rates)


def _read_once(*rows: Array) -> bool:
    on_device = is_torch_array(rows[0]) and rows[0].ndim == 2 and choice.on_device_with_kernels(*rows)
    return has_loops(*rows) or on_device


def between(knots: Array, demands: Array) -> tuple[Array, Array]:
    """Find the index of the knot below each demand, and the demand's position in [0, 1] to the next knot.

    A demand above the last knot is treated as equal to the last knot.  A token with p = q = 0 has demand
    0/0, a NaN, and is treated in the same way.  [G], [..., V] -> [..., V], [..., V]
    """
    xp = namespace(demands)
    demands = xp.fmin(demands, knots[-1])
    lower = xp.searchsorted(knots[1:-1], demands, side="right")
    return lower, (demands - knots[lower]) / (knots[1:] - knots[:-1])[lower]


def hat_masses(draft_row: Array, lower: Array, upper_share: Array, num_knots: int) -> Array:
    """Sum the draft mass at every knot; a token splits its mass between two knots.  [..., V] -> [..., G]"""
    xp = namespace(draft_row)
    above = in_double(draft_row) * upper_share
    below, above = (sums_by_number(part, lower, num_knots - 1) for part in (draft_row - above, above))
    nothing = zeros_like(below[..., :1])
    return xp.concat([below, nothing], axis=-1) + xp.concat([nothing, above], axis=-1)


def sums_by_number(values: Array, numbers: Array, count: int) -> Array:
    """Sum the float values by their index in 0..count-1.  [..., N], [..., N] -> [..., count]

    The order of the sum is fixed on every device: on CUDA ``scatter_add_`` has a random order, and
    ``index_put_`` does not.
    """
    shape = (*values.shape[:-1], count)
    if is_torch_array(values) and on_host(values):
        return values.new_zeros(shape).scatter_add_(-1, numbers, values)
    if is_torch_array(values):
        rows = batch_indices(numbers)[:-1]
        return values.new_zeros(shape).index_put_((*rows, numbers), values, accumulate=True)
    first = np.arange(0, math.prod(shape), count).reshape((*shape[:-1], 1))
    return np.bincount((first + numbers).ravel(), values.ravel(), math.prod(shape)).reshape(shape)

"""A primal-dual interior-point method for the multi-path program with f replaced by chords."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import SolverError
from spectheory.optima.bounds.context_tree import accepted_masses
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.newton import NewtonSystem, Point, Step, Targets, Workspace
from spectheory.optima.interval.row_passes import (
    Weights,
    corrected_targets,
    least_ratios,
    move_pairs,
    recentred_nodes,
    recentred_targets,
)

STEP_BACK = 0.7
"""A step goes this fraction of the way to the boundary.  With 0.9 random pairs took more steps."""

LEAST_AIM, MOST_AIM, BOLDNESS = 1e-6, 0.2, 8
"""A step aims at (reduced / present)^BOLDNESS times the present mean product, clipped to [``LEAST_AIM``,
``MOST_AIM``] times it.  ``reduced`` is the gap after the predictor, ``present`` the gap before it.  With the
usual exponent 3 (mehrotra1992) and no upper limit random pairs took more steps, some twice as many."""

LARGE = 20_000
"""``Pace.of`` uses other parameters for this many bins or more."""

ROWS_AT_ONCE = 4096
"""Number of bins of a new program that are initialised at a time, to save memory."""


class Pace(NamedTuple):
    """Parameters of the method, chosen for short runs on random pairs, for small and for large trees.

    Attributes:
        corrections: the largest number of centrality corrections per step (gondzio1996).
        evenness: E, the weight on the central path that is spread evenly over all products.
        retreat: after new breakpoints we restart from an earlier iterate.  It is the last one whose gap was
            at least ``retreat`` times the gap before the latest step.  The latest iterate is often far from
            the central path of the finer program.  From it many short steps would follow, and more of them
            for a larger tree.
        apart: the gaps of two stored iterates differ by at least this factor, so that few are stored.
    """

    corrections: int
    evenness: float
    retreat: float
    apart: float

    @staticmethod
    def of(bins: int) -> Pace:
        """Choose the parameters for this number of bins.

        For large trees we store fewer iterates, and after new breakpoints restart from an earlier one.
        """
        return Pace(4, 30.0, 1.5, 1.3) if bins < LARGE else Pace(6, 10.0, 10.0, 8.0)


class ChordProgram:
    """The multi-path program with f replaced by its chords between breakpoints e_0 < .. < e_N.

    Let w_j = e_j - e_{j-1} be the width of segment j and φ_j the slope of its chord.  A law r of the bins b
    (``LiveTree``) is feasible under the chords iff r_b = Σ_j φ_j π_bj for a transport π of bins to segments.
    κ(a) is the worth of one unit of x(a), ``LiveTree.weights``.  The program and its dual:

        max Σ_a κ(a) x(a)                                     min Σ_b q_b α_b + Σ_j w_j β_j + const
        u(a) = r(a) - x(a) ≥ 0                   score y(a)   y(a) + z(a) = κ(a) + Σ_x p(x|a) z(a, x)
        v(a) = p x(parent) - x(a) ≥ 0            slack z(a)   c_b = Σ y on the path to b
        Σ_j π_bj = q_b, Σ_b π_bj = w_j, π ≥ 0                 s_bj = α_b + β_j - φ_j c_b ≥ 0

    Chords lie below f, so r is feasible for the program with f too.  The slacks z are feasible for its dual
    for every f.  So every iterate gives a lower and an upper bound.

    The method is a predictor and corrector (mehrotra1992) with centrality corrections (gondzio1996), from a
    strictly feasible start.  Its central path has weights: the product π_bj s_bj tends to
    μ (q_b w_j + E/(B N)), and u y and v z at node a tend to μ (x°(a) + E/n), where x° are the masses of block
    verification and E is ``Pace.evenness``.  The first terms match the scale of likely and unlikely leaves.
    Without the second terms leaves with tiny q_b would allow only tiny steps.

    To save memory, a step overwrites π and s of ``point``, and iterates for a restart are stored in float32:
    an array can have hundreds of megabytes.  A step that raises SolverError changes nothing.  After Ctrl-C
    the program cannot be used any more.

    Args:
        live: the tree, with at least one node below the root.
        num_drafts: K.
        edges: the breakpoints, [N+1], from 0 to 1.
        start: a strictly feasible point.  The program takes over its arrays.  If None, we compute one.
    """

    def __init__(
        self, live: LiveTree, num_drafts: int, edges: np.ndarray, start: Point | None = None
    ) -> None:
        self.live = live
        self.pace = Pace.of(len(live.bin_mass))
        self.num_drafts = num_drafts
        self.edges = edges
        self.widths = np.diff(edges)
        self.slopes = np.diff(hit_probability(edges, num_drafts)) / self.widths
        block = live.gather(accepted_masses(live.tree.draft_probs, live.tree.target_rows))
        self._node_weights = block + self.pace.evenness / live.size
        self._total_weight = 1.0 + self.pace.evenness + 2.0 * float(self._node_weights.sum())
        self.point = self._start(block) if start is None else start
        self._earlier: list[tuple[float, Point]] = []

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace.of(self.live, len(self.widths))

    @cached_property
    def _targets(self) -> tuple[np.ndarray, np.ndarray]:
        return np.empty(self.point.pi.shape, np.float32), np.empty(self.point.pi.shape, np.float32)

    @property
    def gap(self) -> float:
        """The duality gap of the iterate under the chords, Σ π s + Σ u y + Σ v z."""
        point = self.point
        return float(np.vdot(point.pi, point.s) + point.u @ point.y + point.v @ point.z)

    @property
    def bin_law(self) -> np.ndarray:
        """r_b of the iterate, [B], after a repair of its transport π.

        We scale the rows, then the columns of π down to their marginals, and spread the missing mass
        independently.  So r is feasible and sums to 1 up to rounding, even after inexact steps.
        """
        pi, q, w = self.point.pi, self.live.bin_mass, self.widths
        row_scale = np.minimum(1.0, q / pi.sum(axis=1))
        column_scale = np.minimum(1.0, w / (row_scale @ pi))
        missing_rows = np.maximum(q - row_scale * (pi @ column_scale), 0.0)
        missing_columns = np.maximum(w - column_scale * (row_scale @ pi), 0.0)
        law = row_scale * (pi @ (column_scale * self.slopes))
        total = missing_columns.sum()
        if total > 0:
            law += missing_rows * (missing_columns @ self.slopes / total)
        return law

    def refined(self, edges: np.ndarray) -> ChordProgram:
        """Add breakpoints, and start the new program from ``restart`` of this program.

        We split π in proportion to the widths.  This keeps r, and so stays feasible.  For a new segment with
        slope φ' inside segment j the new margin is s_bj + Δβ - (φ' - φ_j) c_b.  Δβ is the smallest number for
        which it is at least s_bj / 2 for every b.  The gap grows by about the error of the chords.
        """
        widths = np.diff(edges)
        slopes = np.diff(hit_probability(edges, self.num_drafts)) / widths
        inside = np.searchsorted(self.edges, edges[:-1], side="right") - 1
        start = self.restart
        # free this memory for the new program
        self.__dict__.pop("_workspace", None)
        self.__dict__.pop("_targets", None)
        del self._earlier[1:]
        scores, more = _bin_scores(self.live, start.y), slopes - self.slopes[inside]
        s = np.take(start.s, inside, axis=1).astype(float)  # indexing would order it by columns
        rows = [slice(first, first + ROWS_AT_ONCE) for first in range(0, len(s), ROWS_AT_ONCE)]
        falls = (np.multiply.outer(scores[part], more) - 0.5 * s[part] for part in rows)
        largest = np.max([fall.max(axis=0) for fall in falls], axis=0)
        for part in rows:
            s[part] -= np.multiply.outer(scores[part], more) - largest
        pi = np.take(start.pi, inside, axis=1).astype(float)
        pi *= widths / self.widths[inside]
        return ChordProgram(self.live, self.num_drafts, edges, start._replace(pi=pi, s=s))

    def step(self) -> float:
        """Move to the next iterate, and return the smaller of the primal and dual step lengths, in (0, 1]."""
        gap, point = self.gap, self.point
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the check below raises instead
            step, steepest = self._direction(gap)
            lengths = np.minimum(1.0, STEP_BACK * _lengths(steepest, most=2.0))
        if not lengths.min() > 0:
            raise SolverError("the interior-point step is not finite: machine precision is exhausted")
        primal, dual = lengths.tolist()
        u, y = point.u + primal * step.u, point.y + dual * step.y
        v, z = point.v + primal * step.v, point.z + dual * step.z
        self._earlier = self._remembered(gap)
        move_pairs(step.direction, step.targets.pairs, primal, dual, point.pi, point.s)
        self.point = Point(point.pi, point.s, u, y, v, z)
        return min(primal, dual)

    @property
    def restart(self) -> Point:
        """The iterate from which a program with more breakpoints starts (``Pace.retreat``)."""
        return self._earlier[0][1] if self._earlier else self.point

    def _remembered(self, gap: float) -> list[tuple[float, Point]]:
        """List the (gap, iterate) pairs that ``restart`` may need after a step from ``point``."""
        earlier = self._earlier
        if not earlier or self.pace.apart * gap <= earlier[-1][0]:
            pi, s = (pairs.astype(np.float32) for pairs in self.point[:2])
            earlier = [*earlier, (gap, self.point._replace(pi=pi, s=s))]
        forgotten = 0
        while forgotten + 1 < len(earlier) and earlier[forgotten + 1][0] >= self.pace.retreat * gap:
            forgotten += 1
        return earlier[forgotten:]

    def _direction(self, gap: float) -> tuple[Step, np.ndarray]:
        """Compute the step, and its steepest relative falls (``_steepest``)."""
        point, (room, spare) = self.point, self._targets
        system = NewtonSystem(self.live, self.slopes, self.widths, point, self._workspace)
        step = system.solve(system.predictor)
        primal, dual = _lengths(_steepest(point, step))
        # rounding can make the gap negative after a step that nearly closes it
        reduced = max(_predicted_gap(gap, point, step, primal, dual), 0.0)
        aim = min(max((reduced / gap) ** BOLDNESS, LEAST_AIM), MOST_AIM) * gap / self._total_weight
        step = system.solve(self._corrected(step, aim, room))
        steepest = _steepest(point, step)
        for _ in range(self.pace.corrections):
            lengths = _lengths(steepest)
            trial = np.minimum(1.0, lengths + 0.3).tolist()
            other = system.solve(self._recentred(step, trial, aim, spare))
            falls = _steepest(point, other)
            # written so that a NaN also ends the corrections
            if not _lengths(falls).sum() >= lengths.sum() + 0.02:
                break
            step, steepest, spare = other, falls, step.targets.pairs
        return step, steepest

    def _corrected(self, predictor: Step, aim: float, pairs: np.ndarray) -> Targets:
        """Compute targets with second-order terms, aim - π s - Δπ Δs for pairs (mehrotra1992).

        The nodes have the same terms.  The products then reach the aim up to third-order terms.  ``pairs`` is
        overwritten.
        """
        point, rows, columns = self.point, np.empty((len(pairs), 2)), np.zeros(len(self.slopes))
        corrected_targets(point.pi, point.s, predictor.direction, self._pair_aim(aim), pairs, rows, columns)
        u = (aim * self._node_weights - predictor.u * predictor.y) / (point.u * point.y) - 1.0
        v = (aim * self._node_weights - predictor.v * predictor.z) / (point.v * point.z) - 1.0
        return Targets(pairs, rows, columns, u, v)

    def _recentred(self, step: Step, lengths: list[float], aim: float, pairs: np.ndarray) -> Targets:
        """Compute targets that pull the products of a trial point towards their aim (gondzio1996).

        A product below ``LEAST_SHARE`` or above ``MOST_SHARE`` times its aim is pulled to this limit.  It is
        lowered by at most ``MOST_DOWN`` times its aim.  ``pairs`` is overwritten.
        """
        point, targets, (primal, dual), goal = self.point, step.targets, lengths, self._pair_aim(aim)
        rows, columns = np.empty((len(pairs), 2)), np.zeros(len(self.slopes))
        recentred_targets(
            point.pi, point.s, step.direction, targets.pairs, primal, dual, goal, pairs, rows, columns
        )

        def recentred(
            present: np.ndarray, u: np.ndarray, y: np.ndarray, by_u: np.ndarray, by_y: np.ndarray
        ) -> np.ndarray:
            trial, found = (u + primal * by_u) * (y + dual * by_y), np.empty_like(u)
            recentred_nodes(u * y, trial, aim * self._node_weights, present, found)
            return found

        u = recentred(targets.u, point.u, point.y, step.u, step.y)
        v = recentred(targets.v, point.v, point.z, step.v, step.z)
        return Targets(pairs, rows, columns, u, v)

    def _pair_aim(self, aim: float) -> Weights:
        bins, segments = self.point.pi.shape
        return Weights(aim * self.live.bin_mass, self.widths, aim * self.pace.evenness / (bins * segments))

    def _start(self, block: np.ndarray) -> Point:
        """Compute a strictly feasible point.

        The transport is independent, so r = q.  The masses are below the masses of block verification, and
        scores and slacks satisfy u y = v z.
        """
        live = self.live
        depths = np.repeat(np.arange(len(live.depth_ends)), np.diff(live.depth_ends, prepend=0))[1:]
        share = depths / (len(live.depth_ends) - 1)
        masses = (1.0 - 0.5 * share) * block - self.pace.evenness * share / live.size
        mass = np.bincount(live.bin_node, weights=live.bin_mass, minlength=live.size + 1)
        for depth in range(len(live.depth_ends) - 1, 0, -1):
            nodes = live.nodes_at(depth)
            np.add.at(mass, live.parent[nodes], mass[nodes.start + 1 : nodes.stop + 1])
        u = mass[1:] - masses
        v = live.target_conditionals * np.append(1.0, masses)[live.parent] - masses
        required, z = live.weights.copy(), np.zeros(live.size)
        for depth in range(len(live.depth_ends) - 1, 0, -1):
            nodes = live.nodes_at(depth)
            z[nodes] = required[nodes] * u[nodes] / (u[nodes] + v[nodes])
            if depth > 1:
                np.add.at(required, live.parent[nodes] - 1, live.target_conditionals[nodes] * z[nodes])
        y = required - z
        deviation = _bin_scores(live, y)
        deviation -= live.bin_mass @ deviation
        room = 0.05 + 0.5 * np.sqrt(live.bin_mass @ deviation**2)
        alpha = np.maximum(self.slopes[0] * deviation, self.slopes[-1] * deviation)
        alpha += room * (1.0 + self.pace.evenness / (len(deviation) * live.bin_mass))
        s = alpha[:, None] - np.multiply.outer(deviation, self.slopes)
        return Point(np.multiply.outer(live.bin_mass, self.widths), s, u, y, v, z)


def _bin_scores(live: LiveTree, scores: np.ndarray) -> np.ndarray:
    """Compute c_b, the sum of y on the path from the root, excluding the root, to the bin's node, [B]."""
    sums = np.zeros(live.size + 1)
    for depth in range(1, len(live.depth_ends)):
        nodes = live.nodes_at(depth)
        sums[nodes.start + 1 : nodes.stop + 1] = sums[live.parent[nodes]] + scores[nodes]
    return sums[live.bin_node]


def _predicted_gap(gap: float, point: Point, predictor: Step, primal: float, dual: float) -> float:
    """Predict the gap after the predictor with these step lengths, up to primal · dual · (ρ · Δα + γ · Δβ).

    The derivatives of the gap are -gap - d in the primal and d in the dual length, with d = Σ π Δs + Σ u Δy +
    Σ v Δz.  The primal and the dual part of the step are orthogonal up to ρ and γ, the masses that rounding
    left missing from the marginals of π (``newton``).  Only the aim of the step depends on this gap.
    """
    _, alpha, beta, scores = predictor.direction
    rows, tilted = predictor.targets.of_rows.T  # for a predictor, these and ``of_columns`` are sums of -π
    pairs = scores @ tilted - alpha @ rows - beta @ predictor.targets.of_columns
    d = float(pairs + point.u @ predictor.y + point.v @ predictor.z)
    return gap * (1.0 - primal) + (dual - primal) * d


def _steepest(point: Point, step: Step) -> np.ndarray:
    """Find the smallest Δ/present over the primal and over the dual entries, [2]; NaN if any ratio is NaN."""
    pairs = np.full((2, point.pi.shape[1]), np.inf)
    least_ratios(point.s, step.direction, step.targets.pairs, pairs)
    uv = np.minimum((step.u / point.u).min(), (step.v / point.v).min())
    yz = np.minimum((step.y / point.y).min(), (step.z / point.z).min())
    return np.minimum(pairs.min(axis=1), [uv, yz])


def _lengths(steepest: np.ndarray, most: float = 1.0) -> np.ndarray:
    """Compute the longest primal and dual step lengths, at most ``most``, that keep all entries ≥ 0, [2]."""
    return np.where(-steepest * most <= 1.0, most, -1.0 / steepest)

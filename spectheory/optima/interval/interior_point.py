"""A primal-dual interior-point method for the multi-path program with chords in place of f."""

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
"""The share of the way to the boundary that a step takes.  With 0.9 random pairs took more steps."""

LEAST_AIM, MOST_AIM, BOLDNESS = 1e-6, 0.2, 8
"""A step aims at (reduced / present)^BOLDNESS of the present mean product, within these limits, where
``reduced`` is the gap after the predictor alone.  With the usual exponent 3 (mehrotra1992) and no upper limit
random pairs took more steps, some of them twice as many."""

LARGE = 20_000
"""From so many bins on ``Pace.of`` is another one."""

ROWS_AT_ONCE = 4096
"""So many bins of a new program are started at a time, for their memory."""


class Pace(NamedTuple):
    """Choices that took few seconds on some random pairs of small trees, and of large ones.

    Attributes:
        corrections: the most centrality corrections per step (gondzio1996).
        evenness: the weight on the central path that is spread evenly over all products.
        retreat: new breakpoints start from the last iterate whose gap was at least so many times the gap
            before the latest step.  The latest iterate is often off the central path of the finer program,
            and many short steps would follow, the more of them the larger the tree.
        apart: the gaps of remembered iterates differ by this factor, so that few are remembered.
    """

    corrections: int
    evenness: float
    retreat: float
    apart: float

    @staticmethod
    def of(bins: int) -> Pace:
        """Large trees retreat further, and remember less."""
        return Pace(4, 30.0, 1.5, 1.3) if bins < LARGE else Pace(6, 10.0, 10.0, 8.0)


class ChordProgram:
    """The multi-path program with f replaced by its chords between breakpoints e_0 < .. < e_N.

    With w_j = e_j - e_{j-1} and φ_j the chord's slope, a leaf law is feasible under the chords exactly if it
    is a transport of leaves to ranks, r_b = Σ_j φ_j π_bj.  The program and its dual:

        max Σ_a κ(a) x(a)                                     min Σ_b q_b α_b + Σ_j w_j β_j + const
        u(a) = r(a) - x(a) ≥ 0                   score y(a)   y(a) + z(a) = κ(a) + Σ_x p(x|a) z(a, x)
        v(a) = p x(parent) - x(a) ≥ 0            slack z(a)   c_b = Σ y on the path to b
        Σ_j π_bj = q_b, Σ_b π_bj = w_j, π ≥ 0                 s_bj = α_b + β_j - φ_j c_b ≥ 0

    Chords lie below f, so r is feasible for the true program too.  The slacks z are feasible for its dual
    whatever f is.  So every iterate gives a lower and an upper bound.

    The method: predictor and corrector (mehrotra1992) with centrality corrections (gondzio1996), from a
    strictly feasible start, along a central path with weights: the product π_bj s_bj tends to
    μ (q_b w_j + E/(B N)), u y and v z at node a to μ (x°(a) + E/n), x° block verification's masses.  The
    first terms fit the scale of likely and unlikely leaves; without the second ones leaves with tiny q_b
    would leave hardly any room to move.

    Memory counts, with hundreds of megabytes to an array: a step writes the next π and s over those of
    ``point``, and an iterate to restart from is kept in float32.  A step that ends with an error changes
    nothing; after Ctrl-C the program cannot be used any more.

    Args:
        live: the tree, with at least one node below the root.
        num_drafts: K.
        edges: the breakpoints, [N+1], from 0 to 1.
        start: a strictly feasible point to start from, whose arrays now are the program's; without one, a
            standard point is made.
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
        """r_b of the iterate, [B], after a repair of its transport.

        Rows, then columns of π are scaled down to their marginals, and the missing mass is spread
        independently.  So r is feasible and of sum 1 up to rounding, however inexact the steps were.
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
        """The program with more breakpoints, started from this one's ``restart``.

        Split in proportion to the widths, π gives the same r, so it stays feasible.  With the slope φ' of
        a new segment inside segment j, s_bj + Δβ - (φ' - φ_j) c_b is dual feasible for the least Δβ that
        leaves at least half of every s_bj.  The gap grows by about the error of the chords.
        """
        widths = np.diff(edges)
        slopes = np.diff(hit_probability(edges, self.num_drafts)) / widths
        inside = np.searchsorted(self.edges, edges[:-1], side="right") - 1
        start = self.restart
        # the memory of these is needed for the new program
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
        """Move to the next iterate, and return the smaller one of its primal and dual lengths, in (0, 1]."""
        gap, point = self.gap, self.point
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # caught below as not finite
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
        """The iterate that a program with more breakpoints starts from."""
        return self._earlier[0][1] if self._earlier else self.point

    def _remembered(self, gap: float) -> list[tuple[float, Point]]:
        """The iterates that ``restart`` may need after a step from ``point``, with their gaps."""
        earlier = self._earlier
        if not earlier or self.pace.apart * gap <= earlier[-1][0]:
            pi, s = (pairs.astype(np.float32) for pairs in self.point[:2])
            earlier = [*earlier, (gap, self.point._replace(pi=pi, s=s))]
        forgotten = 0
        while forgotten + 1 < len(earlier) and earlier[forgotten + 1][0] >= self.pace.retreat * gap:
            forgotten += 1
        return earlier[forgotten:]

    def _direction(self, gap: float) -> tuple[Step, np.ndarray]:
        """The step, and its steepest falls as ``_steepest`` gives them."""
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
            # also for a correction that is NaN
            if not _lengths(falls).sum() >= lengths.sum() + 0.02:
                break
            step, steepest, spare = other, falls, step.targets.pairs
        return step, steepest

    def _corrected(self, predictor: Step, aim: float, pairs: np.ndarray) -> Targets:
        """Targets aim - Δπ Δs and so on, for products of aim up to third order (mehrotra1992)."""
        point, rows, columns = self.point, np.empty((len(pairs), 2)), np.zeros(len(self.slopes))
        corrected_targets(point.pi, point.s, predictor.direction, self._pair_aim(aim), pairs, rows, columns)
        u = (aim * self._node_weights - predictor.u * predictor.y) / (point.u * point.y) - 1.0
        v = (aim * self._node_weights - predictor.v * predictor.z) / (point.v * point.z) - 1.0
        return Targets(pairs, rows, columns, u, v)

    def _recentred(self, step: Step, lengths: list[float], aim: float, pairs: np.ndarray) -> Targets:
        """Targets that pull the products of a trial point towards their aim (gondzio1996): into
        [``LEAST_SHARE``, ``MOST_SHARE``] times it, but down by at most ``MOST_DOWN`` times it."""
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
        """A strictly feasible point: independent transport (r = q), masses below block verification's, and
        scores and slacks shared so that u y = v z."""
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
    """c_b, the sum of y on the path to the bin's node below the root, [B]."""
    sums = np.zeros(live.size + 1)
    for depth in range(1, len(live.depth_ends)):
        nodes = live.nodes_at(depth)
        sums[nodes.start + 1 : nodes.stop + 1] = sums[live.parent[nodes]] + scores[nodes]
    return sums[live.bin_node]


def _predicted_gap(gap: float, point: Point, predictor: Step, primal: float, dual: float) -> float:
    """The gap after the predictor with two lengths, up to primal · dual · (ρ · Δα + γ · Δβ).

    Along the lengths it has the slopes -gap - d and d, with d = Σ π Δs + Σ u Δy + Σ v Δz.  The primal and the
    dual part of the step are orthogonal up to ρ and γ, the mass that rounding left missing from the marginals
    of π (``newton``).  Only the aim of the step depends on it.
    """
    _, alpha, beta, scores = predictor.direction
    rows, tilted = predictor.targets.of_rows.T  # of a predictor these and ``of_columns`` are the sums of -π
    pairs = scores @ tilted - alpha @ rows - beta @ predictor.targets.of_columns
    d = float(pairs + point.u @ predictor.y + point.v @ predictor.z)
    return gap * (1.0 - primal) + (dual - primal) * d


def _steepest(point: Point, step: Step) -> np.ndarray:
    """The least Δ/present of the primal and of the dual entries, [2]; NaN where one is NaN."""
    pairs = np.full((2, point.pi.shape[1]), np.inf)
    least_ratios(point.s, step.direction, step.targets.pairs, pairs)
    uv = np.minimum((step.u / point.u).min(), (step.v / point.v).min())
    yz = np.minimum((step.y / point.y).min(), (step.z / point.z).min())
    return np.minimum(pairs.min(axis=1), [uv, yz])


def _lengths(steepest: np.ndarray, most: float = 1.0) -> np.ndarray:
    """The longest primal and dual steps up to ``most`` that keep every entry nonnegative, [2]."""
    return np.where(-steepest * most <= 1.0, most, -1.0 / steepest)

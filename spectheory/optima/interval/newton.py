"""One Newton system of the interior-point method: factored once, solved for several right-hand sides.

Notation as in ``interior_point.ChordProgram``: bins b, segments j with width w_j and slope φ_j, nodes a with
p = p(x|a) on the edge from the parent, transport π_bj, margins s_bj, u(a), v(a), scores y(a), slacks z(a),
duals α_b, β_j, path scores c_b, masses x(a) and the law r_b of the bins.  Every iterate is a ``Point``.  A
Newton step Δ solves the optimality conditions, linearised at the iterate:

    s Δπ + π Δs = R_π,   u Δy + y Δu = R_u,   v Δz + z Δv = R_v                     (complementarity)
    Δs_bj = Δα_b + Δβ_j - φ_j Δc_b,   Δc(a) = Δc(parent) + Δy(a)
    Δy(a) + Δz(a) = Σ_x p(x|a) Δz(a, x)                                            (dual)
    Σ_j Δπ_bj = ρ_b,   Σ_b Δπ_bj = γ_j,   Δr_b = Σ_j φ_j Δπ_bj
    Δu(a) = Δr(a) - Δx(a),   Δv(a) = p Δx(parent) - Δx(a),   Δr(a) = Σ Δr_b below a  (primal)

The caller gives the targets R.  ρ and γ are the masses that rounding left missing from the marginals of π.
Targets are stored relative to the products, H = R/(π s).  Δπ and Δs are not stored (``row_passes``).  The
system has bins × segments unknowns.  Three eliminations leave one dense system with one unknown per segment.

1. Pairs (b, j).  With θ = π/s, Θ_b = Σ_j θ_bj and φ̄_b the θ-mean of φ, eliminating Δπ, Δs and Δα gives

    Δr_b = e_b + d_b Δc_b - Σ_j E_bj Δβ_j,   E_bj = θ_bj (φ_j - φ̄_b),   d_b = Σ_j θ_bj (φ_j - φ̄_b)²,

   where e_b depends on the right-hand sides only.

2. Nodes.  Eliminating Δu, Δv, Δy, Δz leaves (Δc, Δx) per node, coupled only along the edges of the tree.
   With g = u/y and h = z/v, the block of node a and the block between a and its child ch are

    [ -(g + Σ_ch g_ch + d)         1         ]          [ g_ch    -1      ]
    [          1           h + Σ_ch p² h_ch  ]  (a, a),  [  0    -p h_ch  ]  (a, child).

   The matrix is symmetric quasi-definite, so we eliminate it from the leaves to the root without pivoting
   (``tree_passes``).  The right-hand sides of the segments are processed block by block (``tree_blocks``).

3. Segments.  A dense symmetric positive semidefinite system in Δβ remains.  We factor it by Cholesky.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from spectheory.foundation.errors import SolverError
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.row_passes import (
    SlackDirection,
    column_products,
    row_moments,
    row_products,
    spread_rows,
)
from spectheory.optima.interval.tree_blocks import NODES, TreeBlock, TreeBlocks
from spectheory.optima.interval.tree_passes import Edges, eliminate_columns, eliminate_nodes, solve_nodes


class Point(NamedTuple):
    """A primal-dual point (an iterate): π and s, [B, N]; u, y, v and z, [n]."""

    pi: np.ndarray
    s: np.ndarray
    u: np.ndarray
    y: np.ndarray
    v: np.ndarray
    z: np.ndarray


class Targets(NamedTuple):
    """Right-hand sides of the complementarity equations, divided by the products.

    Attributes:
        pairs: H = R_π/(π s), float32 [B, N], or [1, N] if all rows are equal, as for the predictor.
        of_rows: Σ_j π H and Σ_j φ π H, [B, 2].
        of_columns: Σ_b π H, [N].
        u, v: R_u/(u y) and R_v/(v z), [n].
    """

    pairs: np.ndarray
    of_rows: np.ndarray
    of_columns: np.ndarray
    u: np.ndarray
    v: np.ndarray


class Step(NamedTuple):
    """One Newton step: Δs as ``direction``; H = Δπ/π + Δs/s as ``targets``; Δu, Δy, Δv and Δz, [n] each."""

    direction: SlackDirection
    targets: Targets
    u: np.ndarray
    y: np.ndarray
    v: np.ndarray
    z: np.ndarray


class Workspace(NamedTuple):
    """Large arrays that all Newton systems reuse, because new memory costs more than a pass over it."""

    scaled_theta: np.ndarray  # θ̂ of ``row_passes``, [B, N]
    of_c: np.ndarray  # right-hand sides C of the top block and one other block, [.., N]
    of_x: np.ndarray  # right-hand sides X of the same blocks, [.., N]
    blocks: TreeBlocks

    @staticmethod
    def of(live: LiveTree, segments: int, nodes: int = NODES) -> Workspace:
        blocks = TreeBlocks.of(live, nodes)
        scaled_theta, of_c, of_x = (
            np.empty((count, segments)) for count in (len(live.bin_mass), *blocks.shape)
        )
        return Workspace(scaled_theta, of_c, of_x, blocks)


class NewtonSystem:
    """The Newton system factored at one point.

    Attributes:
        predictor: targets of the predictor step, R = -π s, for which the products become zero.

    Raises:
        SolverError: the dense system is not positive definite even after regularisation.
    """

    def __init__(
        self, live: LiveTree, slopes: np.ndarray, widths: np.ndarray, point: Point, workspace: Workspace
    ) -> None:
        self._live, self._slopes, self._point = live, slopes, point
        self._scaled_theta = workspace.scaled_theta
        moments, sums = np.empty((len(point.pi), 5)), np.zeros((2, len(slopes)))
        row_moments(point.pi, point.s, slopes, self._scaled_theta, moments, sums)
        self._moments, self._total, self._mean = moments, moments[:, 0], moments[:, 1]
        self._rows, self._columns = live.bin_mass - moments[:, 3], widths - sums[1]  # ρ and γ
        ones = np.ones(live.size)
        pairs = np.full((1, len(slopes)), -1.0, np.float32)
        self.predictor = Targets(pairs, -moments[:, 3:], -sums[1], -ones, -ones)
        self._edges = Edges(live.parent, live.target_conditionals, point.u / point.y, point.z / point.v)
        self._inverse, self._lift = np.empty((live.size, 3)), np.empty((live.size, 4))
        pivot = np.tile([0.0, 1.0, 0.0], (live.size, 1))
        below = live.bin_node > 0  # a bin at the root has Δc = 0
        pivot[live.bin_node[below] - 1, 0] = -moments[below, 2]
        eliminate_nodes(self._edges, pivot, self._inverse, self._lift)
        self._factor = None
        if len(slopes) > 1:
            dense = np.diag(sums[0]) - self._scaled_theta.T @ self._scaled_theta + self._of_nodes(workspace)
            # adding t to all α and -t to all β changes no margin, so we fix the first β
            self._factor = _regularised_cholesky(dense[1:, 1:])

    def _of_nodes(self, workspace: Workspace) -> np.ndarray:
        """Compute the terms that eliminating the nodes adds to the dense system in Δβ, [N, N]."""
        (_, of_c, of_x, blocks), top = workspace, workspace.blocks.all[-1]
        total = np.zeros((len(self._slopes), len(self._slopes)))

        def start(block: TreeBlock) -> None:
            of_c[block.of_c], of_x[block.of_x] = 0.0, 0.0
            spread_rows(self._scaled_theta, self._slopes, self._moments, block.bins, block.places, of_c)

        of_x[-1] = 0.0
        start(top)
        for block in blocks.all:
            if block is not top:
                start(block)
            eliminate_columns(block.rows, self._inverse, self._lift, of_c, of_x)
            c, x = of_c[block.of_c], of_x[block.of_x]
            total += x.T @ x
            total -= c.T @ c
        return total

    def solve(self, targets: Targets) -> Step:
        """Compute the step for given right-hand sides.

        For the pairs it uses only the sums ``of_rows`` and ``of_columns``.  The step returns ``pairs``
        unchanged in its ``targets``.
        """
        point, live, edges = self._point, self._live, self._edges
        rows = targets.of_rows[:, 0] - self._rows
        of_bins = targets.of_rows[:, 1] - self._mean * rows  # e
        gy, gz = targets.u * point.y, targets.v * point.z
        first, second = -gy * edges.g, -gz
        first += self._children_sum(gy * edges.g)
        second += self._children_sum(live.target_conditionals * gz)
        c, _ = self._tree_solve(first, second, of_bins)
        beta, root = np.zeros(len(self._slopes)), np.sqrt(self._total)
        if self._factor is not None:
            at_bins, of_columns = np.append(0.0, c)[live.bin_node], np.zeros((2, len(beta)))
            alpha = self._mean * at_bins + rows / self._total  # with Δβ = 0
            column_products(self._scaled_theta, root * at_bins, root * alpha, of_columns)
            rhs = targets.of_columns - self._columns + self._slopes * of_columns[0] - of_columns[1]
            beta[1:] = cho_solve(self._factor, rhs[1:], check_finite=False)
        of_rows = np.empty((2, len(rows)))
        row_products(self._scaled_theta, beta, self._slopes * beta, of_rows)
        plain, tilted = root * of_rows
        c, x = self._tree_solve(first, second, of_bins - (tilted - self._mean * plain))
        at_bins = np.append(0.0, c)[live.bin_node]
        alpha = (rows - plain) / self._total + self._mean * at_bins
        y = c - np.append(0.0, c)[live.parent]
        v = live.target_conditionals * np.append(0.0, x)[live.parent] - x
        direction = SlackDirection(self._slopes, alpha, beta, at_bins)
        return Step(direction, targets, edges.g * (gy - y), y, v, gz - edges.h * v)

    def _children_sum(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self._live.parent, weights=values, minlength=self._live.size + 1)[1:]

    def _tree_solve(
        self, first: np.ndarray, second: np.ndarray, of_bins: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute (Δc, Δx), [n] each.

        Args:
            first, second: right-hand sides of the two rows per node, [n] each.
            of_bins: right-hand sides of the bins, [B].
        """
        c, x, below = first.copy(), second.copy(), self._live.bin_node > 0
        c[self._live.bin_node[below] - 1] += of_bins[below]
        solve_nodes(self._edges, self._inverse, self._lift, c, x)
        return c, x


def _regularised_cholesky(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Compute the Cholesky factor after the smallest relative shift of the diagonal that makes it exist."""
    diagonal = np.diagonal(matrix)
    for exponent in range(-15, -3):
        try:
            return cho_factor(matrix + np.diag(10.0**exponent * diagonal))
        except (LinAlgError, ValueError):  # not positive definite, or not finite
            continue
    raise SolverError(
        f"the Newton system of {len(matrix) + 1} segments is not positive definite at machine precision"
    )

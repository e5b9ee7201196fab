"""One Newton system of the interior-point method: factored once, solved for several right-hand sides.

Notation of ``interior_point.ChordProgram``: bins b, segments j with width w_j and slope φ_j, nodes a with
p = p(x|a) on the edge from the parent, transport π_bj, margins s_bj, u(a), v(a), scores y(a), slacks z(a),
duals α_b, β_j, path scores c_b, masses x(a) and the leaf law r_b.  Every iterate is a ``Point``.  A Newton
step solves the optimality conditions linearised there, in the steps Δ:

    s Δπ + π Δs = R_π,   u Δy + y Δu = R_u,   v Δz + z Δv = R_v                     (complementarity)
    Δs_bj = Δα_b + Δβ_j - φ_j Δc_b,   Δc(a) = Δc(parent) + Δy(a)
    Δy(a) + Δz(a) = Σ_x p(x|a) Δz(a, x)                                            (dual)
    Σ_j Δπ_bj = ρ_b,   Σ_b Δπ_bj = γ_j,   Δr_b = Σ_j φ_j Δπ_bj
    Δu(a) = Δr(a) - Δx(a),   Δv(a) = p Δx(parent) - Δx(a),   Δr(a) = Σ Δr_b below a  (primal)

R are the targets of the caller; ρ and γ are what rounding left missing from the marginals of π.  The system
has leaves × segments unknowns; three eliminations leave one dense system with an unknown per segment.

1. Pairs (b, j).  With θ = π/s, Θ_b = Σ_j θ_bj and φ̄_b the θ-mean of φ, eliminating Δπ, Δs and Δα gives

    Δr_b = e_b + d_b Δc_b - Σ_j E_bj Δβ_j,   E_bj = θ_bj (φ_j - φ̄_b),   d_b = Σ_j θ_bj (φ_j - φ̄_b)²,

   e_b from the right-hand sides.

2. Nodes.  Eliminating Δu, Δv, Δy, Δz leaves per node the pair (Δc, Δx), coupled along the tree's edges
   only.  With g = u/y and h = z/v, the block of node a and the block between a and a child of a are

    [ -(g + Σ_ch g_ch + d)         1         ]          [ g_ch    -1      ]
    [          1           h + Σ_ch p² h_ch  ]  (a, a),  [  0    -p h_ch  ]  (a, child).

   The matrix is symmetric quasi-definite, so it is eliminated from the leaves to the root without pivoting.

3. Segments.  What remains is a dense symmetric positive semidefinite system in Δβ, factored by Cholesky.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from spectheory.errors import SolverError
from spectheory.programs.interval.live_tree import LiveTree


class Point(NamedTuple):
    """A primal-dual point, or a step, or right-hand sides: π, s [B, N] and u, y, v, z [n]."""

    pi: np.ndarray
    s: np.ndarray
    u: np.ndarray
    y: np.ndarray
    v: np.ndarray
    z: np.ndarray


class Targets(NamedTuple):
    """Right-hand sides of the complementarity equations: R_π [B, N], R_u and R_v [n]."""

    pi: np.ndarray
    u: np.ndarray
    v: np.ndarray


# Names of 2 × 2 blocks.  The letters stand for the two rows and columns of a node: c for Δc, x for Δx.
#
#   cc, cx, xx          the pivot of a node, symmetric: the block (a, a) minus what its children left there
#   icc, icx, ixx       its inverse (i)
#   lcc, lcx, lxc, lxx  the lift (l), (parent, node) block times inverse pivot: first letter a row of the
#                       parent, second letter a column of the node.  Row operations with it eliminate the
#                       node; ``_absorb`` keeps it negated, as sparse matrices that sum over children.


class _Level(NamedTuple):
    """Eliminated nodes of one depth: inverse pivots, lifts to the parents, and the parents."""

    nodes: slice
    inverse: tuple[np.ndarray, np.ndarray, np.ndarray]  # icc, icx, ixx
    lift: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # lcc, lcx, lxc, lxx
    parents: np.ndarray  # number of the parent within its depth
    num_parents: int


class NewtonSystem:
    """The factored system at one point.

    Args:
        live: the tree.
        slopes: φ_j, [N].
        point: the current point; all entries positive.
        widths: w_j, [N].

    Raises:
        SolverError: the dense system is not positive definite even after regularisation.
    """

    def __init__(self, live: LiveTree, slopes: np.ndarray, widths: np.ndarray, point: Point) -> None:
        self._live, self._slopes, self._point = live, slopes, point
        self._rows = live.bin_mass - point.pi.sum(axis=1)
        self._columns = widths - point.pi.sum(axis=0)
        self._theta = point.pi / point.s
        self._total = self._theta.sum(axis=1)
        self._mean = self._theta @ slopes / self._total
        centred = slopes - self._mean[:, None]
        self._spread = self._theta * centred  # E
        self._variance = np.einsum("bj,bj->b", self._spread, centred)  # d
        self._g, self._h = point.u / point.y, point.z / point.v
        self._child_bins = [
            slice(*np.searchsorted(live.bin_node, live.depth_ends[[depth - 1, depth]]))
            for depth in range(1, len(live.depth_ends))
        ]
        dense = -(self._theta / self._total[:, None]).T @ self._theta
        dense[np.diag_indices_from(dense)] += self._theta.sum(axis=0)
        self._levels: list[_Level] = []
        self._eliminate(dense)
        # shifting all α by t and all β by -t changes nothing, so the first β stays where it is
        self._factor = _regularised_cholesky(dense[1:, 1:]) if len(dense) > 1 else None

    def solve(self, targets: Targets) -> Point:
        """The step for given right-hand sides."""
        point, live = self._point, self._live
        scaled = targets.pi / point.s
        row_sums = scaled.sum(axis=1) - self._rows
        of_bins = scaled @ self._slopes - self._mean * row_sums  # e
        gy, gz = targets.u / point.u, targets.v / point.v
        first, second = -gy * self._g, -gz
        first += self._children_sum(gy * self._g)
        second += self._children_sum(live.target_conditionals * gz)
        c, _ = self._tree_solve(first, second, of_bins)
        beta = np.zeros(len(self._slopes))
        if self._factor is not None:
            at_bins = np.append(0.0, c)[live.bin_node]
            rhs = scaled.sum(axis=0) - self._theta.T @ (row_sums / self._total) - self._columns
            beta[1:] = cho_solve(self._factor, (rhs + self._spread.T @ at_bins)[1:], check_finite=False)
        c, x = self._tree_solve(first, second, of_bins - self._spread @ beta)
        at_bins = np.append(0.0, c)[live.bin_node]
        alpha = (row_sums - self._theta @ beta) / self._total + self._mean * at_bins
        s = alpha[:, None] + beta
        s -= np.multiply.outer(at_bins, self._slopes)
        scaled -= self._theta * s
        y = c - np.append(0.0, c)[live.parent]
        v = live.target_conditionals * np.append(0.0, x)[live.parent] - x
        return Point(scaled, s, self._g * (gy - y), y, v, gz - self._h * v)

    def _children_sum(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self._live.parent, weights=values, minlength=self._live.size + 1)[1:]

    def _eliminate(self, dense: np.ndarray) -> None:
        """Pivots from the deepest level up; subtract the eliminated part from the dense system."""
        live, g, h = self._live, self._g, self._h
        p = live.target_conditionals
        cc, cx = -(g + self._children_sum(g)), np.ones(live.size)
        xx = h + self._children_sum(p * p * h)
        bins = live.bin_node > 0
        cc[live.bin_node[bins] - 1] -= self._variance[bins]
        message = None
        deepest = int(np.count_nonzero(np.diff(live.depth_ends)))  # a depth without nodes has none below
        for depth in range(deepest, 0, -1):
            nodes = live.nodes_at(depth)
            determinant = cc[nodes] * xx[nodes] - cx[nodes] ** 2
            icc, icx, ixx = xx[nodes] / determinant, -cx[nodes] / determinant, cc[nodes] / determinant
            gain, carry = g[nodes], p[nodes] * h[nodes]
            lift = (gain * icc - icx, gain * icx - ixx, -carry * icx, -carry * ixx)
            start = live.depth_ends[depth - 2] if depth > 1 else 0
            num_parents = int(live.depth_ends[depth - 1] - start)
            level = _Level(nodes, (icc, icx, ixx), lift, live.parent[nodes] - start, num_parents)
            self._levels.append(level)
            message = self._absorb(depth, level, message, dense)
            if depth > 1:
                above = live.nodes_at(depth - 1)
                cc[above] -= _sum_up(level, lift[0] * gain - lift[1])
                cx[above] -= _sum_up(level, -lift[1] * carry)
                xx[above] -= _sum_up(level, -lift[3] * carry)

    def _absorb(
        self, depth: int, level: _Level, message: tuple[np.ndarray, np.ndarray] | None, dense: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Eliminate one depth from the columns E of the right-hand side; the message to its parents."""
        bins = self._child_bins[depth - 1]
        at = self._live.bin_node[bins] - 1 - level.nodes.start
        icc, icx, ixx = level.inverse
        if message is None:
            columns, others = np.zeros((len(icc), len(self._slopes))), None
        else:
            columns, others = message
        columns[at] += self._spread[bins]
        if others is None:
            dense += (icc[:, None] * columns).T @ columns
        else:
            dense += (icc[:, None] * columns + icx[:, None] * others).T @ columns
            dense += (icx[:, None] * columns + ixx[:, None] * others).T @ others
        if depth == 1:
            return None
        lcc, lcx, lxc, lxx = (_to_parents(level, -weight) for weight in level.lift)
        if others is None:
            return lcc @ columns, lxc @ columns
        return lcc @ columns + lcx @ others, lxc @ columns + lxx @ others

    def _tree_solve(
        self, first: np.ndarray, second: np.ndarray, of_bins: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(Δc, Δx), [n] each, for right-hand sides of the two rows per node and of the bins."""
        live, g, h = self._live, self._g, self._h
        c, x = first.copy(), second.copy()
        bins = live.bin_node > 0
        c[live.bin_node[bins] - 1] += of_bins[bins]
        for level in self._levels[:-1]:
            here, above = level.nodes, slice(level.nodes.start - level.num_parents, level.nodes.start)
            lcc, lcx, lxc, lxx = level.lift
            c[above] -= _sum_up(level, lcc * c[here] + lcx * x[here])
            x[above] -= _sum_up(level, lxc * c[here] + lxx * x[here])
        for level in reversed(self._levels):
            here, (icc, icx, ixx) = level.nodes, level.inverse
            if level is not self._levels[-1]:
                up = live.parent[here] - 1
                carry = live.target_conditionals[here] * h[here]
                c[here] -= g[here] * c[up]
                x[here] += c[up] + carry * x[up]
            c[here], x[here] = icc * c[here] + icx * x[here], icx * c[here] + ixx * x[here]
        return c, x


def _sum_up(level: _Level, values: np.ndarray) -> np.ndarray:
    return np.bincount(level.parents, weights=values, minlength=level.num_parents)


def _to_parents(level: _Level, weights: np.ndarray) -> csr_array:
    """The matrix [parents, nodes] that sums over children with weights."""
    count = len(weights)
    starts = np.searchsorted(level.parents, np.arange(level.num_parents + 1))
    return csr_array((weights, np.arange(count), starts), shape=(level.num_parents, count))


def _regularised_cholesky(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """The Cholesky factor; the least of a few relative shifts of the diagonal makes up for rounding."""
    diagonal = np.diagonal(matrix)
    for exponent in range(-15, -3, 2):
        try:
            return cho_factor(matrix + np.diag(10.0**exponent * diagonal))
        except (LinAlgError, ValueError):  # not positive definite, or not finite
            continue
    raise SolverError(
        f"the Newton system of {len(matrix) + 1} segments is not positive definite at machine precision"
    )

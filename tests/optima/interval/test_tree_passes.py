"""Eliminating the nodes against the matrix of all nodes, inverted as a whole."""

import numpy as np
import pytest

from spectheory import instances
from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.tree_passes import Edges, eliminate_columns, eliminate_nodes, solve_nodes

THRESHOLDS = (1e-9, 0.02)  # the whole tree, and one with nodes without children at every depth


class Case:
    """Random positive g, h and d on a live tree, and the matrix of ``newton`` in (Δc, Δx), [2 n, 2 n]."""

    def __init__(self, threshold: float) -> None:
        self.live = LiveTree.of(ContextTree.of(instances.random_float(1, 3, 3, 1.0, 0.5)), 2, threshold)
        n, rng = self.live.size, np.random.default_rng(2)
        g, h, d = rng.uniform(0.1, 3.0, (3, n))
        p, parent = self.live.target_conditionals, self.live.parent - 1
        self.edges, self.n, self.rng = Edges(self.live.parent, p, g, h), n, rng
        self.inverse, self.lift = np.empty((n, 3)), np.empty((n, 4))
        eliminate_nodes(self.edges, np.stack([-d, np.ones(n), np.zeros(n)], axis=1), self.inverse, self.lift)
        self.matrix = np.zeros((2 * n, 2 * n))
        for a in range(n):
            c, x, up_c, up_x = a, n + a, parent[a], n + parent[a]
            self.matrix[c, c] -= g[a] + d[a]
            self.matrix[x, x] += h[a]
            self.matrix[c, x] = self.matrix[x, c] = 1.0
            if parent[a] >= 0:
                self.matrix[up_c, up_c] -= g[a]
                self.matrix[up_x, up_x] += p[a] ** 2 * h[a]
                for row, column, entry in ((up_c, c, g[a]), (up_c, x, -1.0), (up_x, x, -p[a] * h[a])):
                    self.matrix[row, column] = self.matrix[column, row] = entry


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_one_right_hand_side(threshold: float) -> None:
    case = Case(threshold)
    right = case.rng.normal(size=2 * case.n)
    c, x = right[: case.n].copy(), right[case.n :].copy()
    solve_nodes(case.edges, case.inverse, case.lift, c, x)
    expected = np.linalg.solve(case.matrix, right)
    assert np.append(c, x) == pytest.approx(expected, rel=1e-10)
    case.matrix[0, 1] += 1e-3  # the partner: brothers that are coupled
    assert np.append(c, x) != pytest.approx(np.linalg.solve(case.matrix, right), rel=1e-6)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_many_right_hand_sides(threshold: float) -> None:
    """X̂ᵀX̂ - ĈᵀĈ = (C, 0)ᵀ M⁻¹ (C, 0), however many nodes have children."""
    case = Case(threshold)
    childless = case.live.inner == case.live.inner.max()
    assert 0 < childless.sum() < case.n
    of_c, of_x = case.rng.normal(size=(case.n, 5)), np.zeros((case.live.inner.max() + 1, 5))
    columns = np.concatenate([of_c, np.zeros((case.n, 5))])
    eliminate_columns(case.live.parent, case.inverse, case.lift, case.live.inner, of_c, of_x)
    expected = columns.T @ np.linalg.solve(case.matrix, columns)
    assert of_x.T @ of_x - of_c.T @ of_c == pytest.approx(expected, rel=1e-10)
    assert of_x.T @ of_x + of_c.T @ of_c != pytest.approx(expected, rel=1e-2)  # the partner: signs matter
    assert not of_x[-1].any()

"""Eliminating the nodes against the matrix of all nodes, inverted as a whole."""

import numpy as np
import pytest

from spectheory import instances
from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.tree_blocks import TreeBlocks
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
@pytest.mark.parametrize("nodes", [1, 3, 5, 12, 1000])
def test_many_right_hand_sides(threshold: float, nodes: int) -> None:
    """X̂ᵀX̂ - ĈᵀĈ = (C, 0)ᵀ M⁻¹ (C, 0), however many nodes have children, and into whatever blocks they go."""
    case = Case(threshold)
    blocks = TreeBlocks.of(case.live, nodes)
    assert sorted(np.concatenate([block.rows.nodes for block in blocks.all])) == list(range(case.n))
    assert (len(blocks.all) == 1) == (nodes >= case.n)
    right = case.rng.normal(size=(case.n, 5))
    of_c, of_x = (np.zeros((count, 5)) for count in blocks.shape)
    found, with_wrong_sign = np.zeros((2, 5, 5))
    of_c[blocks.all[-1].of_c] = right[blocks.all[-1].rows.nodes]
    for block in blocks.all:
        if block is not blocks.all[-1]:
            of_c[block.of_c], of_x[block.of_x] = right[block.rows.nodes], 0.0
        eliminate_columns(block.rows, case.inverse, case.lift, of_c, of_x)
        c, x = of_c[block.of_c], of_x[block.of_x]
        found += x.T @ x - c.T @ c
        with_wrong_sign += x.T @ x + c.T @ c
    columns = np.concatenate([right, np.zeros((case.n, 5))])
    expected = columns.T @ np.linalg.solve(case.matrix, columns)
    assert found == pytest.approx(expected, rel=1e-10)
    assert with_wrong_sign != pytest.approx(expected, rel=1e-2)  # the partner
    assert not of_x[-1].any()


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_blocks_are_subtrees_with_their_bins(threshold: float) -> None:
    """No edge leads from a block to another one than the top, and a bin's row is that of its node."""
    live = Case(threshold).live
    blocks = TreeBlocks.of(live, 5)
    of_node = np.full(live.size, -1)
    for number, block in enumerate(blocks.all):
        of_node[block.rows.nodes] = number
        assert (block.rows.nodes[block.places - block.of_c.start] == live.bin_node[block.bins] - 1).all()
    assert sorted(np.concatenate([block.bins for block in blocks.all])) == sorted(
        np.flatnonzero(live.bin_node > 0)
    )
    below_root = live.parent > 0
    above = of_node[live.parent[below_root] - 1]
    assert ((above == of_node[below_root]) | (above == len(blocks.all) - 1)).all()

"""Blocks of the live tree, so that we store the right-hand sides of all segments for one block at a time.

A block consists of neighbouring whole subtrees.  The last block, the top, is the part of the tree above them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.interval.tree_passes import BlockRows

NODES = 2048
"""Approximate number of nodes per block.  With 100 segments a block takes 2 MB, which fit into the cache."""


@dataclass(frozen=True, eq=False)
class TreeBlock:
    """A block, and its rows of the right-hand sides C and X of ``tree_passes.eliminate_columns``.

    Attributes:
        rows: the row indices of its nodes and their parents.
        of_c, of_x: the block's rows of C and X, without the shared row of zeros.
        bins: the indices of the bins attached to its nodes.
        places: the rows of C of these bins' nodes.
    """

    rows: BlockRows
    of_c: slice
    of_x: slice
    bins: np.ndarray
    places: np.ndarray


@dataclass(frozen=True, eq=False)
class TreeBlocks:
    """All blocks of a live tree.

    Attributes:
        all: the blocks, with the top last, so that subtrees come before their parents.
        shape: the numbers of rows of C and of X.
    """

    all: list[TreeBlock]
    shape: tuple[int, int]

    @staticmethod
    def of(live: LiveTree, nodes: int = NODES) -> TreeBlocks:
        """Cut the tree into the deepest top of at most ``nodes`` nodes, and blocks of about that size."""
        ends = live.depth_ends - 1
        depth = int(np.searchsorted(ends, nodes, side="right")) - 1  # the deepest level of the top
        has_children = np.bincount(live.parent, minlength=live.size + 1)[1:] > 0
        bin_of_node = np.full(live.size + 1, -1)
        bin_of_node[live.bin_node] = np.arange(len(live.bin_node))
        rows = np.full(live.size, -1)  # rows of C, for the nodes of the top and of the current block
        inner = np.full(live.size, -1)
        top = np.arange(ends[depth])
        first, first_inner = len(top), int(has_children[top].sum())

        def block(members: np.ndarray, row: int, inner_row: int) -> TreeBlock:
            count, with_children = len(members), has_children[members]
            rows[members] = np.arange(row, row + count)
            inner[members] = np.where(with_children, inner_row - 1 + np.cumsum(with_children), -1)
            above = live.parent[members] - 1
            below_root = above < 0
            parts = (rows[members], rows[above], inner[members], inner[above])
            of_nodes, of_parents, of_inner, inner_parents = parts
            of_parents[below_root] = inner_parents[below_root] = -1
            bins = bin_of_node[members + 1]
            return TreeBlock(
                BlockRows(members, of_nodes, of_parents, of_inner, inner_parents),
                slice(row, row + count),
                slice(inner_row, inner_row + int(with_children.sum())),
                bins[bins >= 0],
                of_nodes[bins >= 0],
            )

        whole_top = block(top, 0, 0)
        below = [block(members, first, first_inner) for members in _neighbours(live, depth, nodes)]
        blocks = [*below, whole_top]
        shape = max(part.of_c.stop for part in blocks), max(part.of_x.stop for part in blocks) + 1
        return TreeBlocks(blocks, shape)


def _neighbours(live: LiveTree, depth: int, most: int) -> Iterator[np.ndarray]:
    """Yield groups of nodes below ``depth``: neighbours at the next depth with their subtrees, by depth."""
    deepest = len(live.depth_ends) - 1
    if depth == deepest:
        return
    counts = np.ones(live.size + 1, dtype=int)  # number of nodes in each subtree
    for level in range(deepest, depth + 1, -1):
        nodes = live.nodes_at(level)
        np.add.at(counts, live.parent[nodes], counts[nodes.start + 1 : nodes.stop + 1])
    roots = live.nodes_at(depth + 1)
    group = np.cumsum(counts[roots.start + 1 : roots.stop + 1]) // most
    starts = roots.start + np.flatnonzero(np.diff(group, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], roots.stop], strict=True):
        parts = [np.arange(start, stop)]
        for level in range(depth + 2, deepest + 1):
            nodes = live.nodes_at(level)
            numbers = [parts[-1][0] + 1, parts[-1][-1] + 2]
            low, high = nodes.start + np.searchsorted(live.parent[nodes], numbers)
            if low == high:
                break
            parts.append(np.arange(low, high))
        yield np.concatenate(parts)

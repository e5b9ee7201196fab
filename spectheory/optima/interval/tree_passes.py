"""Passes over the live tree, which eliminate the nodes of the Newton system (``newton``) from the leaves up.

Every node a is a 2 × 2 block in Δc and Δx.  The letters c and x name its rows and columns:

    cc, cx, xx          the pivot, symmetric: the block (a, a) minus the contributions of the children
    icc, icx, ixx       the inverse of the pivot
    lcc, lcx, lxc, lxx  the lift, the block (parent, a) times the inverse pivot.  The first letter is a row of
                        the parent, the second a column of a.  Row operations with the lift eliminate a.

Nodes are numbered as in ``LiveTree``: children come after their parents and next to each other.  An array [n]
has no entry for the root.  Each segment has a right-hand side; ``tree_blocks`` treats all N block by block.
"""

from typing import NamedTuple

import numpy as np

from spectheory.foundation.kernels.loops import compiled_loop

_compiled = compiled_loop(sums_in_any_order=True, fused_products=True)


class Edges(NamedTuple):
    """For every node of the live tree: its parent, p(x|a) on its edge, g = u/y and h = z/v, [n] each."""

    parent: np.ndarray
    conditionals: np.ndarray
    g: np.ndarray
    h: np.ndarray


class BlockRows(NamedTuple):
    """Row indices of a block of m nodes in the right-hand sides C and X, [m] each.

    Attributes:
        nodes: the indices of the nodes in an array [n], children after their parents.
        of_nodes: the nodes' rows of C.
        of_parents: the rows of C of their parents; -1 if the parent is the root.
        inner: the nodes' rows of X.  Nodes without children share one row of zeros.
        inner_parents: the rows of X of their parents; -1 if the parent is the root.
    """

    nodes: np.ndarray
    of_nodes: np.ndarray
    of_parents: np.ndarray
    inner: np.ndarray
    inner_parents: np.ndarray


@_compiled
def eliminate_nodes(edges: Edges, pivot: np.ndarray, inverse: np.ndarray, lift: np.ndarray) -> None:
    """Compute the pivots from the last node to the first, their inverses and the lifts.

    Args:
        pivot: cc, cx, xx, [n, 3]; on entry without the terms of g and h, which are added here.
        inverse: overwritten with icc, icx, ixx, [n, 3].
        lift: overwritten with lcc, lcx, lxc, lxx, [n, 4].
    """
    parent, conditionals, g, h = edges
    for node in range(len(parent) - 1, -1, -1):
        gain, carry = g[node], conditionals[node] * h[node]
        cc, cx, xx = pivot[node, 0] - gain, pivot[node, 1], pivot[node, 2] + h[node]
        determinant = cc * xx - cx * cx
        icc, icx, ixx = xx / determinant, -cx / determinant, cc / determinant
        lcc, lcx, lxc, lxx = gain * icc - icx, gain * icx - ixx, -carry * icx, -carry * ixx
        inverse[node, 0], inverse[node, 1], inverse[node, 2] = icc, icx, ixx
        lift[node, 0], lift[node, 1], lift[node, 2], lift[node, 3] = lcc, lcx, lxc, lxx
        above = parent[node] - 1
        if above >= 0:
            pivot[above, 0] -= gain + lcc * gain - lcx
            pivot[above, 1] += lcx * carry
            pivot[above, 2] += carry * (conditionals[node] + lxx)


@_compiled
def solve_nodes(edges: Edges, inverse: np.ndarray, lift: np.ndarray, c: np.ndarray, x: np.ndarray) -> None:
    """Replace the right-hand sides c and x, [n], of the two rows per node by the solution Δc and Δx."""
    parent, conditionals, g, h = edges
    for node in range(len(parent) - 1, -1, -1):
        above = parent[node] - 1
        if above >= 0:
            c[above] -= lift[node, 0] * c[node] + lift[node, 1] * x[node]
            x[above] -= lift[node, 2] * c[node] + lift[node, 3] * x[node]
    for node in range(len(parent)):
        above = parent[node] - 1
        first, second = c[node], x[node]
        if above >= 0:
            first -= g[node] * c[above]
            second += c[above] + conditionals[node] * h[node] * x[above]
        icc, icx, ixx = inverse[node, 0], inverse[node, 1], inverse[node, 2]
        c[node], x[node] = icc * first + icx * second, icx * first + ixx * second


@_compiled
def eliminate_columns(
    rows: BlockRows, inverse: np.ndarray, lift: np.ndarray, of_c: np.ndarray, of_x: np.ndarray
) -> None:
    """Apply the row operations to N right-hand sides at once, for one block of nodes, and scale the result.

    Eliminating a node with right-hand sides C and X adds icc CᵀC + icx (CᵀX + XᵀC) + ixx XᵀX to the dense
    system.  As icc < 0 < ixx - icx²/icc, this is -ĈᵀĈ + X̂ᵀX̂ with

        Ĉ = √-icc (C + (icx/icc) X),   X̂ = √(ixx - icx²/icc) X.

    Args:
        rows: the row indices of the block's nodes and of their parents.
        of_c: C, [.., N]; the block's rows are overwritten by Ĉ.
        of_x: X, [.., N]; the block's rows are overwritten by X̂.
    """
    nodes, of_nodes, of_parents, inner, inner_parents = rows
    for i in range(len(nodes) - 1, -1, -1):
        node, above = nodes[i], of_parents[i]
        c, x = of_c[of_nodes[i]], of_x[inner[i]]
        if above >= 0:
            lcc, lcx, lxc, lxx = lift[node, 0], lift[node, 1], lift[node, 2], lift[node, 3]
            above_c, above_x = of_c[above], of_x[inner_parents[i]]
            for j in range(len(c)):
                above_c[j] -= lcc * c[j] + lcx * x[j]
                above_x[j] -= lxc * c[j] + lxx * x[j]
        icc, icx, ixx = inverse[node, 0], inverse[node, 1], inverse[node, 2]
        ratio = icx / icc
        root_c, root_x = np.sqrt(-icc), np.sqrt(ixx - icx * ratio)
        for j in range(len(c)):
            c[j] = root_c * (c[j] + ratio * x[j])
            x[j] *= root_x

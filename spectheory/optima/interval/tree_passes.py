"""Passes over the nodes of the live tree: the blocks of ``newton``, eliminated from the leaves to the root.

Every node is a 2 × 2 block in Δc and Δx, whose rows and columns have the letters c and x:

    cc, cx, xx          the pivot, symmetric: the block (a, a) minus the contributions of the children
    icc, icx, ixx       its inverse
    lcc, lcx, lxc, lxx  the lift, the block (parent, a) times the inverse pivot: first letter a row of the
                        parent, second letter a column of a.  Row operations with it eliminate a.

Nodes are numbered as in ``LiveTree``: children after their parents and next to each other, and an array [n]
leaves out the root.  The N right-hand sides of the segments are eliminated block by block (``tree_blocks``).
"""

from typing import NamedTuple

import numpy as np

from spectheory.foundation.kernels.loops import compiled_loop

_compiled = compiled_loop(sums_in_any_order=True, fused_products=True)


class Edges(NamedTuple):
    """The live tree's parents and p = p(x|a), and g = u/y, h = z/v, [n] each."""

    parent: np.ndarray
    conditionals: np.ndarray
    g: np.ndarray
    h: np.ndarray


class BlockRows(NamedTuple):
    """The places of a block of nodes in C and X, [m] each.

    Attributes:
        nodes: in an array [n], children after their parents.
        of_nodes: their rows of C.
        of_parents: the rows of their parents, -1 below the root.
        inner: their rows of X.  Nodes without children share one row, of zeros.
        inner_parents: the rows of their parents in X.
    """

    nodes: np.ndarray
    of_nodes: np.ndarray
    of_parents: np.ndarray
    inner: np.ndarray
    inner_parents: np.ndarray


@_compiled
def eliminate_nodes(edges: Edges, pivot: np.ndarray, inverse: np.ndarray, lift: np.ndarray) -> None:
    """Pivots from the last node to the first.

    Args:
        pivot: cc, cx, xx, [n, 3], on entry without g and h.
        inverse: icc, icx, ixx, [n, 3].
        lift: lcc, lcx, lxc, lxx, [n, 4].
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
    """Δc and Δx [n] in place of the right-hand sides of the two rows per node."""
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
    """The same row operations on N right-hand sides at once, which are then scaled, for one block of nodes.

    Eliminated, the right-hand sides C and X of a node leave icc CᵀC + icx (CᵀX + XᵀC) + ixx XᵀX.  As
    icc < 0 < ixx - icx²/icc, that is -ĈᵀĈ + X̂ᵀX̂ with

        Ĉ = √-icc (C + (icx/icc) X),   X̂ = √(ixx - icx²/icc) X.

    Args:
        rows: of the block's nodes and of their parents.
        of_c: C, overwritten by Ĉ in the block's rows, [.., N].
        of_x: X, overwritten by X̂ there, [.., N].
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

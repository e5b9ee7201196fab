"""Bipartite transport as a network flow.

Source: greedy2026 Lemma A.1.  Let a and b be distributions on left and right vertices, and N(S) the
neighbours of a set S of left vertices.  A coupling on the edges exists iff a(S) ≤ b(N(S)) for every S.  If a
maximum flow carries all mass, it is a coupling.  Otherwise the minimum cut proves that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from spectheory.foundation.extras import installed

if TYPE_CHECKING:
    import networkx

Edges = Collection[tuple[int, int]]
"""Pairs (index of a left vertex, index of a right vertex)."""


def largest_coupling(
    left: Sequence[Fraction], right: Sequence[Fraction], edges: Edges
) -> dict[tuple[int, int], Fraction]:
    """Compute the largest mass on the edges that a(x) and b(y) allow: a maximum flow, in integers."""
    with installed():
        import networkx

    graph, unit = _network(left, right, edges)
    _, flow = networkx.maximum_flow(graph, "source", "sink")
    carried = {(x, y): flow["left", x]["right", y] for x, y in edges}
    return {edge: Fraction(mass, unit) for edge, mass in carried.items() if mass}


def largest_violation(
    left: Sequence[Fraction], right: Sequence[Fraction], edges: Edges
) -> tuple[Fraction, tuple[int, ...]]:
    """Find the set S of left vertices with the largest a(S) - b(N(S)), by a minimum cut in integers.

    The capacities are a(x) from the source to x, b(y) from y to the sink, and infinite on the edges.  S
    consists of the left vertices on the source's side of the cut.

    Example:
        >>> quarter = Fraction(1, 4)
        >>> print(*largest_violation([quarter, 3 * quarter], [2 * quarter], [(0, 0), (1, 0)]))
        1/2 (0, 1)
    """
    with installed():
        import networkx

    graph, unit = _network(left, right, edges)
    carried, (kept, _) = networkx.minimum_cut(graph, "source", "sink")
    violating_set = tuple(x for x in range(len(left)) if ("left", x) in kept)
    excess = sum(left, Fraction(0)) - Fraction(carried, unit)
    return excess, violating_set if excess else ()


def _network(
    left: Sequence[Fraction], right: Sequence[Fraction], edges: Edges
) -> tuple[networkx.DiGraph, int]:
    """Build the graph, with capacities in integer multiples of 1/unit, and the integer ``unit``."""
    import networkx

    unit = math.lcm(*(value.denominator for side in (left, right) for value in side))
    graph = networkx.DiGraph()
    graph.add_nodes_from(["source", "sink"])
    for x, mass in enumerate(left):
        graph.add_edge("source", ("left", x), capacity=int(mass * unit))
    for y, mass in enumerate(right):
        graph.add_edge(("right", y), "sink", capacity=int(mass * unit))
    graph.add_edges_from((("left", x), ("right", y)) for x, y in edges)
    return graph, unit

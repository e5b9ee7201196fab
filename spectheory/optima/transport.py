"""Bipartite transport as a network flow (greedy2026 Lemma A.1)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import to_fraction
from spectheory.foundation.extras import installed
from spectheory.foundation.results import no_verdict

if TYPE_CHECKING:
    import networkx

Edges = Collection[tuple[int, int]]
"""Pairs (number of a left vertex, number of a right vertex)."""


@dataclass(frozen=True)
class Transport:
    """A coupling on the edges, or the set of left vertices that rules it out.

    Attributes:
        coupling: mass on every edge (x, y) that carries some; ``None`` if there is no coupling.
        violating_set: S with a(S) > b(N(S)), ascending; empty if there is a coupling.
        excess: a(S) - b(N(S)) of this set, 0 if there is a coupling.
    """

    coupling: Mapping[tuple[int, int], Fraction] | None
    violating_set: tuple[int, ...]
    excess: Fraction

    def __bool__(self) -> bool:
        raise no_verdict(self, ".is_feasible")

    @property
    def is_feasible(self) -> bool:
        """True if there is a coupling."""
        return self.coupling is not None


def transport_feasibility(left: Sequence[Any], right: Sequence[Any], edges: Edges) -> Transport:
    """A joint law with given marginals that lives on the given edges, or the proof that there is none.

    Source: greedy2026 Lemma A.1: a coupling exists iff a(S) ≤ b(N(S)) for every set S of left vertices, N its
    neighbours.  The maximum flow is the coupling if it carries everything; otherwise the minimum cut is the
    proof (``largest_violation``).

    Args:
        left, right: a and b, exact probabilities (Fractions or whole numbers); each sums to 1.
        edges: pairs (number of the left vertex, number of the right vertex).

    Raises:
        InvalidInputError: marginals that are not exact laws, or an edge to a vertex that does not exist.
        MissingDependencyError: networkx is not installed.

    Example:
        >>> half = Fraction(1, 2)
        >>> transport_feasibility([half, half], [half, half], [(0, 0), (1, 0), (1, 1)]).is_feasible
        True
        >>> found = transport_feasibility([half, half], [half, half], [(0, 0), (1, 0)])
        >>> print(found.violating_set, found.excess)
        (0, 1) 1/2
    """
    marginals = _checked("left", left), _checked("right", right)
    for x, y in edges:
        if not (0 <= x < len(left) and 0 <= y < len(right)):
            raise InvalidInputError(
                f"edge {(x, y)} names a vertex outside 0..{len(left) - 1} x 0..{len(right) - 1}"
            )
    excess, violating_set = largest_violation(*marginals, edges)
    if excess:
        return Transport(None, violating_set, excess)
    return Transport(largest_coupling(*marginals, edges), (), excess)


def largest_coupling(
    left: Sequence[Fraction], right: Sequence[Fraction], edges: Edges
) -> dict[tuple[int, int], Fraction]:
    """Mass on the edges, as much as a(x) and b(y) allow: a maximum flow, in whole numbers."""
    with installed():
        import networkx

    graph, unit = _network(left, right, edges)
    _, flow = networkx.maximum_flow(graph, "source", "sink")
    carried = {(x, y): flow["left", x]["right", y] for x, y in edges}
    return {edge: Fraction(mass, unit) for edge, mass in carried.items() if mass}


def largest_violation(
    left: Sequence[Fraction], right: Sequence[Fraction], edges: Edges
) -> tuple[Fraction, tuple[int, ...]]:
    """The largest a(S) - b(N(S)) over sets S of left vertices, and its S: a minimum cut, in whole numbers.

    The capacities are a(x) from the source to x, b(y) from y to the sink, and infinite on the edges.  S holds
    the left vertices on the source's side of the cut.

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
    """The graph with capacities in whole multiples of 1/unit, and the unit."""
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


def _checked(name: str, values: Sequence[Any]) -> list[Fraction]:
    try:
        law = [to_fraction(value) for value in values]
    except TypeError as error:
        raise InvalidInputError(f"the {name} marginal must be exact: {error}") from error
    if any(value < 0 for value in law) or sum(law) != 1:
        raise InvalidInputError(
            f"the {name} marginal must be a law, got {[str(value) for value in law]} with sum {sum(law)}"
        )
    return law

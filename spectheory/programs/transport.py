"""Bipartite transport feasibility (greedy2026 Lemma A.1) as a maximum flow.

Nothing in the package uses it.  It cross-checks ``is_skewed_draft`` (Lemma 4.5): which laws a selection rule
can have, by maximum flow instead of level sets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spectheory.errors import InvalidInputError
from spectheory.exact_numbers import to_fraction
from spectheory.extras import installed


@dataclass(frozen=True)
class Transport:
    """A coupling on the edges, or the set of left vertices that rules it out.

    Attributes:
        coupling: mass on every edge (x, y) that carries some; ``None`` if there is no coupling.
        violating_set: S with a(S) > b(N(S)), ascending; empty if there is a coupling.
        excess: a(S) - b(N(S)) of it, 0 if there is a coupling.
    """

    coupling: Mapping[tuple[int, int], Fraction] | None
    violating_set: tuple[int, ...]
    excess: Fraction

    @property
    def is_feasible(self) -> bool:
        """Whether there is a coupling."""
        return self.coupling is not None


def transport_feasibility(
    left: Sequence[Any], right: Sequence[Any], edges: Collection[tuple[int, int]]
) -> Transport:
    """A joint law with given marginals that lives on the given edges, or the proof that there is none.

    Source: greedy2026 Lemma A.1: a coupling exists iff a(S) ≤ b(N(S)) for every set S of left
    vertices, N its neighbours.  By maximum flow, over whole multiples of the common denominator:

    1. source -> x with capacity a(x), x -> y without limit on the edges, y -> sink with b(y).
    2. If the flow carries everything, it is the coupling.
    3. Otherwise S = the left vertices on the source's side of a minimum cut: a(S) - b(N(S)) is the
       mass that is not carried.

    Args:
        left, right: a and b, exact probabilities (Fractions or whole numbers); each sums to 1.
        edges: pairs (number of the left vertex, number of the right vertex).

    Raises:
        InvalidInputError: marginals that are not exact laws, or an edge to a vertex that is not there.
        MissingDependencyError: networkx is not installed.

    Example:
        >>> half = Fraction(1, 2)
        >>> transport_feasibility([half, half], [half, half], [(0, 0), (1, 0), (1, 1)]).is_feasible
        True
        >>> found = transport_feasibility([half, half], [half, half], [(0, 0), (1, 0)])
        >>> print(found.violating_set, found.excess)
        (0, 1) 1/2
    """
    with installed():
        import networkx

    marginals = _checked("left", left), _checked("right", right)
    for x, y in edges:
        if not (0 <= x < len(marginals[0]) and 0 <= y < len(marginals[1])):
            raise InvalidInputError(
                f"edge {(x, y)} names a vertex outside 0..{len(left) - 1} x 0..{len(right) - 1}"
            )
    unit = math.lcm(*(value.denominator for side in marginals for value in side))
    graph = networkx.DiGraph()
    graph.add_nodes_from(["source", "sink"])
    for x, value in enumerate(marginals[0]):
        graph.add_edge("source", ("left", x), capacity=int(value * unit))
    for y, value in enumerate(marginals[1]):
        graph.add_edge(("right", y), "sink", capacity=int(value * unit))
    graph.add_edges_from((("left", x), ("right", y)) for x, y in edges)
    carried, (reachable, _) = networkx.minimum_cut(graph, "source", "sink")
    if carried < unit:
        cut = tuple(sorted(node[1] for node in reachable if node[0] == "left"))
        return Transport(None, cut, Fraction(unit - carried, unit))
    _, flow = networkx.maximum_flow(graph, "source", "sink")
    coupling = {
        (x, y): Fraction(flow["left", x]["right", y], unit) for x, y in edges if flow["left", x]["right", y]
    }
    return Transport(coupling, (), Fraction(0))


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

"""A coupling on given edges, or the proof that there is none (greedy2026 Lemma A.1)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from spectheory.optima.transport import Edges, largest_coupling, largest_violation


class Transport(NamedTuple):
    """The mass on every edge that carries some, or the set S with the largest a(S) - b(N(S)), its excess."""

    coupling: Mapping[tuple[int, int], Fraction] | None
    violating_set: tuple[int, ...]
    excess: Fraction

    @property
    def is_feasible(self) -> bool:
        return self.coupling is not None


def transport_feasibility(left: Sequence[Fraction], right: Sequence[Fraction], edges: Edges) -> Transport:
    """A joint law of a and b that lives on the edges (x, y), or the set of left vertices against it."""
    excess, violating_set = largest_violation(left, right, edges)
    if excess:
        return Transport(None, violating_set, excess)
    return Transport(largest_coupling(left, right, edges), (), excess)

"""The most violated antichain constraints of greedy2026 Eq. 12, found without listing the antichains."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import divide_or_zero, hit_probability, positive_part
from spectheory.foundation.exact_numbers import plain_number
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.context_tree import Levels, check_levels, sum_over_children
from spectheory.pairs.contexts import count_nodes
from spectheory.pairs.pair import ModelPair

ALONE = -1
"""Child number of the step that leads to the antichain of the node itself."""


class _Hulls(NamedTuple):
    """The upper concave hulls of the points (q, x) below all nodes of one depth, as steps from (0, 0).

    A row holds the steps of a node by descending slope.  After its last step dq and dx are 0.

    Attributes:
        dq, dx: the steps, [nodes, steps]; dx > 0.
        width: dq / dx, the inverse slope, [nodes, steps].
        child: the child to whose hull the step belongs, or ``ALONE``, [nodes, steps].
    """

    dq: np.ndarray
    dx: np.ndarray
    width: np.ndarray
    child: np.ndarray

    @staticmethod
    def of(dq: np.ndarray, dx: np.ndarray, child: np.ndarray) -> "_Hulls":
        # In floats dq < 0 is rounding and counts as vertical.
        return _Hulls(dq, dx, divide_or_zero(positive_part(dq), dx), child)

    def vertices(self) -> tuple[np.ndarray, np.ndarray]:
        """Return q and x of every vertex, each [nodes, 1 + steps].  The last vertex may occur again."""
        q, x = (np.cumsum(np.hstack([part[:, :1] * 0, part]), axis=1) for part in self[:2])
        return q, x


def most_violated_antichain(
    pair: ModelPair, node_masses: Sequence[np.ndarray], num_drafts: int
) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """Find the antichain T that maximises Σ_{a∈T} x(a) - f(q(T)), f(u) = 1 - (1 - u)^K.

    Source: the separation problem of greedy2026 Eq. 12, x(a) = D(a) p(a).  x - f(q) is convex in (q, x),
    increasing in x and decreasing in q.  So its maximum over the points (q(T), x(T)) is at a vertex of their
    upper concave hull.  We build the hulls from the leaves up:

    1. An antichain strictly below a node is a free choice of one antichain per child.  The hull of the sums
       is the Minkowski sum: all steps of the children's hulls by descending slope.
    2. The node itself is another antichain: add the point (q(a), x(a)) and keep the hull.
    3. At the root, try every vertex.

    It takes about M log M steps for M leaves and a fixed depth.  With rationals it is exact, for any x.

    Args:
        pair: the models; only the draft is used.
        node_masses: x(a) by depth 0..L, arrays [V^depth], in the pair's arithmetic.
        num_drafts: K.

    Returns:
        The violation and the contexts of T; 0 and the empty antichain if no constraint is violated.

    Raises:
        InvalidInputError: wrong shapes, arithmetic or number of drafts.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> from fractions import Fraction
        >>> masses = [np.array([Fraction(1)]), np.array([Fraction(1, 3), Fraction(2, 3)])]
        >>> violation, contexts = most_violated_antichain(pair, masses, num_drafts=2)
        >>> print(violation, contexts)
        1/9 ((1,),)
    """
    num_drafts = check_num_drafts(num_drafts)
    masses = check_levels(pair, "node_masses", node_masses)
    if num_drafts == 1:
        return _one_draft_excess(pair, masses)
    hulls = _hulls(pair, masses)
    violations = _excess(hulls[0], num_drafts)[0]
    best = int(np.argmax(violations))
    members = _members(pair, hulls, 0, 0, best)
    contexts = [pair.context(depth, int(node)) for depth, nodes in enumerate(members) for node in nodes]
    return plain_number(violations[best]), tuple(sorted(contexts))


def violated_antichains(
    pair: ModelPair, masses: Levels, num_drafts: int, most: int, tolerance: Any
) -> list[np.ndarray]:
    """List antichains T with Σ_{a∈T} x(a) - f(q(T)) > tolerance, worst first.

    They are the local maxima on the hull of the root, and the best antichain below every other context.  For
    a negative tolerance they are all vertices of all hulls.

    Args:
        pair, num_drafts: as in ``most_violated_antichain``.
        masses: x(a) by depth 0..L, arrays [V^depth], in python-flint rationals or float64.
        most: the largest number of antichains.
        tolerance: the largest excess that counts as no violation.

    Returns:
        The node numbers of every antichain, breadth first.
    """
    hulls = _hulls(pair, masses)
    found = []
    for depth, level in enumerate(hulls[:-1]):
        excess = _excess(level, num_drafts)
        last = np.hstack([excess[:, 1:], excess[:, -1:]])  # the excess at the next vertex
        kept = np.hstack([excess[:, :1] > tolerance, (excess > tolerance)[:, 1:] & (level.dx > 0)])
        if tolerance >= 0 and depth:
            kept &= np.arange(excess.shape[1]) == np.argmax(excess, axis=1)[:, None]
        elif tolerance >= 0:
            kept[:, 1:] &= (excess[:, 1:] > excess[:, :-1]) & (excess >= last)[:, 1:]
        kept[:, 0] = False
        found += [(excess[place], depth, *map(int, place)) for place in zip(*np.nonzero(kept), strict=True)]
    antichains = []
    for _, depth, node, vertex in sorted(found, key=lambda one: -one[0])[:most]:
        members = enumerate(_members(pair, hulls, depth, node, vertex), start=depth)
        antichains.append(
            np.concatenate([count_nodes(pair.vocab_size, d - 1) + nodes for d, nodes in members])
        )
    return antichains


def _one_draft_excess(pair: ModelPair, masses: Levels) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """Compute ``most_violated_antichain`` for K = 1, where f(q) = q.

    From the leaves up we take a node or the best antichain below it.  If the excess is equal, we take the
    antichain with the smaller draft mass, as on the hull.
    """
    taken: list[np.ndarray] = []
    best = masses[0][:0]
    for depth in reversed(range(pair.draft_length + 1)):
        own = positive_part(masses[depth] - pair.numbers.draft_path_probs[depth])
        below = sum_over_children(best, pair.vocab_size) if taken else own * 0
        taken.append(own > below)
        best = np.maximum(own, below)
    members, open_nodes = [], np.ones(1, dtype=bool)
    for depth, takes in enumerate(reversed(taken)):
        members += [pair.context(depth, int(number)) for number in np.flatnonzero(open_nodes & takes)]
        # only nodes that are reached and not taken themselves are entered
        open_nodes = np.repeat(open_nodes & ~takes, pair.vocab_size)
    return plain_number(best[0]), tuple(sorted(members))


def _hulls(pair: ModelPair, masses: Levels) -> list[_Hulls]:
    """Build the hulls of all nodes by depth 0..L, from the leaves up."""
    probs = pair.numbers.draft_path_probs
    mass = positive_part(masses[-1])[:, None]
    levels = [_Hulls.of(np.where(mass > 0, probs[-1][:, None], mass), mass, np.full(mass.shape, ALONE))]
    for depth in reversed(range(pair.draft_length)):
        levels.append(_with_nodes(_merged(levels[-1], pair.vocab_size), probs[depth], masses[depth]))
    return levels[::-1]


def _merged(below: _Hulls, vocab_size: int) -> _Hulls:
    """Compute the Minkowski sums of the children's hulls: all their steps by descending slope."""
    steps = below.dq.shape[1]
    dq, dx, width = (part.reshape(-1, vocab_size * steps) for part in (below.dq, below.dx, below.width))
    width[dx == 0] = width.max() + 1 if width.dtype == object else np.nan  # numpy sorts NaN to the end
    order = np.argsort(width, axis=1, kind="stable")
    places = order + np.arange(len(order))[:, None] * (vocab_size * steps)
    return _Hulls(dq.take(places), dx.take(places), width.take(places), order // steps)


def _with_nodes(merged: _Hulls, draft_probs: np.ndarray, masses: np.ndarray) -> _Hulls:
    """Add the point (q(a), x(a)) of every node to its hull, at the right end.

    The hull keeps its steps up to the last one that is steeper than the line from its end to the new point.
    """
    q, x = merged.vertices()
    added = np.flatnonzero(masses > x[:, -1])
    dq, dx = draft_probs[added, None] - q[added], masses[added, None] - x[added]
    steeper = (merged.dx[added] > 0) & (merged.width[added] * dx[:, 1:] < dq[:, 1:])
    kept = (steeper * np.arange(1, q.shape[1])).max(axis=1)
    last = np.arange(len(added)), kept
    parts = [np.hstack([part, part[:, :1] * 0]) for part in (merged.dq, merged.dx, merged.child)]
    rows, places = np.nonzero(np.arange(q.shape[1]) > kept[:, None])
    for part, line in zip(parts, (dq, dx, np.full(dq.shape, ALONE)), strict=True):
        part[added[rows], places] = part[:1, -1] * 0
        part[added, kept] = line[last]
    used = np.flatnonzero((parts[1] > 0).any(axis=0))
    return _Hulls.of(*(part[:, : max(1, len(used))] for part in parts))


def _excess(hulls: _Hulls, num_drafts: int) -> np.ndarray:
    """Compute x - f(q) at every vertex, [nodes, 1 + steps]."""
    q, x = hulls.vertices()
    return x - hit_probability(q, num_drafts)


def _members(pair: ModelPair, hulls: list[_Hulls], depth: int, node: int, vertex: int) -> list[np.ndarray]:
    """List the antichain of a vertex, the number of its steps, as numbers of contexts by depth."""
    nodes, steps = (np.array([node]), np.array([vertex])) if vertex else (np.zeros(0, int), np.zeros(0, int))
    members = []
    for child in (level.child for level in hulls[depth:]):
        alone = child[nodes, steps - 1] == ALONE
        members.append(nodes[alone])
        nodes, steps = nodes[~alone], steps[~alone]
        rows, places = np.nonzero(np.arange(child.shape[1]) < steps[:, None])
        below = nodes[rows] * pair.vocab_size + child[nodes[rows], places]
        nodes, steps = np.unique(below, return_counts=True)
    return members

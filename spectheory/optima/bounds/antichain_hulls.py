"""The most violated antichain constraint of greedy2026 Eq. 12, found without listing the antichains."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import hit_probability, positive_part
from spectheory.foundation.exact_numbers import plain_number
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.context_tree import Levels, check_levels, sum_over_children
from spectheory.pairs.pair import ModelPair


class _Segment(NamedTuple):
    key: tuple[bool, Any]  # (is vertical, slope or 0): vertical segments come first
    dq: Any
    dx: Any
    child: int  # the child to whose hull the step belongs, or ALONE


class _Hull(NamedTuple):
    """An upper concave hull of points (q, x) from (0, 0), as steps between vertices by descending slope."""

    steps: list[_Segment]

    def vertices(self, zero: Any) -> list[tuple[Any, Any]]:
        points = [(zero, zero)]
        for step in self.steps:
            points.append((points[-1][0] + step.dq, points[-1][1] + step.dx))
        return points


ALONE = -1  # the last step of a node's hull may lead to the antichain of the node itself


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
    zero = masses[0][0] * 0
    vertices = hulls[0][0].vertices(zero)
    draft_mass = np.array([q for q, _ in vertices], dtype=masses[0].dtype)
    node_mass = np.array([x for _, x in vertices], dtype=masses[0].dtype)
    violations = node_mass - hit_probability(draft_mass, num_drafts)
    best = int(np.argmax(violations))
    return plain_number(violations[best]), tuple(sorted(_members(pair, hulls, best)))


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


def _hulls(pair: ModelPair, masses: Levels) -> list[list[_Hull]]:
    V = pair.vocab_size
    levels: list[list[_Hull]] = []
    for depth in reversed(range(pair.draft_length + 1)):
        probs = pair.numbers.draft_path_probs[depth]
        below = levels[-1] if levels else []
        levels.append(
            [
                _with_node(_merged(below[node * V : (node + 1) * V]), probs[node], masses[depth][node])
                for node in range(V**depth)
            ]
        )
    return levels[::-1]


def _merged(children: list[_Hull]) -> list[_Segment]:
    """Compute the Minkowski sum of the children's hulls: all steps by descending slope."""
    steps = [step._replace(child=child) for child, hull in enumerate(children) for step in hull.steps]
    return sorted(steps, key=lambda step: step.key, reverse=True)


def _with_node(steps: list[_Segment], draft_prob: Any, mass: Any) -> _Hull:
    """Add the point (q(a), x(a)) of the node itself to the hull, at its right end."""
    zero = mass * 0
    points = _Hull(steps).vertices(zero)
    if mass <= points[-1][1]:
        return _Hull(steps)
    kept = len(steps)
    step = _step_to(points[kept], draft_prob, mass)
    while kept and step.key >= steps[kept - 1].key:
        kept -= 1
        step = _step_to(points[kept], draft_prob, mass)
    return _Hull([*steps[:kept], step])


def _step_to(start: tuple[Any, Any], draft_prob: Any, mass: Any) -> _Segment:
    dq, dx = draft_prob - start[0], mass - start[1]
    # q(a) is the total draft mass of the subtree, so dq < 0 is float rounding and counts as vertical
    key = (True, dx * 0) if dq <= 0 else (False, dx / dq)
    return _Segment(key, dq, dx, ALONE)


def _members(pair: ModelPair, hulls: list[list[_Hull]], vertex: int) -> list[tuple[int, ...]]:
    V, found = pair.vocab_size, []
    todo = [(0, 0, vertex)]
    while todo:
        depth, node, count = todo.pop()
        steps = hulls[depth][node].steps[:count]
        if steps and steps[-1].child == ALONE:
            found.append(pair.context(depth, node))
            continue
        for child in {step.child for step in steps}:
            taken = sum(step.child == child for step in steps)
            todo.append((depth + 1, node * V + child, taken))
    return found

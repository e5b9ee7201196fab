"""The shape of a tree of drafts that earns the most for its nodes, by dynamic programming.

A rule judges the children of a node one after the other, the first of them first.  If what becomes of a child
does not depend on later children, the mass m(r) of accepting the node with the ranks r, its place among the
children at every depth, is the same in every shape that has the node.  Then

    E[tau + 1] = 1 + Σ m(r)   over the nodes r of the shape,

and the best shape of n nodes is found from the leaves up (theory.md Statement 5.28; sequoia2024).
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import comb
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import after_rejection, normalise
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import plain_number
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_count
from spectheory.pairs.pair import ModelPair, check_pair
from spectheory.pairs.rows import parse_probs

# The time grows with the square of the nodes and with the children of a node.
MAX_NODES = 128
"""The most nodes of a shape."""
MAX_RANK_PATHS = 20_000
"""The most nodes whose masses are computed one by one, on a pair whose rows depend on the context."""
MAX_STATES = 20_000
"""The most shapes at contexts that ``prefix_tree_value`` looks at."""

Shape = tuple[Any, ...]
"""The shapes below the children of a node, in order; ``()`` is a leaf."""
Levels = Sequence[np.ndarray]
"""By depth the mass that child j of a context is accepted with token x, [contexts, children, V].

A profile, which is the same at every context, is [1, children, 1].
"""


class ShapeValue(NamedTuple):
    """A shape and what it earns.

    Attributes:
        value: E[tau + 1], tokens per target call.
        shape: the tree.
    """

    value: Any
    shape: Shape

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")

    @property
    def children(self) -> tuple[int, ...]:
        """The number of children of every node, breadth first, as ``ShapedTree`` takes them.

        Example:
            >>> ShapeValue(2.0, (((),), ())).children
            (2, 1)
        """
        nodes: list[Shape] = [self.shape]
        for node in nodes:
            nodes.extend(node)
        counts = [len(node) for node in nodes]
        while counts and not counts[-1]:
            counts.pop()
        return tuple(counts)


def profile_levels(profile: Sequence[Any], draft_length: int) -> list[np.ndarray]:
    """The masses of an acceptance profile: child j of any node is the accepted one with probability a_j.

    Args:
        profile: a_1, a_2, .., all exact (texts) or all float, with a sum of at most 1.
        draft_length: L.

    Raises:
        InvalidInputError: a number is negative, or the sum is above 1.
    """
    row = parse_probs(list(profile))
    if not (all(number >= 0 for number in row) and row.sum() <= 1):
        raise InvalidInputError(
            f"a profile holds probabilities, at least 0 and at most 1 in sum; got {profile}"
        )
    return [row[None, :, None]] * check_count("draft_length", draft_length)


def ranked_acceptance(pair: ModelPair, drafts: str, num_children: int) -> list[np.ndarray]:
    """The masses of children that are judged one after the other, on every context of a pair.

    Args:
        pair: the models.
        drafts: ``"shaped_tree"``, the likeliest next tokens, which naive sampling accepts in proportion to
            the target; ``"without_replacement"`` or ``"prefix_tree"``, sampled next tokens under multi-round
            rejection.  In a prefix tree a later child with the accepted token is not followed, see
            ``prefix_tree_value``.
        num_children: the most children of a node.

    Returns:
        By depth [V^depth, children, V]; [1, children, 1] for a context-free pair.

    Raises:
        InvalidInputError: there is no such process.

    Example:
        >>> from spectheory import instances
        >>> levels = ranked_acceptance(instances.two_token(1), "without_replacement", 2)
        >>> print(*levels[0].ravel())
        2/3 1/3
    """
    rules = {"shaped_tree": _likeliest, "without_replacement": _distinct, "prefix_tree": _repeated}
    if drafts not in rules:
        raise InvalidInputError(f"drafts must be one of {', '.join(rules)}, got {drafts!r}")
    levels = []
    for target, draft in zip(check_pair(pair).target, pair.draft, strict=False):
        rows = (
            zip(target[:1], draft[:1], strict=True) if pair.context_free else zip(target, draft, strict=True)
        )
        level = np.array([rules[drafts](p, q, num_children) for p, q in rows])
        levels.append(level.sum(axis=2, keepdims=True) if pair.context_free else level)
    return levels


def _likeliest(target: np.ndarray, draft: np.ndarray, num_children: int) -> np.ndarray:
    found = np.zeros((num_children, len(target)), dtype=target.dtype) + target[0] * 0
    for rank, token in enumerate(np.argsort(-draft, kind="stable")[:num_children]):
        found[rank, token] = target[token]
    return found


def _repeated(target: np.ndarray, draft: np.ndarray, num_children: int) -> np.ndarray:
    found, left, rejected = [], target, target.sum()
    for _ in range(num_children):
        accepted = np.minimum(left, draft)
        found.append(rejected * accepted)
        rejected = rejected * (1 - accepted.sum())
        left = after_rejection(left, draft)
    return np.array(found)


def _distinct(target: np.ndarray, draft: np.ndarray, num_children: int) -> np.ndarray:
    found = np.zeros((num_children, len(target)), dtype=target.dtype) + target[0] * 0

    def draw(left: np.ndarray, row: np.ndarray, prob: Any, number: int) -> None:
        if number == num_children or not row.sum() > 0:
            return
        row = normalise(row)
        accepted = np.minimum(left, row)
        found[number] += prob * accepted
        following = after_rejection(left, row)
        for token in np.flatnonzero(row > accepted):
            draw(following, _without(row, int(token)), prob * (row[token] - accepted[token]), number + 1)

    draw(target, draft, target.sum(), 0)
    return found


def _without(row: np.ndarray, token: int) -> np.ndarray:
    row = row.copy()
    row[token] -= row[token]
    return row


def shape_value(levels: Levels, shape: Shape) -> Any:
    """1 + Σ m(r) over the nodes of a shape, tokens per target call.

    Raises:
        InvalidInputError: a node is deeper than the levels, or has more children.

    Example:
        >>> print(shape_value(profile_levels(["1/2", "1/4"], 2), (((),), ())))
        2
    """

    def below(measure: np.ndarray, depth: int, shape: Shape) -> Any:
        total = measure.sum()
        if shape and (depth == len(levels) or len(shape) > levels[depth].shape[1]):
            raise InvalidInputError(
                f"the shape has {len(shape)} children at depth {depth}, more than the levels do"
            )
        for number, child in enumerate(shape):
            total += below((measure[:, None] * levels[depth][:, number]).ravel(), depth + 1, child)
        return total

    return plain_number(below(_start(levels), 0, shape))


def best_shapes(levels: Levels, num_nodes: int) -> list[ShapeValue]:
    """The best shape of at most n nodes below the root, for n = 1..N.

    With F(μ, n) the most that n nodes earn below a node that is reached with the measure μ over contexts, and
    G_j(μ, n) the most that the children j, j+1, .. earn,

        F(μ, n) = G_1(μ, n),    G_j(μ, n) = max(0, max_m |μ_j| + F(μ_j, m - 1) + G_{j+1}(μ, n - m)),

    where μ_j is the measure behind child j.  For a profile F is in proportion to |μ|, so that one F per depth
    suffices.

    Args:
        levels: from ``ranked_acceptance`` or ``profile_levels``; L is their number.
        num_nodes: N, the tokens that the target scores.

    Raises:
        InvalidInputError: N is not a whole number from 1 to 128.
        EnumerationTooLargeError: the rows depend on the context, and there are too many nodes.

    Example:
        >>> for best in best_shapes(profile_levels(["3/5", "3/10"], 3), 4):
        ...     print(best.value, best.children)
        8/5 (1,)
        49/25 (1, 1)
        113/50 (2, 1)
        619/250 (2, 1, 0, 1)
    """
    if check_count("num_nodes", num_nodes) > MAX_NODES:
        raise InvalidInputError(f"num_nodes must be at most {MAX_NODES}, got {num_nodes}")
    is_profile = all(level.shape[0] == level.shape[2] == 1 for level in levels)
    if not is_profile:
        count = sum(comb(num_nodes, depth) for depth in range(1, len(levels) + 1))
        if count > MAX_RANK_PATHS:
            raise EnumerationTooLargeError(
                f"{num_nodes} nodes can take {count} places in a tree of depth {len(levels)}, the limit is "
                f"{MAX_RANK_PATHS}; use fewer nodes, a shorter draft or a context-free pair"
            )
    start = _start(levels)
    zero = start.sum() - start.sum()

    def below(measure: np.ndarray, depth: int, room: int) -> list[tuple[Any, Shape]]:
        """F(measure, n) for n = 0..room."""
        forests: list[tuple[Any, Shape]] = [(zero, ())] * (room + 1)
        if depth == len(levels):
            return forests
        for number in reversed(range(min(levels[depth].shape[1], room))):
            space = room - number  # the earlier children are a node each, at least
            behind = (measure[:, None] * levels[depth][:, number]).ravel()
            mass = behind.sum()
            subtrees = scaled(mass, depth + 1) if is_profile else below(behind, depth + 1, space - 1)
            forests = [
                max(
                    [(zero, ())]
                    + [
                        (
                            mass + subtrees[used - 1][0] + forests[nodes - used][0],
                            (subtrees[used - 1][1], *forests[nodes - used][1]),
                        )
                        for used in range(1, nodes + 1)
                    ],
                    key=lambda found: found[0],
                )
                for nodes in range(space + 1)
            ]
        return forests

    @cache
    def of_one(depth: int) -> list[tuple[Any, Shape]]:
        return below(start, depth, num_nodes - depth)

    def scaled(mass: Any, depth: int) -> list[tuple[Any, Shape]]:
        return [(mass * value, shape) for value, shape in of_one(depth)]

    found = of_one(0) if is_profile else below(start, 0, num_nodes)
    return [ShapeValue(plain_number(1 + value), shape) for value, shape in found[1:]]


def _start(levels: Levels) -> np.ndarray:
    first = levels[0].ravel()[:1]
    return first - first + 1


def prefix_tree_value(pair: ModelPair, shape: Shape) -> Any:
    """E[tau + 1] of multi-round rejection where every node of a shape samples its children independently.

    Source: theory.md Statement 5.28.  A later child with the accepted token is drafted at the same context:
    its children are judged behind those of the accepted one.  Given that child j is accepted with token x,
    every later child has token x with probability q(x), independently.  ``K`` children of one chain each are
    ``Iid(K)``.

    Args:
        pair: the models.
        shape: the tree.

    Raises:
        InvalidInputError: the shape is deeper than the pair.
        EnumerationTooLargeError: there are too many combinations of equal drafts.

    Example:
        >>> from spectheory import instances
        >>> print(prefix_tree_value(instances.two_token(2), (((),),) * 3))
        1816/729
    """
    V, states = check_pair(pair).vocab_size, 0

    @cache
    def behind(depth: int, context: int, shape: Shape) -> Any:
        nonlocal states
        total = pair.target[0][0].sum()
        if not shape:
            return total
        if depth == pair.draft_length:
            raise InvalidInputError(f"the shape is deeper than the draft length {depth} of the pair")
        target, draft = pair.target[depth][context], pair.draft[depth][context]
        accepted = _repeated(target, draft, len(shape))
        for number, child in enumerate(shape):
            for token in np.flatnonzero(accepted[number] > 0):
                next_context = 0 if pair.context_free else context * V + int(token)
                for equal in product((False, True), repeat=len(shape) - number - 1):
                    if (states := states + 1) > MAX_STATES:
                        raise EnumerationTooLargeError(
                            f"more than {MAX_STATES} combinations of equal drafts; use a smaller tree"
                        )
                    prob, merged = accepted[number, token], child
                    for other, is_equal in zip(shape[number + 1 :], equal, strict=True):
                        prob = prob * (draft[token] if is_equal else 1 - draft[token])
                        merged = (*merged, *other) if is_equal else merged
                    if prob > 0:
                        total = total + prob * behind(depth + 1, next_context, merged)
        return total

    return plain_number(behind(0, 0, shape))

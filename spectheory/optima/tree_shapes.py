"""The tree of n drafted nodes with the largest block efficiency, by dynamic programming.

A verification rule tests the children of a node in order.  A node is named by its ranks r: at every depth on
its path, the position among the children.  Suppose that later children do not change the decision about a
child.  Then the probability m(r) that the node r is accepted is equal in all shapes with this node, and

    E[tau + 1] = 1 + Σ m(r)   over the nodes r of the shape.

The best shape of n nodes is computed from the leaves up (theory.md Statement 5.28; sequoia2024).
"""

from collections.abc import Sequence
from functools import cache
from math import comb
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import plain_number
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_count
from spectheory.pairs.pair import ModelPair, check_pair

# The time grows with the square of the number of nodes and with the number of children of a node.
MAX_NODES = 128
"""Largest number of nodes of a shape."""
MAX_RANK_PATHS = 20_000
"""Largest number of nodes whose masses are computed one by one, if the rows depend on the context."""

Shape = tuple[Any, ...]
"""A tree: the shapes below the children of the root, in order.  ``()`` is a leaf."""
Levels = Sequence[np.ndarray]
"""By depth: probability that child j of a context has token x and is accepted, [contexts, children, V].

A profile is [1, children, 1]: the probability summed over tokens, if it is the same at every context.
"""


class ShapeValue(NamedTuple):
    """A shape and its block efficiency.

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
        """The number of children of every node, breadth first without the last zeros, for ``ShapedTree``.

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


def likeliest_acceptance(pair: ModelPair, num_children: int) -> list[np.ndarray]:
    """Compute the chance that naive sampling accepts each of the draft's most likely next tokens as a child.

    Naive sampling accepts a child with the target probability of its token.

    Args:
        pair: the models.
        num_children: the largest number of children of a node.

    Returns:
        ``Levels``: by depth [V^depth, children, V]; for a context-free pair the profile [1, children, 1].

    Example:
        >>> from spectheory import instances
        >>> levels = likeliest_acceptance(instances.two_token(1), 2)
        >>> print(*levels[0].ravel())
        1/3 2/3
    """
    levels = []
    for target, draft in zip(check_pair(pair).target, pair.draft, strict=False):
        contexts = slice(1) if pair.context_free else slice(None)
        level = np.array(
            [_likeliest(*rows, num_children) for rows in zip(target[contexts], draft[contexts], strict=True)]
        )
        levels.append(level.sum(axis=2, keepdims=True) if pair.context_free else level)
    return levels


def _likeliest(target: np.ndarray, draft: np.ndarray, num_children: int) -> np.ndarray:
    found = np.zeros((num_children, len(target)), dtype=target.dtype) + target[0] * 0
    for rank, token in enumerate(np.argsort(-draft, kind="stable")[:num_children]):
        found[rank, token] = target[token]
    return found


def best_shapes(levels: Levels, num_nodes: int) -> list[ShapeValue]:
    """Compute the best shape of at most n nodes below the root, for n = 1..N.

    Let μ be the measure over contexts with which a node is accepted, |μ| its total mass, and μ_j the measure
    after its child j.  F(μ, n) is the largest Σ m of n nodes below the node, G_j(μ, n) the largest of n nodes
    in and below the children j, j+1, ..:

        F(μ, n) = G_1(μ, n),    G_j(μ, n) = max(0, max_m |μ_j| + F(μ_j, m - 1) + G_{j+1}(μ, n - m)).

    For a profile F is proportional to |μ|, so that one F per depth suffices.

    Args:
        levels: acceptance probabilities, for example from ``likeliest_acceptance``.  Their number is L.
        num_nodes: N, the number of drafted tokens that the target scores.

    Raises:
        InvalidInputError: N is not an integer from 1 to 128.
        EnumerationTooLargeError: the rows depend on the context, and N nodes have over 20 000 rank paths.

    Example:
        >>> pair = ModelPair.context_free_pair(["3/5", "3/10", "1/10"], ["3/5", "3/10", "1/10"], 3)
        >>> for best in best_shapes(likeliest_acceptance(pair, 2), 4):
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
        """Compute (F(measure, n), its shape) for n = 0..room, at a node of this depth."""
        forests: list[tuple[Any, Shape]] = [(zero, ())] * (room + 1)
        if depth == len(levels):
            return forests
        for number in reversed(range(min(levels[depth].shape[1], room))):
            space = room - number  # each earlier child takes at least one node
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

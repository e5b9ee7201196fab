"""The most violated antichain constraints for trees of drafts, found without listing the antichains."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.foundation.exact_numbers import plain_number
from spectheory.optima.bounds.context_tree import check_levels
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts import PrefixTree
from spectheory.pairs.drafts.trees import Tree
from spectheory.pairs.pair import ModelPair

MAX_CHOICES = 100_000
"""Largest number of choices of one antichain per child, at a node whose draws are not independent."""
ALONE = -1
"""Entry of ``choices`` for the antichain that consists of the node itself."""


class Candidates(NamedTuple):
    """Antichains T in the subtree of a node.  For every choice outside the subtree one of them is optimal.

    Attributes:
        missed: P(no draft passes through T | the node is drafted), [n].
        mass: Σ_{a∈T} x(a), [n].
        choices: the index of each child's candidate, or ``ALONE``, [n, V].
    """

    missed: np.ndarray
    mass: np.ndarray
    choices: np.ndarray

    def vertices(self) -> Candidates:
        """List the vertices of the points' (missed, mass) upper right hull, by descending ``missed``."""
        kept: list[int] = []
        for one in sorted(range(len(self.mass)), key=lambda n: (-self.missed[n], -self.mass[n])):
            if kept and self.mass[one] <= self.mass[kept[-1]]:
                continue
            while len(kept) > 1 and self._is_below(kept[-2], kept[-1], one):
                kept.pop()
            kept.append(one)
        return Candidates(*(part[kept] for part in self))

    def _is_below(self, first: int, middle: int, last: int) -> bool:
        """True if the middle point is not above the line through the first and the last."""
        steps = [
            (self.missed[a] - self.missed[b], self.mass[b] - self.mass[a])
            for a, b in ((first, middle), (middle, last))
        ]
        return bool(steps[0][1] * steps[1][0] <= steps[1][1] * steps[0][0])


def most_violated_antichains(
    pair: ModelPair, node_masses: Sequence[np.ndarray], process: Tree, most: int = 1
) -> list[tuple[Any, tuple[Context, ...]]]:
    """List antichains T with Σ_{a∈T} x(a) > P(some draft passes through T), by descending violation.

    Source: theory.md Statement 5.32.  The probability that no draft below a node passes through T is a
    polynomial in the children's probabilities with nonnegative coefficients.  So every subtree needs only
    the vertices of the upper hull of (P(missed), Σ x):

    1. At a node choose a vertex of each child.  If the draws are independent, P(missed) is a power of
       Σ_t q(t|a) P(missed below t), and we merge the hulls.  Otherwise we try all choices.
    2. Add the antichain of the node itself.  Keep the vertices.
    3. At the root, try every vertex.

    With rationals it is exact, for any x.

    Args:
        pair: the models; only the draft is used.
        node_masses: x(a) by depth 0..L, arrays [V^depth], in the pair's arithmetic.
        process: a tree of drafts.
        most: return at most this many antichains.

    Returns:
        Pairs (violation > 0, contexts of T); an empty list if no antichain is violated.

    Raises:
        InvalidInputError: wrong shapes or arithmetic, or the process cannot draft from the pair.
        EnumerationTooLargeError: the draws are not independent and have too many tokens.

    Example:
        >>> from fractions import Fraction
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> masses = [np.array([Fraction(1)]), np.array([Fraction(1, 3), Fraction(2, 3)])]
        >>> [(violation, contexts)] = most_violated_antichains(pair, masses, PrefixTree((2,)))
        >>> print(violation, contexts)
        1/9 ((1,),)
    """
    process.check(pair)
    masses, size = check_levels(pair, "node_masses", node_masses), pair.vocab_size
    one = masses[0][0] * 0 + 1
    leaf = Candidates(
        np.array([one, one - one]), np.array([one - one, one]), np.array([[0] * size, [ALONE] * size])
    )
    levels = [[leaf._replace(mass=leaf.mass * mass).vertices() for mass in masses[-1]]]
    for depth in reversed(range(pair.draft_length)):
        below = levels[-1]
        levels.append(
            [
                _at_node(process, depth, row, below[node * size : (node + 1) * size], mass)
                for node, (row, mass) in enumerate(zip(pair.numbers.draft[depth], masses[depth], strict=True))
            ]
        )
    root = levels[-1][0]
    violations = root.mass - (1 - root.missed)
    worst = sorted(range(len(violations)), key=lambda n: -violations[n])[:most]
    return [
        (plain_number(violations[n]), tuple(sorted(_members(pair, levels[::-1], n))))
        for n in worst
        if violations[n] > 0
    ]


def _at_node(process: Tree, depth: int, row: np.ndarray, children: list[Candidates], mass: Any) -> Candidates:
    width = process.widths[depth]
    found = (
        _merged(row, width, children)
        if isinstance(process, PrefixTree)
        else _listed(list(process._children(row, list(np.flatnonzero(row > 0)), width)), children)
    )
    alone = [np.array([mass * 0]), np.array([mass]), np.full((1, len(row)), ALONE)]
    return Candidates(*(np.concatenate(parts) for parts in zip(found, alone, strict=True))).vertices()


def _merged(row: np.ndarray, width: int, children: list[Candidates]) -> Candidates:
    """Merge the candidates below ``width`` independent draws at a node: missed = (Σ_t q_t missed_t)^width."""
    zero = row[0] * 0
    sums = Candidates(np.array([zero]), np.array([zero]), np.zeros((1, 0), dtype=int))
    for prob, child in zip(row, children, strict=True):
        first, second = (part.ravel() for part in np.indices((len(sums.mass), len(child.mass))))
        sums = Candidates(
            sums.missed[first] + prob * child.missed[second],
            sums.mass[first] + child.mass[second],
            np.concatenate([sums.choices[first], second[:, None]], axis=1),
        ).vertices()
    return sums._replace(missed=np.array([missed**width for missed in sums.missed]))


def _listed(draws: list[tuple[Context, Any]], children: list[Candidates]) -> Candidates:
    """List the candidates at a node with any draws: missed = Σ P(tokens) Π_{t in tokens} missed_t."""
    sizes = [len(child.mass) for child in children]
    if prod(sizes) > MAX_CHOICES:
        raise EnumerationTooLargeError(
            f"a node has {prod(sizes)} choices of antichains below it, the limit is {MAX_CHOICES}; "
            "truncate the pair, restrict its tokens, or draw with replacement (prefix_tree)"
        )
    choices = np.indices(sizes).reshape(len(sizes), -1).T
    below = [child.missed[choice] for child, choice in zip(children, choices.T, strict=True)]
    missed = np.sum([prob * prod(below[token] for token in tokens) for tokens, prob in draws], axis=0)
    mass = np.sum([child.mass[choice] for child, choice in zip(children, choices.T, strict=True)], axis=0)
    return Candidates(missed, mass, choices)


def _members(pair: ModelPair, levels: list[list[Candidates]], candidate: int) -> list[Context]:
    found, todo = [], [(0, 0, candidate)]
    while todo:
        depth, node, number = todo.pop()
        choices = levels[depth][node].choices[number]
        if choices[0] == ALONE:
            found.append(pair.context(depth, node))
        elif depth < pair.draft_length:
            todo += [(depth + 1, node * pair.vocab_size + child, int(n)) for child, n in enumerate(choices)]
    return found

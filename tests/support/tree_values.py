"""What other rules than naive sampling earn on a tree of drafts (theory.md Statement 5.28).

``best_shapes`` of the package takes the masses by depth, [contexts, children, V].
"""

from functools import cache
from itertools import product
from typing import Any

import numpy as np

from spectheory.foundation.arrays import after_rejection, normalise
from spectheory.foundation.exact_numbers import plain_number
from spectheory.optima.tree_shapes import Levels, Shape, likeliest_acceptance
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_probs


def profile_levels(profile: list[Any], draft_length: int) -> list[np.ndarray]:
    """The masses of an acceptance profile: child j of any node is the accepted one with probability a_j."""
    return [parse_probs(profile)[None, :, None]] * draft_length


def ranked_acceptance(pair: ModelPair, drafts: str, num_children: int) -> list[np.ndarray]:
    """The masses of children that are judged one after the other, on every context of a pair.

    ``shaped_tree`` has the likeliest next tokens, ``without_replacement`` and ``prefix_tree`` have sampled
    next tokens under multi-round rejection.  In a prefix tree a later child with the accepted token is not
    followed, see ``prefix_tree_value``.
    """
    if drafts == "shaped_tree":
        return likeliest_acceptance(pair, num_children)
    rule = {"without_replacement": _distinct, "prefix_tree": _repeated}[drafts]
    levels = []
    for target, draft in zip(pair.target, pair.draft, strict=False):
        level = np.array([rule(*rows, num_children) for rows in zip(target, draft, strict=True)])
        levels.append(level[:1].sum(axis=2, keepdims=True) if pair.context_free else level)
    return levels


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
            others = np.where(np.arange(len(row)) == token, row * 0, row)
            draw(following, others, prob * (row[token] - accepted[token]), number + 1)

    draw(target, draft, target.sum(), 0)
    return found


def shape_value(levels: Levels, shape: Shape) -> Any:
    """1 + Σ m(r) over the nodes r of a shape, tokens per target call."""

    def below(measure: np.ndarray, depth: int, shape: Shape) -> Any:
        total = measure.sum()
        for number, child in enumerate(shape):
            total += below((measure[:, None] * levels[depth][:, number]).ravel(), depth + 1, child)
        return total

    return plain_number(below(levels[0].ravel()[:1] * 0 + 1, 0, shape))


def prefix_tree_value(pair: ModelPair, shape: Shape) -> Any:
    """E[tau + 1] of multi-round rejection where every node of a shape samples its children independently.

    A later child with the accepted token is drafted at the same context: its children are judged behind those
    of the accepted one.  Given that child j is accepted with token x, every later child has token x with
    probability q(x), independently.
    """
    V = pair.vocab_size

    @cache
    def behind(depth: int, context: int, shape: Shape) -> Any:
        total = pair.target[0][0].sum()
        if not shape:
            return total
        target, draft = pair.target[depth][context], pair.draft[depth][context]
        accepted = _repeated(target, draft, len(shape))
        for number, child in enumerate(shape):
            for token in np.flatnonzero(accepted[number] > 0):
                next_context = 0 if pair.context_free else context * V + int(token)
                for equal in product((False, True), repeat=len(shape) - number - 1):
                    prob, merged = accepted[number, token], child
                    for other, is_equal in zip(shape[number + 1 :], equal, strict=True):
                        prob = prob * (draft[token] if is_equal else 1 - draft[token])
                        merged = (*merged, *other) if is_equal else merged
                    if prob > 0:
                        total = total + prob * behind(depth + 1, next_context, merged)
        return total

    return plain_number(behind(0, 0, shape))

"""The tree of contexts by depth: the probabilities at its nodes, and the passes that all bounds share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import flint_if_exact
from spectheory.optima.bounds.tolerances import rounding_allowance
from spectheory.pairs.contexts import count_nodes
from spectheory.pairs.pair import ModelPair

Levels = list[np.ndarray]
"""One array per depth 0..L, [V^depth] each."""


@dataclass(frozen=True, eq=False)
class ContextTree:
    """p and q at every context of a pair, as python-flint rationals if the pair is exact, else in float64.

    Attributes:
        pair: the models.
        target_rows: p(.|a) by depth 0..L-1, [V^depth, V].
        target_probs, draft_probs: p(a) and q(a) by depth 0..L.
        rounding: relative allowance for the rounding of a float64 sum over all nodes; 0 when exact.
        mismatch: q(a) and the mass of the leaves below a differ at most by the factor 1 + mismatch.  It is
            1/Π_d (1 - δ_d) - 1 with δ_d = max |Σ_x q(x|a) - 1| over the rows of depth d, because the leaves
            have the mass q(a) times one row sum per depth.  For normalised rows it is rounding; 0 when exact.
    """

    pair: ModelPair
    target_rows: Levels
    target_probs: Levels
    draft_probs: Levels
    rounding: float
    mismatch: Any

    @staticmethod
    def of(pair: ModelPair) -> ContextTree:
        numbers, num_nodes = pair.numbers, count_nodes(pair.vocab_size, pair.draft_length)
        return ContextTree(
            pair=pair,
            target_rows=list(numbers.target[:-1]),
            target_probs=list(numbers.target_path_probs[:-1]),
            draft_probs=list(numbers.draft_path_probs),
            rounding=0.0 if pair.is_exact else rounding_allowance(num_nodes),
            mismatch=0 if pair.is_exact else _mismatch(pair),
        )

    @property
    def vocab_size(self) -> int:
        return self.pair.vocab_size

    @property
    def draft_length(self) -> int:
        return self.pair.draft_length


def _mismatch(pair: ModelPair) -> float:
    factor = 1.0
    for depth, rows in enumerate(pair.draft):
        deviation = float(abs(rows.sum(axis=1) - 1.0).max())
        if deviation >= 1.0:
            raise InvalidInputError(
                f"a draft row at depth {depth} has a sum that differs from 1 by {deviation:.3g}; "
                "expected less than 1: normalise the rows"
            )
        factor /= 1.0 - deviation
    return factor - 1.0


def node_probs(pair: ModelPair) -> tuple[np.ndarray, np.ndarray]:
    """Compute p(a) and q(a) at every node, breadth first, each [nodes]."""
    depths = range(pair.draft_length + 1)
    return (
        np.concatenate([pair.target_path_probs(depth) for depth in depths]),
        np.concatenate([pair.draft_path_probs(depth) for depth in depths]),
    )


def sum_over_children(level: np.ndarray, vocab_size: int) -> np.ndarray:
    """Sum over the children of every node, [V^depth] -> [V^(depth-1)]."""
    return level.reshape(-1, vocab_size).sum(axis=1)


def subtree_sums(leaves: np.ndarray, vocab_size: int, draft_length: int) -> Levels:
    """Sum over the leaves below every node, [V^L] -> one array [V^depth] per depth 0..L."""
    levels = [leaves]
    for _ in range(draft_length):
        levels.append(sum_over_children(levels[-1], vocab_size))
    return levels[::-1]


def prefix_sums(levels: Sequence[np.ndarray], vocab_size: int) -> Levels:
    """Sum along the path from the root to every node, by depth.  The last array sums over whole paths."""
    sums = [levels[0]]
    for level in levels[1:]:
        sums.append(np.repeat(sums[-1], vocab_size) + level)
    return sums


def accepted_masses(node_laws: Sequence[np.ndarray], target_rows: Sequence[np.ndarray]) -> Levels:
    """Compute x(a) = min{r(a), p(a_i | a_{1:i-1}) x(a_{1:i-1})} from x(∅) = r(∅) (greedy2026 Eqs. 16, 83).

    x(a) is P(τ ≥ i and X_{1:i} = a) under block verification with draft r.  The recursion equals
    min_{k ≤ i} p(a_{k+1:} | a_{1:k}) r(a_{1:k}).  The sum over all nodes is the block efficiency.

    Args:
        node_laws: r(a) by depth 0..L, [V^depth].  Any ordered number type works if its values can be
            multiplied by a probability on the right.
        target_rows: p(.|a) by depth 0..L-1, [V^depth, V].

    Example:
        >>> laws, rows = [np.ones(1), np.array([0.5, 0.5])], [np.array([[0.25, 0.75]])]
        >>> accepted_masses(laws, rows)[1]
        array([0.25, 0.5 ])
    """
    masses = [node_laws[0]]
    for law, rows in zip(node_laws[1:], target_rows, strict=True):
        masses.append(np.minimum(law, (masses[-1][:, None] * rows).ravel()))
    return masses


def check_levels(
    pair: ModelPair, name: str, levels: Sequence[np.ndarray], nonnegative: bool = False
) -> Levels:
    """Check one array per depth, and convert it to python-flint rationals or float64."""
    if len(levels) != pair.draft_length + 1:
        raise InvalidInputError(
            f"{name} has {len(levels)} depths; expected {pair.draft_length + 1}, one per depth 0..L"
        )
    return [check_level(pair, f"{name}[{i}]", level, i, nonnegative) for i, level in enumerate(levels)]


def check_level(
    pair: ModelPair, name: str, level: np.ndarray, depth: int, nonnegative: bool = False
) -> np.ndarray:
    """Check and convert the array of one depth, as ``check_levels`` does."""
    array, size = np.asarray(level), pair.vocab_size**depth
    if array.shape != (size,):
        raise InvalidInputError(f"{name} has shape {array.shape}; expected ({size},), one per context")
    if (array.dtype == object) != pair.is_exact:
        raise InvalidInputError(
            f"{name} holds {array.dtype} entries but the pair is {pair.arithmetic}; use one kind "
            "(pair.to_float() for floats)"
        )
    array = flint_if_exact(array) if pair.is_exact else array.astype(float)
    allowed = array >= 0 if pair.is_exact else (array >= 0) & np.isfinite(array)
    wrong = np.flatnonzero(~allowed.astype(bool))
    if nonnegative and wrong.size:
        raise InvalidInputError(
            f"{name} is {array[wrong[0]]} at context {pair.context(depth, int(wrong[0]))}; expected a finite "
            "number of at least 0"
        )
    return array

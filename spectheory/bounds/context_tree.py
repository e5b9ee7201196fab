"""The full tree of contexts in float64, by depth, with the passes that both bounds are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectheory.contexts import count_nodes
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.solving.float_solver import MACHINE_EPSILON

Levels = list[np.ndarray]
"""One array per depth 0..L, [V^depth] each."""


@dataclass(frozen=True, eq=False)
class ContextTree:
    """p and q at every context.

    Attributes:
        pair: the models, as given.
        vocab_size, draft_length: V and L.
        target_conditionals: p(x|a) at node (a, x), by depth 0..L; 1 at the root.
        target_probs, draft_probs: p(a) and q(a) by depth 0..L.
        rounding: 4 ε (nodes + 16), ε = 2^-52: a relative error that covers the rounding of the path
            probabilities, of f, and of every sum and cumulative sum of nonnegative numbers below.
        mismatch: 1/Π_d (1 - δ_d) - 1 with δ_d = max |Σ_x q(x|a) - 1| over the rows of depth d.  The sum
            of q over the leaves below a is q(a) times one row sum per depth, each within [1 - δ_d, 1 + δ_d],
            so neither of the two exceeds the other by a larger factor than 1 + mismatch.  Rounding for
            normalised rows, up to about L times the pair's row tolerance otherwise.
    """

    pair: ModelPair
    vocab_size: int
    draft_length: int
    target_conditionals: Levels
    target_probs: Levels
    draft_probs: Levels
    rounding: float
    mismatch: float

    @staticmethod
    def of(pair: ModelPair) -> ContextTree:
        """The tree of a pair; an exact pair is converted to float64.

        Raises:
            InvalidInputError: a draft row whose sum is off by 1 or more, as a wide row_sum_tolerance allows.
        """
        models = pair.to_float()
        V, L = models.vocab_size, models.draft_length
        mismatch = 1.0
        for depth, rows in enumerate(models.draft):
            deviation = float(abs(rows.sum(axis=1) - 1.0).max())
            if deviation >= 1.0:
                raise InvalidInputError(
                    f"a draft row at depth {depth} has a sum that differs from 1 by {deviation:.3g}; "
                    "expected less than 1: normalise the rows"
                )
            mismatch /= 1.0 - deviation
        return ContextTree(
            pair=pair,
            vocab_size=V,
            draft_length=L,
            target_conditionals=[np.ones(1), *(models.target[depth].ravel() for depth in range(L))],
            target_probs=[models.target_path_probs(depth) for depth in range(L + 1)],
            draft_probs=[models.draft_path_probs(depth) for depth in range(L + 1)],
            rounding=4 * MACHINE_EPSILON * (count_nodes(V, L) + 16),
            mismatch=mismatch - 1.0,
        )

    def from_children(self, level: np.ndarray) -> np.ndarray:
        """The sum over the children of every node, [V^depth] -> [V^(depth-1)]."""
        return level.reshape(-1, self.vocab_size).sum(axis=1)

    def from_parents(self, level: np.ndarray) -> np.ndarray:
        """The parent's entry at every node, [V^depth] -> [V^(depth+1)]."""
        return np.repeat(level, self.vocab_size)

    def subtree_sums(self, leaves: np.ndarray) -> Levels:
        """The sum over the leaves below every node, by depth."""
        levels = [leaves]
        for _ in range(self.draft_length):
            levels.append(self.from_children(levels[-1]))
        return levels[::-1]

    def path_sums(self, levels: Sequence[np.ndarray]) -> np.ndarray:
        """The sum along the path to every leaf, [V^L]."""
        total = levels[0]
        for level in levels[1:]:
            total = self.from_parents(total) + level
        return total

    def block_verification_masses(self, skewed: Sequence[np.ndarray]) -> Levels:
        """x(a) = min{r(a), p(a_i | a_{1:i-1}) x(a_{1:i-1})}, x(∅) = 1: block verification with draft r.

        Unrolled, x(a) = min_k p(a_{k+1:} | a_{1:k}) r(a_{1:k}): the closed form of block efficiency.
        """
        masses = [np.ones(1)]
        for depth in range(1, self.draft_length + 1):
            proposed = self.target_conditionals[depth] * self.from_parents(masses[-1])
            masses.append(np.minimum(skewed[depth], proposed))
        return masses

    def required_prices(self, target_prices: Sequence[np.ndarray]) -> Levels:
        """1 + Σ_x p(x|a) z(a, x) by depth: what y(a) + z(a) must reach."""
        required = [np.ones(self.vocab_size**depth) for depth in range(self.draft_length + 1)]
        for depth in range(self.draft_length):
            carried = self.target_conditionals[depth + 1] * target_prices[depth + 1]
            required[depth] += self.from_children(carried)
        return required

    def draft_prices(self, target_prices: Sequence[np.ndarray]) -> Levels:
        """The least y ≥ 0 with y(a) + z(a) ≥ 1 + Σ_x p(x|a) z(a, x)."""
        required = self.required_prices(target_prices)
        return [np.maximum(need - z, 0.0) for need, z in zip(required, target_prices, strict=True)]

    def check_levels(self, name: str, levels: Sequence[np.ndarray]) -> Levels:
        """The arrays as float64.

        Raises:
            InvalidInputError: not one array of V^depth finite, nonnegative numbers per depth 0..L.
        """
        if len(levels) != self.draft_length + 1:
            raise InvalidInputError(
                f"{name} has {len(levels)} depths; expected {self.draft_length + 1}, one per depth 0..L"
            )
        return [self.check_level(f"{name}[{i}]", level, i) for i, level in enumerate(levels)]

    def check_level(self, name: str, level: np.ndarray, depth: int) -> np.ndarray:
        """One array as float64.

        Raises:
            InvalidInputError: not V^depth finite, nonnegative numbers.
        """
        array = np.asarray(level, dtype=float)
        size = self.vocab_size**depth
        if array.shape != (size,):
            raise InvalidInputError(f"{name} has shape {array.shape}; expected ({size},), one per context")
        wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
        if wrong.size:
            context = self.pair.context(depth, int(wrong[0]))
            raise InvalidInputError(
                f"{name} is {array[wrong[0]]} at context {context}; expected a finite number of at least 0"
            )
        return array

"""What a skewed draft is worth: the objective of greedy2026 Theorem 4.6 and its bound, Lemma 4.7."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.arrays import is_exact, to_fraction
from spectheory.bounds.skewed_draft import SkewedDraft
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.rows import parse_probs


def skewed_draft_objective(pair: ModelPair, leaf_probs: np.ndarray | list[Any]) -> Any:
    """The block efficiency of block verification on a path drawn from a skewed draft.

    Source: greedy2026 Eq. 16, with r = q^Γ the law of the path that a selection rule takes,

        Σ_{a ∈ V^{≤L}} m(a),  m(a_{1:i}) = min_{0≤k≤i} p(a_{k+1:i} | a_{1:k}) r(a_{1:k}),

    computed down the tree: m(∅) = 1, m(a_{1:i}) = min{r(a_{1:i}), p(a_i | a_{1:i-1}) m(a_{1:i-1})}.

    Args:
        pair: the models; only the target is used.
        leaf_probs: r at the V^L paths, [V^L], in the arithmetic of the pair.

    Returns:
        The objective (tokens per target call), a Fraction for an exact pair.

    Raises:
        InvalidInputError: not a distribution over the paths, or of another arithmetic.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> print(skewed_draft_objective(pair, ["4/9", "5/9"]))
        17/9
    """
    return _plain(_checked(pair, leaf_probs).block_efficiency(pair))


def skewed_draft_bound(pair: ModelPair, leaf_probs: np.ndarray | list[Any]) -> Any:
    """A lower bound on ``skewed_draft_objective``.

    Source: greedy2026 Lemma 4.7,

        (L + 1) min_{a ∈ V^{≤L}} r(a) / p(a)                                       (18)

    over the contexts with p(a) > 0; the others have no part in the objective.  It is L + 1, and
    attained, when r = p.

    Args:
        pair: the models; only the target is used.
        leaf_probs: r at the V^L paths, [V^L], in the arithmetic of the pair.

    Returns:
        The bound (tokens per target call), a Fraction for an exact pair.

    Raises:
        InvalidInputError: not a distribution over the paths, or of another arithmetic.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> print(skewed_draft_bound(pair, ["4/9", "5/9"]))
        5/3
    """
    skewed = np.concatenate(_checked(pair, leaf_probs).node_laws)
    target = np.concatenate([pair.target_path_probs(depth) for depth in range(pair.draft_length + 1)])
    present = target > 0
    return _plain((pair.draft_length + 1) * np.min(skewed[present] / target[present]))


def _checked(pair: ModelPair, leaf_probs: np.ndarray | list[Any], sum_tolerance: float = 1e-9) -> SkewedDraft:
    """r, once it is a distribution over the paths in the arithmetic of the pair."""
    leaves = parse_probs(list(leaf_probs))
    count = pair.vocab_size**pair.draft_length
    if leaves.shape != (count,):
        raise InvalidInputError(f"leaf_probs has shape {leaves.shape}; expected ({count},), one per path")
    if is_exact(leaves) != pair.is_exact:
        raise InvalidInputError(
            f"leaf_probs holds {leaves.dtype} entries but the pair is {pair.arithmetic}; use one kind"
        )
    allowed = 0 if pair.is_exact else sum_tolerance
    if not (bool((leaves >= 0).all()) and bool(abs(leaves.sum() - 1) <= allowed)):
        raise InvalidInputError(f"leaf_probs must be ≥ 0 and sum to 1, got the sum {leaves.sum()}")
    return SkewedDraft.from_leaf_law(pair, leaves)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, (float, np.floating)) else to_fraction(value)

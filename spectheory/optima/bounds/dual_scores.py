"""The dual of the multi-path program: path scores that bound every valid verifier from above.

Source: theory.md Statement 5.13, the dual of greedy2026 Theorem 4.3 in the node masses x(a) = D(a) p(a).
Every context a has a *score* y(a) ≥ 0 and a *slack* z(a) ≥ 0.  They are feasible if

    y(a) + z(a) ≥ 1 + Σ_x p(x|a) z(a,x)   for all a ∈ V^{≤L}, without the sum at depth L.

The path scores are c(a_{1:L}) = Σ_{i=0..L} y(a_{1:i}).  Every valid verifier of K i.i.d. drafts satisfies

    E[τ+1] ≤ z(∅) + E[max_k c(X^(k))],

and ``upper_bound`` returns the right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import hit_probability, ones_like, positive_part
from spectheory.foundation.errors import InfeasiblePointError
from spectheory.foundation.exact_numbers import float_tolerance, fractions_if_exact, plain_number
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.context_tree import (
    ContextTree,
    Levels,
    accepted_masses,
    check_levels,
    prefix_sums,
    subtree_sums,
)
from spectheory.optima.bounds.tolerances import FEASIBILITY_TOLERANCE, TIE_TOLERANCE
from spectheory.pairs.pair import ModelPair


def needed_scores(tree: ContextTree, slacks: Levels) -> Levels:
    """Compute 1 + Σ_x p(x|a) z(a,x) by depth, and 1 at depth L: the smallest feasible y(a) + z(a)."""
    needed = [_needed(rows, level) for rows, level in zip(tree.target_rows, slacks[1:], strict=True)]
    return [*needed, tree.draft_probs[-1] * 0 + 1]


def _needed(target_rows: np.ndarray, child_slacks: np.ndarray) -> np.ndarray:
    return 1 + (target_rows * child_slacks.reshape(target_rows.shape)).sum(axis=-1)


def least_scores(tree: ContextTree, slacks: Levels) -> Levels:
    """Compute the smallest scores y ≥ 0, by depth, that are feasible with the given slacks z."""
    return [positive_part(need - z) for need, z in zip(needed_scores(tree, slacks), slacks, strict=True)]


def slacks_from_leaves(tree: ContextTree, slack_of: Callable[[int, np.ndarray], np.ndarray]) -> Levels:
    """Compute z by depth, from the leaves up: z(a) = slack_of(depth, 1 + Σ_x p(x|a) z(a,x))."""
    slacks = [slack_of(tree.draft_length, tree.draft_probs[-1] * 0 + 1)]
    for depth in reversed(range(tree.draft_length)):
        slacks.append(slack_of(depth, _needed(tree.target_rows[depth], slacks[-1])))
    return slacks[::-1]


def slacks_of_shares(tree: ContextTree, shares: Sequence[np.ndarray]) -> Levels:
    """Compute z(a) = u(a) (1 + Σ_x p(x|a) z(a,x)) by depth.

    The shares u in [0, 1] are given by depth 0..L, as numbers or booleans.
    """
    return slacks_from_leaves(tree, lambda depth, needed: shares[depth] * needed)


def block_verification_slacks(tree: ContextTree, skewed_draft: np.ndarray) -> Levels:
    """Compute the slacks of block verification with draft r, [V^L].

    The share u(a) of ``slacks_of_shares`` is 1 if p(a_i | a_{1:i-1}) x(a_{1:i-1}) ≤ r(a), else 0.  In float64
    we compare up to rounding, because the two sides are equal for equal models.  For K = 1 and r = q the
    slacks are optimal: the upper bound is the block efficiency of block verification.
    """
    laws = subtree_sums(skewed_draft, tree.vocab_size, tree.draft_length)
    masses = accepted_masses([ones_like(laws[0]), *laws[1:]], tree.target_rows)
    tie = 1 if tree.pair.is_exact else 1.0 + TIE_TOLERANCE
    shares: list[np.ndarray] = [np.zeros(1, dtype=int)]
    for law, mass, rows in zip(laws[1:], masses, tree.target_rows, strict=False):
        shares.append(((mass[:, None] * rows).ravel() <= law * tie).astype(int))
    return slacks_of_shares(tree, shares)


class ScoreChain(NamedTuple):
    """The level sets of path scores c, largest first: nested leaf sets S_1 ⊂ S_2 ⊂ ..

    Attributes:
        draft_mass: q(S_i), [M].
        drop: the fall of the score after S_i, c_i - c_{i+1} ≥ 0, with c_{M+1} = 0, [M].
        largest: c_1, the largest path score.
    """

    draft_mass: np.ndarray
    drop: np.ndarray
    largest: Any

    @staticmethod
    def of(scores: np.ndarray, draft_probs: np.ndarray) -> ScoreChain:
        """Sort the leaves by their path scores c.  c and q are [M] and have the same arithmetic."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        after = np.concatenate([ordered[1:], ordered[:1] * 0])
        return ScoreChain(draft_probs[order].cumsum(), ordered - after, ordered[0])

    def expected_maximum(self, num_drafts: int) -> Any:
        """Compute E[max_k c(X_k)] = Σ_i (c_i - c_{i+1}) f(q(S_i)), K i.i.d. draws X_k, f(u) = 1 - (1 - u)^K.

        For the set of all leaves we use f = 1.

        Example:
            >>> print(ScoreChain.of(np.array([0.0, 1.0]), np.array([0.5, 0.5])).expected_maximum(2))
            0.75
        """
        limits = hit_probability(self.draft_mass[:-1], num_drafts)
        return self.drop @ np.concatenate([limits, self.draft_mass[:1] * 0 + 1])


class CertifiedUpperBound(NamedTuple):
    """An upper bound, rounded outward, with its proof: y, z, and the level sets of the path scores."""

    value: float
    scores: Levels
    slacks: Levels
    chain: ScoreChain


class _Point(NamedTuple):
    """Scores y and slacks z with y(a) + z(a) ≥ 1 + Σ_x p(x|a) z(a,x) - ``shortfall`` at every context a."""

    scores: Levels
    slacks: Levels
    shortfall: Any


def upper_bound(
    pair: ModelPair,
    num_drafts: int,
    scores: Sequence[np.ndarray],
    slacks: Sequence[np.ndarray] | None = None,
) -> Any:
    """Compute z(∅) + E[max_k c(X^(k))], an upper bound on every valid verifier of i.i.d. paths.

    It is the objective of the dual at a feasible point.  A float64 point may violate the conditions by 1e-9.
    We then return the value of a nearby feasible point.

    Args:
        pair: the models.
        num_drafts: K.
        scores: y by depth 0..L, arrays [V^depth], in the arithmetic of the pair.
        slacks: z, as arrays like the scores.  None means z(a) = 1 + Σ_x p(x|a) z(a,x) - y(a), which must be
            ≥ 0, and 0 at the root.

    Returns:
        Tokens per target call.  A Fraction is a proof; a float is correct up to rounding.

    Raises:
        InfeasiblePointError: the point is not feasible; the text names the condition and the context.
        InvalidInputError: wrong shapes or arithmetic, negative or infinite entries, or invalid num_drafts.

    Example:
        >>> from fractions import Fraction
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> scores = [np.array([Fraction(4, 3)]), np.array([Fraction(0), Fraction(1)])]
        >>> print(upper_bound(pair, 2, scores))
        17/9
    """
    num_drafts = check_num_drafts(num_drafts)
    tree = ContextTree.of(pair)
    point = _checked_point(tree, scores, slacks, float_tolerance(pair, FEASIBILITY_TOLERANCE))
    value = _chain(tree, point.scores).expected_maximum(num_drafts) + point.slacks[0][0]
    return plain_number(value / (1 - point.shortfall))


def certified_upper_bound(
    pair: ModelPair,
    num_drafts: int,
    scores: Sequence[np.ndarray],
    slacks: Sequence[np.ndarray] | None = None,
) -> float:
    """Compute the bound of ``upper_bound`` as a certified float, rounded outward (tokens per target call).

    It is at most L + 1.  Like ``upper_bound`` it allows for a point that is only nearly feasible.

    Args:
        pair, scores, slacks: as in ``upper_bound``; exact numbers are converted to float64, and the bound
            allows for that.
        num_drafts: K.

    Raises:
        InfeasiblePointError, InvalidInputError: as in ``upper_bound``.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> bound = certified_upper_bound(pair, 2, [np.array([4 / 3]), np.array([0.0, 1.0])])
        >>> bound > 17 / 9, round(bound, 9)
        (True, 1.888888889)
    """
    num_drafts = check_num_drafts(num_drafts)
    tree = ContextTree.of(pair.to_float())
    y = [np.asarray(level, dtype=float) for level in scores]
    z = None if slacks is None else [np.asarray(level, dtype=float) for level in slacks]
    bound = _certified(tree, num_drafts, _checked_point(tree, y, z, FEASIBILITY_TOLERANCE))
    return min(float(bound.value), pair.draft_length + 1.0)


def certified_bound_of_slacks(tree: ContextTree, num_drafts: int, slacks: Levels) -> CertifiedUpperBound:
    """Compute ``certified_upper_bound`` on a float64 tree, from slacks z ≥ 0 and their least scores."""
    return _certified(tree, num_drafts, _Point(least_scores(tree, slacks), slacks, 0.0))


def _certified(tree: ContextTree, num_drafts: int, point: _Point) -> CertifiedUpperBound:
    """Compute the bound on a float64 tree, rounded outward.

    - The limit of an antichain T is f(q(T)).  The leaves S below T have q(T) ≤ (1 + mismatch) q(S), and
      f(d u) ≤ d f(u) for d ≥ 1.
    - If y + z is too small by at most t < 1, then y / (1 - t) and z / (1 - t) are feasible.
    - The rounding allowance is relative to the largest path score plus z(∅), which bounds every sum.
    """
    chain, root = _chain(tree, point.scores), float(point.slacks[0][0])
    value = (1.0 + tree.mismatch) * float(chain.expected_maximum(num_drafts)) + root
    value = value / (1.0 - point.shortfall) + tree.rounding * (float(chain.largest) + root)
    return CertifiedUpperBound(value, point.scores, point.slacks, chain)


def _chain(tree: ContextTree, scores: Levels) -> ScoreChain:
    return ScoreChain.of(prefix_sums(scores, tree.vocab_size)[-1], tree.draft_probs[-1])


def feasible_scores(pair: ModelPair, scores: Sequence[np.ndarray]) -> Levels:
    """Clip scores to 0 ≤ y(a) ≤ 1 + Σ_x p(x|a) z(a,x), from the leaves up, so that they are feasible.

    The root gets y(∅) = 1 + Σ_x p(x) z(x), so that z(∅) = 0.  Feasible scores are returned unchanged.

    Args:
        pair: the models.
        scores: y(a) by depth 0..L, arrays [V^depth], in the arithmetic of the pair.

    Raises:
        InvalidInputError: wrong shapes or arithmetic.

    Example:
        >>> pair = ModelPair.context_free_pair([0.5, 0.5], [0.25, 0.75], draft_length=1)
        >>> [level.tolist() for level in feasible_scores(pair, [np.zeros(1), np.array([2.0, 0.5])])]
        [[1.25], [1.0, 0.5]]
    """
    point = _clipped(ContextTree.of(pair), check_levels(pair, "scores", scores))
    return [fractions_if_exact(level) for level in point.scores]


def _clipped(tree: ContextTree, scores: Levels) -> _Point:
    """Compute the clipped ``feasible_scores``, and their slacks z(a) = 1 + Σ_x p(x|a) z(a,x) - y(a)."""

    def clipped(depth: int, needed: np.ndarray) -> np.ndarray:
        return positive_part(np.minimum(scores[depth], needed)) if depth else needed

    slacks = slacks_from_leaves(tree, lambda depth, needed: needed - clipped(depth, needed))
    return _Point([clipped(*pair) for pair in enumerate(needed_scores(tree, slacks))], slacks, 0)


def _checked_point(
    tree: ContextTree,
    scores: Sequence[np.ndarray],
    slacks: Sequence[np.ndarray] | None,
    tolerance: float,
) -> _Point:
    """Check the conditions up to the tolerance, and return the point.

    If no slacks are given, the scores are clipped.
    """
    if slacks is None:
        y = check_levels(tree.pair, "scores", scores)
        point = _clipped(tree, y)
        # an entry that clipping changed violates y ≥ 0, z ≥ 0 or z(∅) = 0
        for depth, needed in reversed(list(enumerate(needed_scores(tree, point.slacks)))):
            excess = y[depth] - point.scores[depth]
            if depth:
                text = (
                    "z(a) = 1 + Σ_x p(x|a) z(a,x) - y(a) >= 0, got y(a) = {0} above {1} at context {context}"
                )
                _refuse(tree, depth, -excess, tolerance, "y(a) >= 0, got {0} at context {context}", y[depth])
                _refuse(tree, depth, excess, tolerance, text, y[depth], needed)
            else:
                text = "z(∅) = 1 + Σ_x p(x) z(x) - y(∅) = 0, got y(∅) = {0}, expected {1}"
                _refuse(tree, depth, abs(excess), tolerance, text, y[depth], needed)
        return point
    y = check_levels(tree.pair, "scores", scores, nonnegative=True)
    z = check_levels(tree.pair, "slacks", slacks, nonnegative=True)
    shortfall = y[0][0] * 0
    text = "y(a) + z(a) >= 1 + Σ_x p(x|a) z(a,x), got {0} at context {context}, expected at least {1}"
    for depth, needed in enumerate(needed_scores(tree, z)):
        short = needed - y[depth] - z[depth]
        _refuse(tree, depth, short, tolerance, text, y[depth] + z[depth], needed)
        shortfall = max(shortfall, np.max(short))
    return _Point(y, z, shortfall)


def _refuse(
    tree: ContextTree, depth: int, violation: np.ndarray, tolerance: float, text: str, *shown: np.ndarray
) -> None:
    """Raise for the largest violation above the tolerance.  NaN counts as a violation."""
    wrong = np.flatnonzero(~(violation <= tolerance).astype(bool))
    if wrong.size:
        worst = wrong[np.argmax(violation[wrong])]
        context = tree.pair.context(depth, int(worst))
        condition = text.format(*(level[worst] for level in shown), context=context)
        raise InfeasiblePointError(
            f"the scores are not feasible: {condition}; see feasible_scores",
            (context,),
            float(plain_number(violation[worst])),
        )

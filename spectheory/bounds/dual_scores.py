"""The dual of the multi-path program: path scores that bound every valid verifier from above.

Source: the dual of greedy2026 Theorem 4.3 in the node masses x(a) = D(a) p(a) (theory.md §5; not in the
paper).  Every context a has a *score* y(a) ≥ 0 and a *slack* z(a) ≥ 0.  They are feasible if

    y(a) + z(a) ≥ 1 + Σ_x p(x|a) z(a,x)   for all a ∈ V^{≤L}, without the sum at depth L.

A path has the score c(a_{1:L}) = Σ_{i=0..L} y(a_{1:i}).  Then every valid verifier of K i.i.d. drafted paths
X^(1), .., X^(K) satisfies

    E[τ+1] = Σ_a x(a) ≤ z(∅) + Σ_a y(a) x(a) ≤ z(∅) + E[max_k c(X^(k))].

- The first step uses target matching: x(∅) = 1 and x(a,x) ≤ p(x|a) x(a).
- The second uses prefix matching, Σ_{a∈T} x(a) ≤ f(q(T)) for antichains T.  The contexts at which the score
  of a path first exceeds t are an antichain T_t.  Its mass q(T_t) is that of the paths with c > t.  So
  Σ_a y(a) x(a) = ∫ Σ_{a∈T_t} x(a) dt ≤ ∫ f(q{c > t}) dt, which is the expected maximum of K draws.

The right side is the ``dual_objective``.  The bound is the smaller one of it and L + 1, which no verifier
exceeds.  There are three readings of it.  ``upper_bound`` of an exact pair is a Fraction and a proof.
``upper_bound`` of a float pair is a float up to rounding.  ``certified_upper_bound`` is a float that is a
proof, rounded outward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from spectheory.arrays import Array, hit_probability, namespace, ones_like, positive_part
from spectheory.bounds.context_tree import (
    ContextTree,
    Levels,
    accepted_masses,
    check_levels,
    prefix_sums,
    subtree_sums,
)
from spectheory.bounds.tolerances import FEASIBILITY_TOLERANCE, TIE_TOLERANCE
from spectheory.contexts import Context, all_contexts
from spectheory.errors import InfeasiblePointError, InvalidInputError
from spectheory.exact_numbers import float_tolerance, fractions_if_exact, plain_number
from spectheory.pair import ModelPair
from spectheory.validate import check_confidence, check_num_drafts

# --------------------------------------------------------------------------- the conditions


def needed_score(target_rows: Array, child_slacks: Array) -> Array:
    """1 + Σ_x p(x|a) z(a,x): what y(a) + z(a) must reach.  [..., V], [..., V] -> [...]

    Example:
        >>> float(needed_score(np.array([0.25, 0.75]), np.array([1.0, 2.0])))
        2.75
    """
    return 1 + namespace(target_rows).sum(target_rows * child_slacks, axis=-1)


def needed_scores(tree: ContextTree, slacks: Levels) -> Levels:
    """``needed_score`` at every context, by depth; 1 at depth L."""
    below = zip(tree.target_rows, slacks[1:], strict=True)
    needed = [needed_score(rows, level.reshape(rows.shape)) for rows, level in below]
    return [*needed, tree.draft_probs[-1] * 0 + 1]


def least_scores(tree: ContextTree, slacks: Levels) -> Levels:
    """The least scores y ≥ 0 that go with given slacks, by depth."""
    return [positive_part(need - z) for need, z in zip(needed_scores(tree, slacks), slacks, strict=True)]


def slacks_from_leaves(tree: ContextTree, slack_of: Callable[[int, np.ndarray], np.ndarray]) -> Levels:
    """z by depth, from the leaves up: z(a) = slack_of(depth, 1 + Σ_x p(x|a) z(a,x))."""
    slacks = [slack_of(tree.draft_length, tree.draft_probs[-1] * 0 + 1)]
    for depth in reversed(range(tree.draft_length)):
        rows = tree.target_rows[depth]
        slacks.append(slack_of(depth, needed_score(rows, slacks[-1].reshape(rows.shape))))
    return slacks[::-1]


def slacks_of_shares(tree: ContextTree, shares: Sequence[np.ndarray]) -> Levels:
    """z(a) = u(a) (1 + Σ_x p(x|a) z(a,x)): the slack takes the share u(a) of what is needed.

    ``least_scores`` takes the rest.  So any shares in [0, 1] give a feasible point.

    Args:
        tree: the tree.
        shares: u by depth 0..L, [V^depth], numbers or truth values.
    """
    return slacks_from_leaves(tree, lambda depth, needed: shares[depth] * needed)


def block_verification_slacks(tree: ContextTree, skewed_draft: np.ndarray) -> Levels:
    """The slacks that belong to block verification with draft r: share 1 where the target limits it.

    That is where p(a_i | a_{1:i-1}) x(a_{1:i-1}) ≤ r(a), in float64 up to rounding: with equal models the two
    agree.  For K = 1 and r = q they are optimal: the upper bound is block verification's efficiency.
    """
    laws = subtree_sums(skewed_draft, tree.vocab_size, tree.draft_length)
    masses = accepted_masses([ones_like(laws[0]), *laws[1:]], tree.target_rows)
    tie = 1 if tree.pair.is_exact else 1.0 + TIE_TOLERANCE
    shares: list[np.ndarray] = [np.zeros(1, dtype=int)]
    for law, mass, rows in zip(laws[1:], masses, tree.target_rows, strict=False):
        shares.append(((mass[:, None] * rows).ravel() <= law * tie).astype(int))
    return slacks_of_shares(tree, shares)


# ---------------------------------------------------------------------------- the bound


class ScoreChain(NamedTuple):
    """The level sets of path scores c, largest first: nested leaf sets S_1 ⊂ S_2 ⊂ ..

    Attributes:
        draft_mass: q(S_i), [M].
        drop: how far the score falls after S_i, c_i - c_{i+1} ≥ 0, with c = 0 after the last, [M].
        largest: c_1.
    """

    draft_mass: np.ndarray
    drop: np.ndarray
    largest: Any

    @staticmethod
    def of(scores: np.ndarray, draft_probs: np.ndarray) -> ScoreChain:
        """One sort of the leaves; c and q are [M], of one arithmetic."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        after = np.concatenate([ordered[1:], ordered[:1] * 0])
        return ScoreChain(draft_probs[order].cumsum(), ordered - after, ordered[0])

    def expected_maximum(self, num_drafts: int) -> Any:
        """E[max_k c(X_k)] = Σ_i (c_i - c_{i+1}) f(q(S_i)) for K i.i.d. draws; the whole has f = 1.

        Example:
            >>> print(ScoreChain.of(np.array([0.0, 1.0]), np.array([0.5, 0.5])).expected_maximum(2))
            0.75
        """
        limits = hit_probability(self.draft_mass[:-1], num_drafts)
        return self.drop @ np.concatenate([limits, self.draft_mass[:1] * 0 + 1])


class CertifiedUpperBound(NamedTuple):
    """An upper bound, rounded outward, with the point and the chain of leaf sets behind it.

    Attributes:
        value: tokens per target call.
        scores, slacks: y and z by depth.
        chain: the level sets of the path scores.
    """

    value: float
    scores: Levels
    slacks: Levels
    chain: ScoreChain


class _Point(NamedTuple):
    """Feasible scores and slacks, up to ``shortfall``: y + z ≥ 1 + Σ p z - shortfall everywhere."""

    scores: Levels
    slacks: Levels
    shortfall: Any


def dual_objective(
    pair: ModelPair,
    num_drafts: int,
    scores: Sequence[np.ndarray],
    slacks: Sequence[np.ndarray] | None = None,
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> Any:
    """z(∅) + E[max_k c(X^(k))] for K i.i.d. drafted paths: the objective of the dual at a feasible point.

    One pass up the tree, and one sort of the leaves.

    Args:
        pair: the models.
        num_drafts: K.
        scores: y by depth 0..L, arrays [V^depth], in the arithmetic of the pair.
        slacks: z likewise.  ``None`` takes z(a) = 1 + Σ_x p(x|a) z(a,x) - y(a), which must be ≥ 0, and 0 at
            the root.
        tolerance: in float64, how far the point may be from feasible; the value is that of a nearby point
            that is.  An exact point must be feasible exactly.

    Returns:
        Tokens per target call: a Fraction for an exact pair, or a float up to rounding.

    Raises:
        InfeasiblePointError: the point is not feasible; the text names the condition and the context.
        InvalidInputError: wrong shapes or arithmetic, negative or infinite entries, or a bad num_drafts.

    Example:
        >>> pair = ModelPair.context_free_pair([0.25, 0.75], [0.75, 0.25], draft_length=1)
        >>> dual_objective(pair, 2, [np.ones(1), np.ones(2)])
        2.0
        >>> dual_objective(pair, 2, [np.array([2.0]), np.zeros(2)], [np.zeros(1), np.ones(2)])
        2.0
    """
    num_drafts = check_num_drafts(num_drafts)
    tree = ContextTree.of(pair)
    point = _checked_point(tree, scores, slacks, float_tolerance(pair, tolerance))
    value = _chain(tree, point.scores).expected_maximum(num_drafts) + point.slacks[0][0]
    return plain_number(value / (1 - point.shortfall))


def upper_bound(
    pair: ModelPair,
    num_drafts: int,
    scores: Sequence[np.ndarray],
    slacks: Sequence[np.ndarray] | None = None,
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> Any:
    """An upper bound on the block efficiency of every valid verifier: ``dual_objective``, at most L + 1.

    Args and errors are those of ``dual_objective``.

    Returns:
        Tokens per target call: a Fraction that is a proof, or a float up to rounding.

    Example:
        >>> from fractions import Fraction
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> scores = [np.array([Fraction(4, 3)]), np.array([Fraction(0), Fraction(1)])]
        >>> print(upper_bound(pair, 2, scores))
        17/9
    """
    value = dual_objective(pair, num_drafts, scores, slacks, tolerance)
    return min(value, type(value)(pair.draft_length + 1))


def certified_upper_bound(
    pair: ModelPair,
    num_drafts: int,
    scores: Sequence[np.ndarray],
    slacks: Sequence[np.ndarray] | None = None,
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> float:
    """The bound of ``upper_bound`` as a float that is a proof, rounded outward.

    Args:
        pair, scores, slacks: as in ``upper_bound``; exact numbers are converted to float64, and the bound
            allows for that.
        num_drafts: K.
        tolerance: how far the point may be from feasible; the bound makes up for it.

    Returns:
        The bound in tokens per target call.

    Raises:
        InfeasiblePointError, InvalidInputError: as ``upper_bound``.

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
    bound = _certified(tree, num_drafts, _checked_point(tree, y, z, tolerance))
    return min(float(bound.value), pair.draft_length + 1.0)


def certified_bound_of_slacks(tree: ContextTree, num_drafts: int, slacks: Levels) -> CertifiedUpperBound:
    """The bound of ``certified_upper_bound`` on a float64 tree, with the least scores that go with z ≥ 0."""
    return _certified(tree, num_drafts, _Point(least_scores(tree, slacks), slacks, 0.0))


def _certified(tree: ContextTree, num_drafts: int, point: _Point) -> CertifiedUpperBound:
    """Rounded outward, for a float64 tree.

    - Antichain limits are f(q(T)).  The leaves S below T have q(T) ≤ (1 + mismatch) q(S), and
      f(d u) ≤ d f(u) for d ≥ 1.
    - If y + z falls short by at most t < 1, all of y and z divided by 1 - t do not.
    - The rounding allowance is relative to the largest path score plus z(∅), which no sum exceeds.
    """
    chain, root = _chain(tree, point.scores), float(point.slacks[0][0])
    value = (1.0 + tree.mismatch) * float(chain.expected_maximum(num_drafts)) + root
    value = value / (1.0 - point.shortfall) + tree.rounding * (float(chain.largest) + root)
    return CertifiedUpperBound(value, point.scores, point.slacks, chain)


def _chain(tree: ContextTree, scores: Levels) -> ScoreChain:
    return ScoreChain.of(prefix_sums(scores, tree.vocab_size)[-1], tree.draft_probs[-1])


# --------------------------------------------------------------------- feasible points


def feasible_scores(pair: ModelPair, scores: Sequence[np.ndarray]) -> Levels:
    """The feasible scores next to given ones: clipped to 0 ≤ y(a) ≤ 1 + Σ_x p(x|a) z(a,x), leaves first.

    At the root they are 1 + Σ_x p(x) z(x), so that no slack is left.  Feasible scores are returned unchanged.

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
    """The scores of ``feasible_scores`` and their slacks z = 1 + Σ p z - y."""

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
    """The point given, or a feasible one within the tolerance of it."""
    if slacks is None:
        y = check_levels(tree.pair, "scores", scores)
        point = _clipped(tree, y)
        # whatever clipping moved breaks y, z ≥ 0 or z(∅) = 0
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
    """Raise for the worst entry above the tolerance; a NaN is one."""
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


# -------------------------------------------------------------- path scores and their maxima


def path_scores(pair: ModelPair, scores: Sequence[np.ndarray]) -> np.ndarray:
    """c(a_{1:L}) = Σ_{i=0..L} y(a_{1:i}) at every path, [V^L]."""
    return prefix_sums(scores, pair.vocab_size)[-1]


class SampledBound(NamedTuple):
    """A Monte Carlo estimate of an upper bound (tokens per target call).

    Attributes:
        mean: the mean of max_k c(X^(k)) over the samples.
        standard_error: of the mean.
        low, high: the normal interval of the confidence asked for.
        samples: how many K-tuples of drafts.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    samples: int


def sampled_upper_bound(
    leaf_scores: np.ndarray, leaves: np.ndarray, confidence: float = 0.99
) -> SampledBound:
    """The upper bound estimated from sampled drafts: the mean of the largest path score of each K-tuple.

    Args:
        leaf_scores: c at every path (``path_scores``), [V^L].
        leaves: the numbers of the drafted paths, [N, K], N independent tuples.
        confidence: of the interval.

    Raises:
        InvalidInputError: fewer than two tuples, unknown leaves, or a confidence outside (0, 1).

    Example:
        >>> sampled_upper_bound(np.array([1.0, 3.0]), np.array([[0, 0], [0, 1]])).mean
        2.0
    """
    if leaves.ndim != 2 or len(leaves) < 2 or leaves.shape[1] < 1:
        raise InvalidInputError(f"leaves has shape {leaves.shape}; expected (N, K) with N at least 2")
    if leaves.min() < 0 or leaves.max() >= len(leaf_scores):
        raise InvalidInputError(f"a leaf is outside 0..{len(leaf_scores) - 1}, the paths that have scores")
    check_confidence(confidence)
    best = leaf_scores.astype(float)[leaves].max(axis=1)
    mean, error = float(best.mean()), float(best.std(ddof=1) / np.sqrt(len(best)))
    width = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return SampledBound(mean, error, mean - width, mean + width, len(best))


def level_set_weights(pair: ModelPair, scores: Sequence[np.ndarray]) -> dict[tuple[Context, ...], Any]:
    """The cheapest weights λ(T) with Σ_{T∋a} λ(T) = y(a): those of the level sets of the path scores.

    With s(a_{1:i}) = Σ_{j≤i} y(a_{1:j}), the antichain of a threshold t holds the contexts at which s
    first reaches t; its weight is the distance to the next smaller value of s.

    Args:
        pair: the models; only their shape is used.
        scores: y(a) ≥ 0 by depth 0..L.

    Example:
        >>> pair = ModelPair.context_free_pair([0.5, 0.5], [0.25, 0.75], draft_length=1)
        >>> scores = [np.array([1.0]), np.array([0.0, 0.5])]
        >>> {T: float(weight) for T, weight in level_set_weights(pair, scores).items()}
        {((),): 1.0, ((1,),): 0.5}
    """
    sums = prefix_sums(scores, pair.vocab_size)
    reached = np.concatenate(sums)
    before = np.concatenate([scores[0] * 0, *(np.repeat(level, pair.vocab_size) for level in sums[:-1])])
    nodes = all_contexts(pair.vocab_size, pair.draft_length)
    weights, last = {}, reached[0] * 0
    for threshold in sorted(set(reached[reached > 0].tolist())):
        first = np.flatnonzero((before < threshold) & (reached >= threshold))
        weights[tuple(nodes[node] for node in first)] = threshold - last
        last = threshold
    return weights

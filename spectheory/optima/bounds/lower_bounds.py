"""Certified lower bounds on the multi-path optimum, by block verification against a skewed draft."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spectheory.foundation.errors import InfeasiblePointError
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.context_tree import (
    ContextTree,
    Levels,
    accepted_masses,
    check_level,
    subtree_sums,
)
from spectheory.optima.bounds.level_sets import LevelSets
from spectheory.optima.bounds.tolerances import FEASIBILITY_TOLERANCE, MACHINE_EPSILON
from spectheory.pairs.pair import ModelPair


class CertifiedLowerBound(NamedTuple):
    """A lower bound, rounded outward, with its proof: a leaf law r and the node masses x of the bound."""

    value: float
    skewed_draft: np.ndarray
    masses: Levels


def certified_lower_bound(
    pair: ModelPair, num_drafts: int, skewed_draft: np.ndarray, tolerance: float = FEASIBILITY_TOLERANCE
) -> float:
    """Certify a lower bound on the best block efficiency of K paths, from a skewed draft, rounded outward.

    Source: greedy2026 Theorem 4.6.  A leaf law r is the law of a path selected among K drafts if
    r(S) ≤ f(q(S)) for all sets S of leaves, f(u) = 1 - (1 - u)^K (``is_skewed_draft``).  Block verification
    against r is then a valid verifier, whose block efficiency is a lower bound.  The bound allows for an
    excess of r by rounding.

    Args:
        pair: the models; an exact pair is converted to float64, and the bound allows for that.
        num_drafts: K.
        skewed_draft: r, [V^L]; its sum may be below 1.
        tolerance: the largest excess r(S) - f(q(S)), relative to f(q(S)), that counts as rounding.

    Raises:
        InfeasiblePointError: a set S has r(S) > (1 + tolerance) f(q(S)).  Its leaves are in ``.witness``.
        InvalidInputError: a wrong shape, a negative or infinite entry, or an invalid num_drafts.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> round(certified_lower_bound(pair, 2, np.array([4 / 9, 5 / 9])), 9)
        1.888888889
    """
    num_drafts = check_num_drafts(num_drafts)
    tree = ContextTree.of(pair.to_float())
    given = np.asarray(skewed_draft, dtype=float)
    law = check_level(tree.pair, "skewed_draft", given, tree.draft_length, nonnegative=True)
    sets = LevelSets.of(law, tree.draft_probs[-1], num_drafts)
    if not sets.is_feasible(tolerance):
        worst = int(np.argmax(sets.shares))
        leaves, share = sets.leaves(worst), float(sets.shares[worst])
        raise InfeasiblePointError(
            f"skewed_draft gives a set of {len(leaves)} leaves {share:.9g} times the probability that one of "
            f"{num_drafts} drafts ends there, at most 1 is possible; the leaves are in .witness",
            tuple(pair.context(tree.draft_length, int(leaf)) for leaf in leaves),
            share - 1.0,
        )
    return certified_bound_of_draft(tree, num_drafts, law).value


def certified_bound_of_draft(
    tree: ContextTree, num_drafts: int, skewed_draft: np.ndarray
) -> CertifiedLowerBound:
    """Compute ``certified_lower_bound`` on a float64 tree, for a leaf law that is (nearly) feasible.

    Let c = max(1, the largest r(S)/f(q(S))).  The masses x of block verification satisfy every antichain
    constraint up to two factors, so we divide all masses but the root's by them:

    - c (1 + mismatch).  For the leaves S below an antichain T, r(S) ≤ c f(q(S)) and
      q(S) ≤ (1 + mismatch) q(T), and f(d u) ≤ d f(u) for d ≥ 1.
    - 1 + the tree's rounding allowance.

    We lower each depth by a few ulps more than the depth above it, so that x(a, t) ≤ p(t|a) x(a) holds for
    the stored floats.
    """
    share = float(np.max(LevelSets.of(skewed_draft, tree.draft_probs[-1], num_drafts).shares))
    laws = subtree_sums(skewed_draft, tree.vocab_size, tree.draft_length)
    masses = accepted_masses([np.ones(1), *laws[1:]], tree.target_rows)
    factor = 1.0 / (max(share, 1.0) * (1.0 + tree.mismatch) * (1.0 + tree.rounding))
    step = 1.0 - 4 * MACHINE_EPSILON
    masses = [masses[0], *(level * (factor * step**depth) for depth, level in enumerate(masses[1:], 1))]
    total = sum(float(level.sum()) for level in masses)
    return CertifiedLowerBound(total * (1.0 - tree.rounding), skewed_draft, masses)


def target_among(tree: ContextTree, num_drafts: int, allowed: Sequence[np.ndarray]) -> np.ndarray:
    """Compute a leaf law, [V^L]: the target, renormalised to the allowed children of every context.

    If no allowed child has target mass, the law follows the draft.  Allow the contexts that K drafts reach
    almost surely: then the law is nearly a skewed draft, and block verification against it accepts nearly all
    of these contexts.  If the largest r(S)/f(q(S)) is above 1, we divide the law by it.
    """
    law = np.ones(1)
    for level, target, draft in zip(allowed[1:], tree.target_rows, tree.pair.draft, strict=True):
        kept = target * level.reshape(target.shape)
        total = kept.sum(axis=1, keepdims=True)
        rows = np.where(total > 0, kept / np.where(total > 0, total, 1.0), draft)
        law = (law[:, None] * rows).ravel()
    return law / max(1.0, float(np.max(LevelSets.of(law, tree.draft_probs[-1], num_drafts).shares)))

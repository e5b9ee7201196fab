"""Certified bounds on the multi-path optimum, from any prices (above) and any skewed draft (below)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spectheory.bounds.context_tree import ContextTree, Levels
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.budgets import some_draft_probs
from spectheory.programs.solving.float_solver import MACHINE_EPSILON
from spectheory.validate import check_num_drafts

FEASIBILITY_TOLERANCE = 1e-9
"""How far a caller's point may break a constraint and still count as feasible up to rounding.  The
bounds make up for any such excess, so the tolerance decides what is refused, never what is certified."""


TIE = 1e-12


class InfeasiblePointError(InvalidInputError):
    """A point breaks a constraint of the program; ``witness`` names one.

    Attributes:
        witness: contexts: the set of leaves with r(S) > f(q(S)), or the one node whose prices are too low.
        violation: by how much.
    """

    def __init__(self, message: str, witness: tuple[tuple[int, ...], ...], violation: float) -> None:
        super().__init__(message)
        self.witness = witness
        self.violation = violation


class Chain(NamedTuple):
    """The level sets of path scores c, largest first: nested leaf sets S_1 ⊂ S_2 ⊂ ..

    Attributes:
        draft_mass: q(S_i), [leaves].
        drop: how far the score falls after S_i, c_i - c_{i+1} ≥ 0, with c = 0 after the last, [leaves].
    """

    draft_mass: np.ndarray
    drop: np.ndarray


class LowerBound(NamedTuple):
    """A lower bound, the leaf law behind it, and the feasible node masses x(a) that attain it."""

    value: float
    skewed_draft: np.ndarray
    masses: Levels


class UpperBound(NamedTuple):
    """An upper bound, with the prices and the chain of leaf sets behind it."""

    value: float
    draft_prices: Levels
    target_prices: Levels
    chain: Chain


def lower_bound_from_skewed_draft(pair: ModelPair, num_drafts: int, skewed_draft: np.ndarray) -> float:
    """A lower bound on the best block efficiency of K paths: what a skewed draft attains.

    Source: greedy2026 Theorem 4.6.  A leaf law r with

        r(S) ≤ f(q(S)) = 1 - (1 - q(S))^K      for all sets S of leaves

    can be made from K drafts, and block verification against it is a valid verifier with block
    efficiency Σ_a min_{k≤|a|} p(a_{k+1:} | a_{1:k}) r(a_{1:k}).  As f is concave and q modular, the
    most violated set is a level set of r/q: one sort decides.

    Rounding: with 1 + δ the largest r(S)/f(q(S)), all masses but the root's are divided by (1 + δ), by
    the factor that draft rows off 1 ask for (``ContextTree.mismatch``) and by one plus the tree's rounding
    allowance, after which every antichain constraint holds.

    Args:
        pair: the models (an exact pair is converted to float64).
        num_drafts: K.
        skewed_draft: r, [V^L].

    Returns:
        The bound in tokens per target call.

    Raises:
        InfeasiblePointError: a set has r(S) > f(q(S)) by more than 1e-9 of f(q(S)); it is the witness.
        InvalidInputError: a wrong shape, a negative or infinite entry, or a bad num_drafts.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> round(lower_bound_from_skewed_draft(pair, 2, np.array([4 / 9, 5 / 9])), 9)
        1.888888889
    """
    num_drafts = check_num_drafts(num_drafts)
    tree = ContextTree.of(pair)
    skewed = tree.check_level("skewed_draft", skewed_draft, tree.draft_length)
    excess, members = largest_excess(tree, num_drafts, skewed)
    if excess > FEASIBILITY_TOLERANCE:
        witness = tuple(pair.context(tree.draft_length, int(leaf)) for leaf in np.sort(members))
        raise InfeasiblePointError(
            f"skewed_draft gives a set of {len(members)} leaves {1 + excess:.9g} times the probability that "
            f"one of {num_drafts} drafts ends there, at most 1 is possible; the leaves are in .witness",
            witness,
            excess,
        )
    return lower_bound(tree, num_drafts, skewed).value


def upper_bound_from_prices(
    pair: ModelPair,
    num_drafts: int,
    draft_prices: Sequence[np.ndarray],
    target_prices: Sequence[np.ndarray],
) -> float:
    """An upper bound on the block efficiency of every valid verifier of K paths, from dual prices.

    The dual of greedy2026 Theorem 4.3 (theory.md §5).  For y, z ≥ 0 with

        y(a) + z(a) ≥ 1 + Σ_x p(x|a) z(a, x)      for all a

    and c(b) = Σ_{a on the path to b} y(a) the score of a leaf, every feasible x has

        Σ_a x(a) ≤ z(∅) + Σ_a y(a) x(a) ≤ z(∅) + E[max_k c(X^k)] = z(∅) + ∫ f(q{c > t}) dt,

    X^k i.i.d. ~ q: one sort of the leaves.  If the prices fall short of 1 + Σ p z by at most t < 1,
    the bound divided by 1 - t holds.

    Args:
        pair: the models (an exact pair is converted to float64).
        num_drafts: K.
        draft_prices: y by depth 0..L, arrays [V^depth].
        target_prices: z by depth 0..L, arrays [V^depth].

    Returns:
        The bound in tokens per target call, rounding included.

    Raises:
        InfeasiblePointError: y + z falls short by more than 1e-9 at a node, which is the witness.
        InvalidInputError: wrong shapes, negative or infinite entries, or a bad num_drafts.

    Example:
        Without a price on drafts below the root nothing is better than L + 1:

        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> y, z = [np.array([2.0]), np.zeros(2)], [np.zeros(1), np.ones(2)]
        >>> round(upper_bound_from_prices(pair, 2, y, z), 9)
        2.0
    """
    num_drafts = check_num_drafts(num_drafts)
    tree = ContextTree.of(pair)
    y = tree.check_levels("draft_prices", draft_prices)
    z = tree.check_levels("target_prices", target_prices)
    shortfall = 0.0
    for depth, required in enumerate(tree.required_prices(z)):
        short = required - y[depth] - z[depth]
        worst = int(np.argmax(short))
        if short[worst] > FEASIBILITY_TOLERANCE:
            context = pair.context(depth, worst)
            total = y[depth][worst] + z[depth][worst]
            raise InfeasiblePointError(
                f"draft_prices + target_prices is {total:.9g} at context {context}; "
                f"expected at least 1 + Σ p(x|a) target_prices(a, x) = {required[worst]:.9g}",
                (context,),
                float(short[worst]),
            )
        shortfall = max(shortfall, float(short[worst]))
    # no verifier outputs more than L + 1 tokens
    return min(_upper_bound(tree, num_drafts, y, z, shortfall).value, tree.draft_length + 1.0)


def largest_excess(tree: ContextTree, num_drafts: int, skewed: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest r(S)/f(q(S)) - 1 over all sets of leaves, and the leaves of that set."""
    draft = tree.draft_probs[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(skewed > 0, skewed / draft, 0.0)  # a leaf that is never drafted comes first
    order = np.argsort(-ratio, kind="stable")
    mass, limit = np.cumsum(skewed[order]), some_draft_probs(np.cumsum(draft[order]), num_drafts)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(mass > 0, mass / limit, 0.0) - 1.0
    worst = int(np.argmax(excess))
    return float(excess[worst]), order[: worst + 1]


def lower_bound(tree: ContextTree, num_drafts: int, skewed: np.ndarray) -> LowerBound:
    """The bound of ``lower_bound_from_skewed_draft`` for a leaf law that is feasible or nearly so."""
    excess, _ = largest_excess(tree, num_drafts, skewed)
    masses = tree.block_verification_masses(tree.subtree_sums(skewed))
    # r(S) ≤ (1 + excess) f(q(S)) for the leaves S below an antichain T, q(S) ≤ (1 + mismatch) q(T), and
    # f(c u) ≤ c f(u) for c ≥ 1
    factor = 1.0 / ((1.0 + max(excess, 0.0)) * (1.0 + tree.mismatch) * (1.0 + tree.rounding))
    # one more ulp or two per depth, so that x(a, t) ≤ p(t|a) x(a) holds for the stored floats themselves
    step = 1.0 - 4 * MACHINE_EPSILON
    masses = [masses[0], *(level * (factor * step**depth) for depth, level in enumerate(masses[1:], 1))]
    total = sum(float(level.sum()) for level in masses)
    return LowerBound(total * (1.0 - tree.rounding), skewed, masses)


def upper_bound(tree: ContextTree, num_drafts: int, target_prices: Levels) -> UpperBound:
    """The bound of ``upper_bound_from_prices`` with the least y that goes with z ≥ 0."""
    return _upper_bound(tree, num_drafts, tree.draft_prices(target_prices), target_prices, 0.0)


def _upper_bound(tree: ContextTree, num_drafts: int, y: Levels, z: Levels, shortfall: float) -> UpperBound:
    scores = tree.path_sums(y)
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    chain = Chain(np.cumsum(tree.draft_probs[-1][order]), ordered - np.append(ordered[1:], 0.0))
    limits = np.append(some_draft_probs(chain.draft_mass[:-1], num_drafts), 1.0)
    # q(T) ≤ (1 + mismatch) q(S) for the leaves S below an antichain T: the limits are for T
    value = (1.0 + tree.mismatch) * float(chain.drop @ limits) + float(z[0][0])
    value = value / (1.0 - shortfall) + tree.rounding * float(ordered[0] + z[0][0])
    return UpperBound(value, y, z, chain)


def block_verification_prices(tree: ContextTree, skewed: np.ndarray) -> Levels:
    """Target prices z that price block verification with draft r: z(a) carries the whole price where
    p(a_i | a_{1:i-1}) x(a_{1:i-1}) ≤ r(a), and y(a) does elsewhere.

    For K = 1 and r = q these are optimal: the upper bound is block verification's efficiency.
    """
    sums = tree.subtree_sums(skewed)
    masses = tree.block_verification_masses(sums)
    prices: Levels = [np.zeros(0)] * (tree.draft_length + 1)
    below = np.zeros(tree.vocab_size**tree.draft_length)
    for depth in range(tree.draft_length, 0, -1):
        proposed = tree.target_conditionals[depth] * tree.from_parents(masses[depth - 1])
        # with equal models the two sides agree up to rounding, and the target's price is the right one
        limited_by_target = proposed <= sums[depth] * (1.0 + TIE)
        prices[depth] = np.where(limited_by_target, 1.0 + below, 0.0)
        below = tree.from_children(tree.target_conditionals[depth] * prices[depth])
    prices[0] = np.zeros(1)
    return prices

"""The skewed draft q^Γ: the distribution of the path that a rule selects among K i.i.d. drafts.

greedy2026, section 5, gives two formulas: for an explicit order of all leaves (Eq. 19), and for a ranking of
the children of every context (Eqs. 22-23).  The second uses only values on one path.  In this file
f(u) = 1 - (1 - u)^K is the probability that one of K drafts ends in a set of leaves of draft mass u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import (
    Array,
    add_scaled,
    divide_or_zero,
    hit_probability,
    namespace,
    normalise,
    ones_like,
    power_sum,
    take_token,
    zeros_like,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import (
    SUM_TOLERANCE,
    flint_if_exact,
    float_tolerance,
    fractions_if_exact,
    plain_number,
)
from spectheory.foundation.kernels import choice
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.context_tree import (
    Levels,
    accepted_masses,
    check_level,
    subtree_sums,
)
from spectheory.optima.bounds.level_sets import LevelSets
from spectheory.optima.bounds.rankings import (
    LeafOrder,
    Ranking,
    check_leaf_order,
    mass_ranked_up_to,
    ratio_ranking,
)
from spectheory.optima.bounds.tolerances import FEASIBILITY_TOLERANCE
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_probs


@dataclass(frozen=True, eq=False)
class SkewedDraft:
    """The law r of the selected path on an enumerated pair, with its conditionals.

    Attributes:
        node_laws: ``node_laws[i]`` = r(a_{1:i}), [V^i], for depths 0..L (Eq. 13); Fractions or float64.
        vocab_size: V.

    Example:
        The paper's ranking on the two-token example: both drafts are the leaf A with probability (2/3)^2.

        >>> from spectheory import instances
        >>> skewed = SkewedDraft.from_ranking(instances.two_token(1), num_drafts=2)
        >>> print(skewed.leaf_law, skewed.block_efficiency(instances.two_token(1)))
        [Fraction(4, 9) Fraction(5, 9)] 17/9
    """

    node_laws: tuple[np.ndarray, ...]
    vocab_size: int

    @property
    def draft_length(self) -> int:
        """L, the length of a path."""
        return len(self.node_laws) - 1

    @property
    def leaf_law(self) -> np.ndarray:
        """r on the leaves, [V^L]."""
        return self.node_laws[-1]

    @cached_property
    def rows(self) -> tuple[np.ndarray, ...]:
        """Conditionals r(. | a_{1:i}), i = 0..L-1, arrays [V^i, V] (Eq. 14); zeros where r(a_{1:i}) = 0."""
        levels = (level.reshape(-1, self.vocab_size) for level in self.node_laws[1:])
        return tuple(normalise(level) for level in levels)

    @staticmethod
    def from_leaf_law(pair: ModelPair, leaf_law: Sequence[Any] | np.ndarray) -> SkewedDraft:
        """Build the skewed draft with this law on the leaves of a pair, [V^L].

        ``is_skewed_draft`` decides whether a rule over K drafts can select with this law.

        Raises:
            InvalidInputError: ``leaf_law`` is not a distribution over the leaves in the pair's arithmetic.
        """
        return SkewedDraft.summed(pair, _checked_law(pair, leaf_law, SUM_TOLERANCE, nonnegative=True))

    @staticmethod
    def summed(pair: ModelPair, leaf_law: np.ndarray) -> SkewedDraft:
        """Sum any numbers on the leaves, [V^L], up the tree (Eq. 13), without a check."""
        V, L = pair.vocab_size, pair.draft_length
        levels = subtree_sums(flint_if_exact(leaf_law), V, L)
        return SkewedDraft(tuple(fractions_if_exact(level) for level in levels), V)

    @staticmethod
    def from_order(pair: ModelPair, num_drafts: int, order: LeafOrder) -> SkewedDraft:
        """Compute the law of the highest-ranked of K drafts (``ranked_leaf_law``).

        The laws of all orders are the vertices of {r : r(S) ≤ f(q(S)), r(V^L) = 1} (App. H).

        Raises:
            InvalidInputError: an invalid number of drafts, or an order that does not list every leaf once.

        Example:
            >>> from spectheory import instances
            >>> print(SkewedDraft.from_order(instances.two_token(1), 2, [1, 0]).leaf_law)
            [Fraction(8, 9) Fraction(1, 9)]
        """
        num_drafts, numbers = check_num_drafts(num_drafts), check_leaf_order(pair, order)
        probs = flint_if_exact(pair.draft_path_probs(pair.draft_length))
        return SkewedDraft.summed(pair, ranked_leaf_law(probs, numbers, num_drafts))

    @staticmethod
    def from_ranking(pair: ModelPair, num_drafts: int, ranking: Ranking = ratio_ranking) -> SkewedDraft:
        """Compute q^Γ(a_{1:i}) = (q(a_{1:i}) + B)^K - B^K at every node (Eqs. 22-23).

        B is the draft mass ranked below the node.  The paper prints q(t) in the inner sums; correct is the
        conditional q(t | a_{1:j}).
        """
        num_drafts = check_num_drafts(num_drafts)
        probs = flint_if_exact(pair.draft_path_probs(0))
        below = probs - probs
        levels = [probs]
        for target_rows, draft_rows in zip(pair.target[:-1], pair.draft, strict=True):
            rows = flint_if_exact(draft_rows)
            up_to = mass_ranked_up_to(ranking, flint_if_exact(target_rows), rows)
            below = (below[:, None] + probs[:, None] * (up_to - rows)).ravel()
            probs = (probs[:, None] * rows).ravel()
            levels.append(probs * power_sum(below + probs, below, num_drafts))
        return SkewedDraft(tuple(fractions_if_exact(level) for level in levels), pair.vocab_size)

    @staticmethod
    def mixture(weights: Sequence[Any], drafts: Sequence[SkewedDraft]) -> SkewedDraft:
        """Mix laws to Σ_i weight_i r_i: draw i with probability weight_i, and select by the rule of r_i."""
        levels = zip(*(draft.node_laws for draft in drafts), strict=True)
        mixed = (sum(w * level for w, level in zip(weights, group, strict=True)) for group in levels)
        return SkewedDraft(tuple(np.asarray(level) for level in mixed), drafts[0].vocab_size)

    def accepted_masses(self, pair: ModelPair) -> tuple[np.ndarray, ...]:
        """Compute P(tau >= i, X_{1:i} = a_{1:i}) under block verification with draft r, by depth (Eq. 83)."""
        return tuple(fractions_if_exact(level) for level in self._accepted_masses(pair))

    def block_efficiency(self, pair: ModelPair) -> Any:
        """Compute E[tau + 1] of block verification with this draft, tokens per call (objective of Eq. 16)."""
        return plain_number(sum(level.sum() for level in self._accepted_masses(pair)))

    def _accepted_masses(self, pair: ModelPair) -> Levels:
        laws = [flint_if_exact(law) for law in self.node_laws]
        return accepted_masses(laws, [flint_if_exact(rows) for rows in pair.target[:-1]])


def ranked_leaf_law(draft_probs: np.ndarray, order: np.ndarray, num_drafts: int) -> np.ndarray:
    """Compute r(P_i) = F_i^K - F_{i-1}^K, [M], for the leaves P_1, .., P_M, lowest rank first.

    F_i is the draft mass of P_1, .., P_i.  Source: greedy2026 Eq. 19.  The paper prints q(P_i) inside the
    sums over j; correct is q(P_j).  The greedy polymatroid algorithm (App. H, Eq. 93) computes the same law
    from the highest leaf down.
    """
    probs = draft_probs[order]
    upper = probs.cumsum()
    law = np.empty_like(probs)
    law[order] = probs * power_sum(upper, upper - probs, num_drafts)
    return law


class RankedPowers(NamedTuple):
    """B_x and S(U_x, B_x) for every token x of a context, [..., V] each, as in ``skewed_draft_rows``."""

    below: Array
    powers: Array


def ranked_powers(
    target_row: Array,
    draft_row: Array,
    num_drafts: int,
    ranking: Ranking = ratio_ranking,
    below_path: Array | None = None,
    path_prob: Array | None = None,
) -> RankedPowers:
    """Compute ``RankedPowers`` of one context a from its rows [..., V].

    ``below_path`` and ``path_prob`` are B and q(a), [...]; by default the values at the root, 0 and 1.
    """
    if below_path is None and len(parts := choice.parts_of(draft_row)) > 1:
        rooms = RankedPowers(choice.room_like(draft_row), choice.room_like(draft_row))
        for part in parts:
            found = ranked_powers(target_row[part], draft_row[part], num_drafts, ranking)
            rooms.below[part], rooms.powers[part] = found
        return rooms
    up_to = mass_ranked_up_to(ranking, target_row, draft_row)
    if below_path is None or path_prob is None:
        upper, below = up_to, up_to - draft_row
    else:
        upper = add_scaled(below_path[..., None], path_prob[..., None], up_to)
        below = add_scaled(upper, -path_prob[..., None], draft_row)
    return RankedPowers(below, power_sum(upper, below, num_drafts))


def grown_law(law: np.ndarray, draft_probs: np.ndarray, num_drafts: int) -> np.ndarray:
    """Increase masses r to sum 1 while r(S) ≤ f(q(S)) holds for every leaf set S.

    One leaf b after the other, r(b) grows by the smallest room min_{S ∋ b} f(q(S)) - r(S).  The set with the
    smallest room is b with a prefix of the other leaves in the order of r/q.  In the end every leaf is in a
    tight set.  As f∘q is submodular, unions of tight sets are tight, so the sum is f(1) = 1.

    Example:
        >>> grown_law(np.zeros(2), np.array([2/3, 1/3]), 2).round(6)
        array([0.888889, 0.111111])
    """
    law = law.copy()
    for leaf in np.flatnonzero(draft_probs > 0):
        order = LevelSets.of(law, draft_probs, num_drafts).order
        order = np.concatenate([[leaf], order[order != leaf]])
        room = (hit_probability(draft_probs[order].cumsum(), num_drafts) - law[order].cumsum()).min()
        law[leaf] = law[leaf] + max(room, law[leaf] * 0)
    return law


def skewed_draft_rows(
    path: Array,
    target_rows: Array,
    draft_rows: Array,
    num_drafts: int,
    ranking: Ranking = ratio_ranking,
    first_draft_prob: Array | None = None,
    root: RankedPowers | None = None,
) -> Array:
    """Compute r(. | a_{1:i}) along one path, i = 0..L-1, for r = λ q + (1-λ) q^Γ (Eqs. 22-23 and 14).

    Let B be the draft mass ranked below a_{1:i} and U = B + q(a_{1:i}); B_x and U_x are the same for
    (a_{1:i}, x).  Then q^Γ(a_{1:i}) = U^K - B^K = q(a_{1:i}) S(U, B) with S(U, B) = Σ_j U^j B^(K-1-j).  So
    r / q = λ + (1-λ) S =: g, and

        r(x | a_{1:i}) = q(x | a_{1:i}) g(U_x, B_x) / g(U, B).

    This avoids the difference of nearly equal powers at deep, unlikely contexts.

    Args:
        path: [..., L] the selected path.
        target_rows: [..., L+1, V] target rows along the path.
        draft_rows: [..., L, V] draft rows along the path.  They are overwritten: give a copy.
        num_drafts: K.  With one draft the law is q for every rule.
        ranking: the order of the children of every context.
        first_draft_prob: λ, [...], the chance to select the first draft.  None means λ = 0.
        root: ``ranked_powers`` of the root, if already computed.  Then path is [..., C, L]: C paths that
            share the root.

    Returns:
        ``draft_rows``, which now has the rows of r.
    """
    if num_drafts == 1:
        return draft_rows
    xp, first_rows = namespace(draft_rows), draft_rows[..., 0, :]
    share = zeros_like(first_rows[..., 0]) if first_draft_prob is None else first_draft_prob
    if root is not None:
        root = RankedPowers(*(xp.broadcast_to(array[..., None, :], first_rows.shape) for array in root))
    for part in choice.parts_of(first_rows):
        of_part = None if root is None else RankedPowers(*(array[part] for array in root))
        rows = target_rows[part], draft_rows[part]
        _skew(path[part], *rows, num_drafts, ranking, share[part], of_part)
    return draft_rows


def _skew(
    path: Array,
    target_rows: Array,
    draft_rows: Array,
    num_drafts: int,
    ranking: Ranking,
    share: Array,
    root: RankedPowers | None,
) -> None:
    """Overwrite the draft rows, depth by depth."""
    path_prob = ones_like(share)
    below_path = zeros_like(share)
    for depth in range(path.shape[-1]):
        row = draft_rows[..., depth, :]
        if root is not None and depth == 0:
            below, powers = root
        else:
            rows = target_rows[..., depth, :], row
            below, powers = ranked_powers(*rows, num_drafts, ranking, below_path, path_prob)
        here = share + (1 - share) * power_sum(below_path + path_prob, below_path, num_drafts)
        # divide λ and 1-λ by g(U, B): this is cheaper than dividing the row
        parts = divide_or_zero(share, here)[..., None], divide_or_zero(1 - share, here)[..., None]
        token = path[..., depth]
        below_path = take_token(below, token)
        path_prob = path_prob * take_token(row, token)
        row *= add_scaled(*parts, powers)


class Membership(NamedTuple):
    """Whether a law r is a skewed draft, and if not, the most violated leaf set.

    Attributes:
        is_member: True if r(S) ≤ f(q(S)) for every set S of leaves.
        witness: leaf numbers of the set S with the largest excess, ascending; empty for a member.
        excess: r(S) - f(q(S)) of the witness; 0 for a member.
    """

    is_member: bool
    witness: tuple[int, ...]
    excess: Any


def is_skewed_draft(
    pair: ModelPair,
    leaf_law: Sequence[Any] | np.ndarray,
    num_drafts: int,
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> Membership:
    """Decide whether a law r is the law of the path that some rule selects among K i.i.d. drafts.

    Source: greedy2026 Lemma 4.5: the condition is r(S) ≤ f(q(S)) for all sets S of leaves, with
    f(u) = 1 - (1 - u)^K.  (Eq. 15 prints r(a_{1:L}) in the sum; correct is r(a_{1:i}).)  It suffices to check
    the level sets of r/q (``bounds.level_sets``), in O(M log M) for M leaves.

    Args:
        pair: the models; only the draft is used.
        leaf_law: r, [V^L], in the pair's arithmetic.
        num_drafts: K.
        tolerance: for float64, the largest excess relative to f(q(S)), and the largest error of the sum of r,
            that count as rounding.

    Raises:
        InvalidInputError: wrong shape, arithmetic or number of drafts, or entries that do not sum to 1.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], draft_length=1)
        >>> is_skewed_draft(pair, ["1/4", "3/4"], 2).is_member
        True
        >>> found = is_skewed_draft(pair, ["1/5", "4/5"], 2)
        >>> print(found.witness, found.excess)
        (1,) 1/20
    """
    num_drafts = check_num_drafts(num_drafts)
    law = _checked_law(pair, leaf_law, tolerance, nonnegative=False)
    sets = LevelSets.of(law, flint_if_exact(pair.draft_path_probs(pair.draft_length)), num_drafts)
    if sets.is_feasible(float_tolerance(pair, tolerance)):
        return Membership(True, (), plain_number(law[0] * 0))
    worst = int(np.argmax(sets.excesses))
    return Membership(False, tuple(sets.leaves(worst).tolist()), plain_number(sets.excesses[worst]))


def _checked_law(
    pair: ModelPair, leaf_law: Sequence[Any] | np.ndarray, tolerance: float, nonnegative: bool
) -> np.ndarray:
    """Check that leaf_law sums to 1, and return it as python-flint rationals or float64, [V^L]."""
    given = leaf_law if isinstance(leaf_law, np.ndarray) else parse_probs(leaf_law)
    law = check_level(pair, "leaf_law", given, pair.draft_length, nonnegative)
    if not abs(law.sum() - 1) <= float_tolerance(pair, tolerance):
        raise InvalidInputError(f"leaf_law must sum to 1, its sum is {law.sum()}")
    return law

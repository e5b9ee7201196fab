"""An optimal transport plan of one position as a random choice among at most V rankings of the tokens.

The plan of spectr2023 Eq. 4 has V^{K+1} entries.  This one is drawn from without them, for any K.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.arrays import divide_or_zero, is_exact, ones_like, positive_part, to_flint, to_fractions
from spectheory.bounds.skewed_draft import grown_law
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.greedy_polymatroid import RankingDecomposition, decompose_into_rankings
from spectheory.programs.one_position.min_cut import check_rows
from spectheory.validate import check_num_drafts


class OptimalRankings(NamedTuple):
    """Draw a ranking, take the highest-ranked draft X ~ r, and keep it with probability min(1, p(X)/r(X)).

    Otherwise the output follows max(p - r, 0), normalised.

    Attributes:
        target_probs: p, [V], Fractions.
        skewed_row: r, [V], the law of the draft that is taken.
        rankings: at most V of them, with their weights.
    """

    target_probs: np.ndarray
    skewed_row: np.ndarray
    rankings: RankingDecomposition

    @property
    def acceptance(self) -> Fraction:
        """P(the draft that is taken is kept) = Σ min(p, r), which is α_K."""
        return sum(np.minimum(self.target_probs, self.skewed_row), Fraction(0))

    def law_given(self, drafts: Sequence[int]) -> np.ndarray:
        """The law of the output given the drafted tokens, [V], Fractions.

        Args:
            drafts: token ids that q can draw, in any order.

        Raises:
            InvalidInputError: no drafts, or what is no token.

        Example:
            >>> plan = optimal_rankings(["1/3", "2/3"], ["2/3", "1/3"], 2)
            >>> print(*plan.law_given([0, 0]), *plan.law_given([0, 1]))
            3/4 1/4 0 1
        """
        size = len(self.target_probs)
        if not drafts or not all(0 <= token < size for token in drafts):
            raise InvalidInputError(f"expected one or more tokens in 0..{size - 1}, got {list(drafts)}")
        ratio = divide_or_zero(self.target_probs, self.skewed_row)
        keep = np.minimum(ratio, ones_like(ratio))
        residual = positive_part(self.target_probs - self.skewed_row)
        law = residual * 0
        for weight, order in zip(*self.rankings, strict=True):
            top = order[np.isin(order, drafts)][-1]
            law[top] += weight * keep[top]
        return law + divide_or_zero(residual, residual * 0 + residual.sum()) * (1 - law.sum())


def optimal_rankings(
    target_probs: Sequence[Any] | np.ndarray, draft_probs: Sequence[Any] | np.ndarray, num_drafts: int
) -> OptimalRankings:
    """An optimal plan of K i.i.d. drafts at one position, exactly, for any K.

    Source: theory.md Statement 3.10.

    1. Masses v ≤ p with v(S) ≤ 1 - (1 - q(S))^K for every set S and the largest sum, α_K: token after token,
       each as large as it can be (``grown_law``).
    2. v grows to a law r that satisfies the sets too: the law of the draft that is taken.
    3. r is a mixture of at most V rankings (``decompose_into_rankings``).

    Args:
        target_probs, draft_probs: exact rows, [V]; strings and Fractions.
        num_drafts: K.

    Raises:
        InvalidInputError: rows that are not exact probabilities over one vocabulary, or a bad num_drafts.

    Example:
        >>> plan = optimal_rankings(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"], 3)
        >>> print(plan.acceptance, len(plan.rankings.weights))
        199/216 2
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_rows(target_probs, draft_probs)
    if not is_exact(target) or target.ndim != 1:
        raise InvalidInputError("the rankings of a plan are exact; give one row of fractions per model")
    p, q = to_flint(target), to_flint(draft)
    skewed = to_fractions(grown_law(grown_law(p * 0, q, num_drafts, caps=p), q, num_drafts))
    pair = ModelPair.context_free_pair(target, draft, draft_length=1)
    return OptimalRankings(to_fractions(target), skewed, decompose_into_rankings(pair, num_drafts, skewed))

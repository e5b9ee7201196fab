"""An optimal transport plan of one position as a random choice among at most V rankings of the tokens.

The plan of spectr2023 Eq. 4 has V^{K+1} entries; this plan has a few numbers per token, whatever K is.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import (
    at_most_one,
    divide_or_zero,
    hit_probability,
    ones_like,
    positive_part,
    running_minimum,
    zeros_like,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import flint_if_exact, fractions_if_exact
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.greedy_polymatroid import RankingDecomposition
from spectheory.optima.one_position.min_cut import check_single_rows


class OptimalRankings(NamedTuple):
    """Draw a ranking, take the highest-ranked draft X ~ r, and keep it with probability min(1, p(X)/r(X)).

    Otherwise the output follows max(p - r, 0), normalised.  A uniform number u chooses the ranking: the
    tokens in descending order of p/q, cut at the places with a time below u, and every part reversed.

    Attributes:
        target_probs: p, [V].
        skewed_row: r, [V], the law of the draft that is taken.
        order: the N tokens that can be drafted in descending order of p/q, [N].
        cut_times: of the cuts behind each of them but the last, in [0, 1], [N-1].
    """

    target_probs: np.ndarray
    skewed_row: np.ndarray
    order: np.ndarray
    cut_times: np.ndarray

    def __bool__(self) -> bool:
        raise no_verdict(self, ".acceptance")

    @property
    def acceptance(self) -> Any:
        """P(the draft that is taken is kept) = Σ min(p, r), which is α_K."""
        return np.minimum(self.target_probs, self.skewed_row).sum()

    @property
    def rankings(self) -> RankingDecomposition:
        """The rankings, lowest rank first, and their weights: at most N."""
        zero = self.target_probs[0] - self.target_probs[0]
        times = [zero, *sorted(set(self.cut_times.tolist()) - {zero, zero + 1}), zero + 1]
        parts = (np.split(self.order, np.flatnonzero(self.cut_times <= time) + 1) for time in times[:-1])
        orders = tuple(np.concatenate(part[::-1]) for part in parts)
        return RankingDecomposition(tuple(after - time for time, after in pairwise(times)), orders)

    def law_given(self, drafts: Sequence[int]) -> np.ndarray:
        """The law of the output given the drafted tokens, [V].

        The draft that is taken is the last one in the part of the first draft in the order of p/q.  It is
        behind a place if no cut in front of the place is open: with the smallest time of these cuts.

        Args:
            drafts: token ids that q can draw, in any order.

        Raises:
            InvalidInputError: no drafts, or a token that q cannot draw.

        Example:
            >>> plan = optimal_rankings(["1/3", "2/3"], ["2/3", "1/3"], 2)
            >>> print(*plan.law_given([0, 0]), *plan.law_given([0, 1]))
            3/4 1/4 0 1
        """
        places = np.flatnonzero(np.isin(self.order, drafts))
        if not len(places) or not np.isin(drafts, self.order).all():
            raise InvalidInputError(f"expected one or more tokens that the draft row can draw, got {drafts}")
        one = ones_like(self.target_probs[:1])
        times = (np.min(self.cut_times[first:last], keepdims=True) for first, last in pairwise(places))
        reached = running_minimum(np.concatenate([one, *times]))
        taken = reached - np.concatenate([reached[1:], one - one])
        ratio = divide_or_zero(self.target_probs, self.skewed_row)
        residual = positive_part(self.target_probs - self.skewed_row)
        law, tokens = zeros_like(residual), self.order[places]
        law[tokens] = taken * at_most_one(ratio)[tokens]
        return law + divide_or_zero(residual, zeros_like(residual) + residual.sum()) * (1 - law.sum())


def optimal_rankings(
    target_probs: Sequence[Any] | np.ndarray, draft_probs: Sequence[Any] | np.ndarray, num_drafts: int
) -> OptimalRankings:
    """An optimal plan of K i.i.d. drafts at one position, for any K: exact for exact rows.

    Source: theory.md Statement 3.10.

    Args:
        target_probs, draft_probs: rows, [V]; strings and Fractions, or float64.
        num_drafts: K.

    Raises:
        InvalidInputError: rows that are not probabilities over one vocabulary, or a bad num_drafts.

    Example:
        >>> plan = optimal_rankings(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"], 3)
        >>> print(plan.acceptance, len(plan.rankings.weights))
        199/216 2
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_single_rows(target_probs, draft_probs)
    plan = rankings_of_rows(flint_if_exact(target), flint_if_exact(draft), num_drafts)
    arrays = (plan.target_probs, plan.skewed_row, plan.cut_times)
    exact = [fractions_if_exact(array) for array in arrays]
    return OptimalRankings(exact[0], exact[1], plan.order, exact[2])


def rankings_of_rows(target: np.ndarray, draft: np.ndarray, num_drafts: int) -> OptimalRankings:
    """``optimal_rankings`` for rows that are known to be laws, in their own arithmetic."""
    best = optimal_skewed_row(target, draft, num_drafts)
    times = _cut_times(best.positions, best.limits, best.reached, num_drafts)
    return OptimalRankings(target, best.skewed_row, best.order, times)


class SkewedRow(NamedTuple):
    """An optimal law of the draft that is taken, with the min cut that proves it: Σ min(p, r) is α_K.

    Attributes:
        skewed_row: r, [V].
        order: the N tokens that can be drafted in descending order of p/q, [N].
        cut: the number of tokens in front of the min cut; r ≤ p there, r ≥ p behind it.
        positions: z_i, the probability under q of the first i tokens, [N+1].
        limits: F(z_i), the probability that one of them is drafted, [N+1].
        reached: r_1 + .. + r_i, [N+1].
    """

    skewed_row: np.ndarray
    order: np.ndarray
    cut: int
    positions: np.ndarray
    limits: np.ndarray
    reached: np.ndarray


def optimal_skewed_row(target: np.ndarray, draft: np.ndarray, num_drafts: int) -> SkewedRow:
    """The optimal law of the taken draft at one position, by a sort and sums (theory.md Statement 3.10).

    With m_i = F(z_i) - (p_1 + .. + p_i) in descending order of p/q, whose least entry is the min cut,

        r_1 + .. + r_i = p_1 + .. + p_i + max(min_{k≤i} m_k, min_{k≥i} m_k);  r/q descends on both sides.
    """
    order = SortedByRatio.of(-target, draft).order
    order = order[draft[order] > 0]
    positions, demanded = (_cumulative(row[order]) for row in (draft, target))
    limits = hit_probability(positions, num_drafts)
    surplus = limits - demanded
    highest = np.maximum(running_minimum(surplus), running_minimum(surplus[::-1])[::-1])
    skewed = zeros_like(target)
    # r_i = p_i + a difference that is mostly 0: rounding makes no negative mass
    taken = positive_part(target[order] + np.diff(highest))
    # nor more mass than a token is drafted with, where a token is rarer than the rounding
    skewed[order] = np.minimum(taken, hit_probability(draft[order], num_drafts))
    return SkewedRow(skewed, order, int(np.argmin(surplus)), positions, limits, demanded + highest)


def _cumulative(values: np.ndarray) -> np.ndarray:
    return np.concatenate([zeros_like(values[:1]), np.cumsum(values)])


def _cut_times(positions: np.ndarray, limits: np.ndarray, reached: np.ndarray, num_drafts: int) -> np.ndarray:
    """The times at which the parts of the tokens are cut in two.

    A part a < i ≤ b of the tokens is reversed with the largest probability λ that leaves a law for the rest.
    With P_i = r_1 + .. + r_i, and V_i the same under the reversal, the rest gives (P_i - λ V_i) / (1 - λ),
    which may not exceed F(z_i):

        λ = min_i (F(z_i) - P_i) / (F(z_i) - V_i),   V_i = F(z_a) + F(z_b) - F(z_a + z_b - z_i).

    The part is cut where the minimum is attained.  As r/q descends, also in the rest, this goes on until no
    part has two tokens.
    """
    times = ones_like(positions[1:-1])
    parts = [(0, len(times) + 1, zeros_like(positions[:1]), reached)]
    while parts:
        start, end, time, reached = parts.pop()
        if end - start < 2:
            continue
        inside = slice(start + 1, end)
        mirrored = positions[start] + positions[end] - positions[inside]
        reversed_ = limits[start] + limits[end] - hit_probability(mirrored, num_drafts)
        # negative only by rounding, where all tokens on one side of a place are rare
        room, most = (positive_part(limits[inside] - mass) for mass in (reached[1:-1], reversed_))
        chances = at_most_one(divide_or_zero(room, most))
        chance = np.min(chances, keepdims=True)
        time = time + chance * (1 - time)
        cuts = start + 1 + np.flatnonzero(chances == chance)
        times[cuts - 1] = time
        if chance == 1:
            continue
        reached = np.concatenate([limits[start : start + 1], reached[1:-1], limits[end : end + 1]])
        reached[1:-1] = (reached[1:-1] - chance * reversed_) / (1 - chance)
        reached[cuts - start] = limits[cuts]
        for first, last in pairwise([start, *cuts.tolist(), end]):
            parts.append((first, last, time, reached[first - start : last - start + 1]))
    return times
